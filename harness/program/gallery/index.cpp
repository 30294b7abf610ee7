#include "harness/program/gallery/index.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "core/failure.hpp"
#include "core/hash.hpp"
#include "core/json_file.hpp"
#include "core/text/format.hpp"
#include "core/text/spelling.hpp"
#include "harness/program/run/plan/pace.hpp"
#include "harness/program/suite/document.hpp"
#include "harness/program/suite/profile.hpp"

namespace attnbench::gallery {
namespace {

namespace fs = std::filesystem;
using suite::PaperFigure;
using Json = nlohmann::json;

constexpr std::size_t max_suite_bytes = 4 * mebibyte;

/// Without a check against the schema, which takes longer than all else; `validate` has it.
std::optional<IndexedSuite> suite_from(const fs::path& file) {
  IndexedSuite suite;
  suite.file = file;
  suite.name = file.stem().string();
  try {
    const std::string text = read_file(file, "a suite, in JSON", max_suite_bytes);
    const nlohmann::ordered_json json = parse_json(text, file.string(), "a suite");
    if (!suite::is_suite(json)) return std::nullopt;
    const suite::SuiteHead head = suite::suite_head(json);
    suite.title = head.title;
    suite.figure = head.figure;
    suite.hash = hash_text(text);
    suite.settings_hash = suite::settings_hash(json);
  } catch (const UsageFailure&) {
    return std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
  return suite;
}

void add_stored(IndexedSuite& suite, const fs::path& gallery) {
  suite.stored = look_up(gallery, suite.name);
  if (!suite.stored) return;
  const std::string profile = suite::gallery_profile(suite.name);
  if (!suite.stored->fault.empty()) {
    suite.state = StoredState::unreadable;
    suite.state_reason = suite.stored->fault;
  } else if (suite.stored->profile != profile) {
    suite.state = StoredState::stale;
    suite.state_reason = "it is of the profile \"" + suite.stored->profile + "\"";
  } else if (suite.stored->suite_hash != suite.hash &&
             suite.stored->settings_hash != suite.settings_hash) {
    suite.state = StoredState::stale;
    suite.state_reason = "the suite has changed since";
  } else {
    suite.state = StoredState::current;
  }
}

/// The file of estimates, which docs/blocks.py writes: by suite and profile.
struct EstimatesFile {
  std::string machine;
  std::map<std::string, std::map<std::string, StoredEstimate>> suites;
};
ATTNBENCH_JSON_READER(EstimatesFile) { JSON_AT(machine, suites); }

void add_estimates(Index& index) {
  const fs::path file = index.suites / "form" / "estimates.json";
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return;
  const Json json = parse_json_file(file, "estimates of the suites, in JSON");
  EstimatesFile read;
  try {
    read = json.get<EstimatesFile>();
  } catch (const UsageError& error) {
    throw UsageFailure(file.string() + ": " + error.what() +
                       "; `docs/blocks.py --estimate` writes it again");
  }
  index.estimated_on = read.machine;
  for (IndexedSuite& suite : index.all) {
    for (const auto& [profile, estimate] : read.suites[suite.name]) {
      (profile == "quick" ? suite.quick : suite.full) = estimate;
    }
  }
}

/// Whether the word is the suite, or the figure or paper that it follows.
bool selects(const std::string& word, const IndexedSuite& suite) {
  return word == suite.name || word == suite.figure ||
         (!suite.figure.empty() && suite.figure.rfind(word + ".", 0) == 0);
}

bool selects(const std::string& word, const PaperFigure& figure) {
  return word == figure.name || word == figure.paper;
}

void expect_known(const Index& index, const std::vector<std::string>& words) {
  std::vector<std::string> known;
  for (const PaperFigure& figure : suite::paper_figures()) {
    if (std::find(known.begin(), known.end(), figure.paper) == known.end()) {
      known.push_back(figure.paper);
    }
  }
  for (const PaperFigure& figure : suite::paper_figures()) known.push_back(figure.name);
  for (const IndexedSuite& suite : index.all) {
    if (suite.in_gallery()) known.push_back(suite.name);
  }
  for (const std::string& word : words) {
    if (std::find(known.begin(), known.end(), word) != known.end()) continue;
    throw UsageFailure("there is no paper, figure or suite of the gallery \"" + word + "\"; " +
                       text::suggestion(word, known));
  }
}

std::string about(const StoredEstimate& estimate) {
  if (estimate.seconds <= 0) return "not estimated";
  return "about " + run::human_duration(estimate.seconds);
}

/// Said after an estimate's numbers.
std::string data_words(const StoredEstimate& estimate) {
  return estimate.seconds > 0 && estimate.without_data > 0 ? "; its data are to be prepared first"
                                                           : "";
}

/// What the stored result took, if it is current and of that profile.
std::optional<std::string> measured_time(const IndexedSuite& suite, const std::string& profile) {
  const bool measured = suite.state == StoredState::current && suite.stored->wall_seconds &&
                        suite.stored->profile == profile;
  if (!measured) return std::nullopt;
  return run::human_duration(*suite.stored->wall_seconds) + ", measured";
}

/// Null where there is none.
Json json_of(const std::optional<StoredEstimate>& estimate) {
  if (!estimate) return nullptr;
  return {{"estimated_seconds", estimate->seconds},
          {"peak_bytes", estimate->peak_bytes},
          {"cells", estimate->cells},
          {"without_data", estimate->without_data}};
}

}  // namespace

ATTNBENCH_JSON_READER(StoredEstimate) {
  JSON_AT(seconds, peak_bytes, cells);
  JSON_MAYBE(without_data);
}

ATTNBENCH_JSON_WRITER(IndexedSuite) {
  json.at("file", value.file.string());
  JSON_AT(name, title);
  json.at("quick", json_of(value.quick));
  json.at("paper", json_of(value.full));
  json.at("words", Json{{"quick", quick_time(value)},
                        {"paper", full_time(value)},
                        {"stored", stored_words(value)}});
  json.at("state", std::string(word_of(value.state)));
  JSON_MAYBE(state_reason);
  if (value.stored && value.stored->fault.empty()) JSON_MAYBE(stored);
}

const char* word_of(StoredState state) {
  switch (state) {
    case StoredState::none:
      return "none";
    case StoredState::unreadable:
      return "unreadable";
    case StoredState::stale:
      return "stale";
    case StoredState::current:
      return "current";
  }
  return "none";
}

bool IndexedSuite::in_gallery() const {
  const auto& pictures = suite::gallery_pictures();
  return !figure.empty() ||
         std::any_of(pictures.begin(), pictures.end(),
                     [this](const suite::Picture& one) { return one.suite == name; });
}

std::vector<const IndexedSuite*> Index::of_figure(const std::string& name) const {
  std::vector<const IndexedSuite*> found;
  for (const IndexedSuite& suite : all) {
    if (suite.figure == name) found.push_back(&suite);
  }
  return found;
}

const IndexedSuite* Index::find(const std::string& suite) const {
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const IndexedSuite& one) { return one.name == suite; });
  return found == all.end() ? nullptr : &*found;
}

