// The index of the papers' figures: which suite follows which one, how long it takes, and what is
// stored of it.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/program/gallery/stored.hpp"
#include "harness/program/suite/figure_list.hpp"

namespace attnbench::gallery {

/// What `attnbench plan` said of a profile when the estimates were last written.
struct StoredEstimate {
  double seconds = 0;
  double peak_bytes = 0;  ///< of the largest cell
  int cells = 0;
  /// Of them, those whose data have to be prepared first; their times and bytes are in the sums,
  /// for data of the published size.
  int without_data = 0;
};
/// Throws SchemaError.
void from_json(const nlohmann::json& json, StoredEstimate& estimate);

enum class StoredState { none, unreadable, stale, current };
/// The state's word: "none", "unreadable", "stale", "current".
const char* word_of(StoredState state);

/// A suite that comes with the program.
struct IndexedSuite {
  std::filesystem::path file;
  std::string name;
  std::string title;
  std::string figure;         ///< of a paper; may be empty
  std::string hash;           ///< of its file
  std::string settings_hash;  ///< without its words for readers
  StoredState state = StoredState::none;
  std::string state_reason;  ///< why it is stale or unreadable
  std::optional<Stored> stored;
  std::optional<StoredEstimate> quick;
  std::optional<StoredEstimate> full;

  /// Whether the gallery keeps a result of it: it follows a figure, or has pictures.
  bool in_gallery() const;
};

struct Index {
  std::filesystem::path suites;   ///< folder
  std::filesystem::path gallery;  ///< folder of stored results and pictures
  std::string estimated_on;       ///< the machine of the estimates: its rates, in words
  std::vector<IndexedSuite> all;  ///< by name

  /// The suites that follow the figure.
  std::vector<const IndexedSuite*> of_figure(const std::string& name) const;
  const IndexedSuite* find(const std::string& suite) const;
};

/// Reads suites (other files are left out), SUITES/form/estimates.json where it is there, and
/// stored results. Throws UsageFailure for estimates of another form.
Index read_index(const std::filesystem::path& suites, const std::filesystem::path& gallery);

/// The suites of the gallery that `words` select, each a paper, a figure or a suite; all for none.
/// Throws UsageFailure for any other word, naming the nearest.
std::vector<const IndexedSuite*> select(const Index& index, const std::vector<std::string>& words);
/// The figures that `words` select.
std::vector<const suite::PaperFigure*> select_figures(const Index& index,
                                                      const std::vector<std::string>& words);

/// The time of the profile `quick` in words: "76 s, measured", "about 12 min" or "not estimated";
/// said of an estimate is where data are to be prepared first.
std::string quick_time(const IndexedSuite& suite);
/// The time and the memory of the whole suite in words: "about 12 min; 1.50 GiB", or "not
/// estimated".
std::string full_time(const IndexedSuite& suite);
/// The stored result in words: "2026-11-24, 1a2b3c4, 2 threads, load 0.10" of a current result,
/// else its state.
std::string stored_words(const IndexedSuite& suite);

/// Writes a suite as `attnbench figures --json` has it.
void to_json(nlohmann::json& json, const IndexedSuite& suite);

/// The index as JSON, {"figures": […], "others": […], "not_kept": […], "estimated_on": …}:
/// `not_kept` has the suites of which the gallery keeps no result, whatever was selected.
/// docs/blocks.py reads it.
nlohmann::json as_json(const Index& index, const std::vector<const suite::PaperFigure*>& figures,
                       const std::vector<const IndexedSuite*>& suites);

}  // namespace attnbench::gallery
