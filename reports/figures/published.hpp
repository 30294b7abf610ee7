// Published numbers: what a paper printed, as a CSV file beside the suite.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/tables/layout.hpp"

namespace attnbench::reports {

/// One line of the file. Columns: `label` as in the suite, optionally `task`, one per setting that
/// a number belongs to (`length`, `pass`, …), and the number as `seconds`, `milliseconds`, `bytes`,
/// `megabytes`, `mebibytes`, `speedup` (over the suite's first label, a ratio), `accuracy` (a
/// share), `bits_per_byte`, or `perplexity`, drawn beside that of tokens alone.
/// Times are of what the task times first; bytes are peak memory. A line "# source: WORDS" names
/// where the lines after it are from.
struct PublishedRow {
  std::string label;
  std::string source;  ///< may be empty
  std::map<std::string, std::string> settings;
  std::optional<double> seconds;
  std::optional<double> bytes;
  std::optional<double> speedup;
  std::optional<double> accuracy;
  std::optional<double> bits_per_byte;
  std::optional<double> perplexity;
};

/// A number at its place in a panel.
struct Published {
  std::string label;
  double x = 0;
  double y = 0;  ///< seconds, bytes, a ratio or a share
  std::string source;
};

/// Reads the file; lines that begin with # are its provenance. Throws UsageFailure naming file,
/// line and what was expected.
std::vector<PublishedRow> read_published(const std::filesystem::path& file);

/// The rows that name the panel's axis and agree with its cells of their label in all they say.
std::vector<Published> published_times(const std::vector<PublishedRow>& rows, const Panel& panel);
std::vector<Published> published_speedups(const std::vector<PublishedRow>& rows,
                                          const Panel& panel);
std::vector<Published> published_bytes(const std::vector<PublishedRow>& rows, const Panel& panel);

/// The accuracies of such rows or, where the panel's trainings are language models, bits per byte
/// or perplexities; over `axis`, which need not be the panel's; empty: those that agree in all they
/// say, without a place. Models that the panel does not have are among them, where any of its cells
/// agrees with what the row says.
std::vector<Published> published_accuracies(const std::vector<PublishedRow>& rows,
                                            const Panel& panel, const std::string& axis);

}  // namespace attnbench::reports