Index read_index(const fs::path& suites, const fs::path& gallery) {
  Index index;
  index.suites = suites;
  index.gallery = gallery;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(suites, ignored)) {
    if (entry.path().extension() != ".json") continue;
    std::optional<IndexedSuite> suite = suite_from(entry.path());
    if (!suite) continue;
    add_stored(*suite, gallery);
    index.all.push_back(std::move(*suite));
  }
  std::sort(index.all.begin(), index.all.end(),
            [](const IndexedSuite& a, const IndexedSuite& b) { return a.name < b.name; });
  add_estimates(index);
  return index;
}

std::vector<const IndexedSuite*> select(const Index& index, const std::vector<std::string>& words) {
  expect_known(index, words);
  std::vector<const IndexedSuite*> chosen;
  for (const IndexedSuite& suite : index.all) {
    const bool wanted =
        words.empty() || std::any_of(words.begin(), words.end(),
                                     [&](const auto& word) { return selects(word, suite); });
    if (wanted && suite.in_gallery()) chosen.push_back(&suite);
  }
  return chosen;
}

std::vector<const PaperFigure*> select_figures(const Index& index,
                                               const std::vector<std::string>& words) {
  expect_known(index, words);
  std::vector<const PaperFigure*> chosen;
  for (const PaperFigure& figure : suite::paper_figures()) {
    const bool wanted = std::any_of(words.begin(), words.end(), [&](const std::string& word) {
      const IndexedSuite* suite = index.find(word);
      return selects(word, figure) || (suite != nullptr && suite->figure == figure.name);
    });
    if (wanted || words.empty()) chosen.push_back(&figure);
  }
  return chosen;
}

std::string quick_time(const IndexedSuite& suite) {
  if (const auto measured = measured_time(suite, "quick")) return *measured;
  if (!suite.quick) return "not estimated";
  return about(*suite.quick) + data_words(*suite.quick);
}

std::string full_time(const IndexedSuite& suite) {
  if (const auto measured = measured_time(suite, "")) return *measured;
  if (!suite.full || suite.full->seconds <= 0) return "not estimated";
  return about(*suite.full) + "; " + text::human_bytes(suite.full->peak_bytes) +
         data_words(*suite.full);
}

std::string stored_words(const IndexedSuite& suite) {
  if (suite.state != StoredState::current) return word_of(suite.state);
  const Stored& stored = *suite.stored;
  std::string words = stored.finished_at.substr(0, 10) + ", " + stored.commit.substr(0, 7);
  if (stored.threads) words += ", " + std::to_string(*stored.threads) + " threads";
  if (stored.load) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), ", load %.2f", *stored.load);
    words += text.data();
  }
  return words;
}

Json as_json(const Index& index, const std::vector<const PaperFigure*>& figures,
             const std::vector<const IndexedSuite*>& suites) {
  Json all = Json::array();
  Json others = Json::array();
  for (const PaperFigure* figure : figures) {
    Json own = Json::array();
    for (const IndexedSuite* suite : index.of_figure(figure->name)) own.push_back(Json(*suite));
    all.push_back({{"name", figure->name},
                   {"label", figure->label},
                   {"title", figure->title},
                   {"missing", figure->missing},
                   {"differs", figure->differs},
                   {"suites", std::move(own)}});
  }
  for (const IndexedSuite* suite : suites) {
    if (suite->figure.empty()) others.push_back(Json(*suite));
  }
  Json not_kept = Json::array();
  for (const IndexedSuite& suite : index.all) {
    if (!suite.in_gallery()) not_kept.push_back(Json(suite));
  }
  return {{"figures", std::move(all)},
          {"others", std::move(others)},
          {"not_kept", std::move(not_kept)},
          {"estimated_on", index.estimated_on}};
}

}  // namespace attnbench::gallery
