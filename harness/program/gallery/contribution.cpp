#include "harness/program/gallery/contribution.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "core/failure.hpp"
#include "core/hash.hpp"
#include "core/output_file.hpp"
#include "core/result/result_check.hpp"
#include "core/text/printable.hpp"
#include "harness/program/gallery/stored.hpp"
#include "harness/program/run/folder/combine.hpp"

namespace attnbench::gallery {
namespace {

namespace fs = std::filesystem;
using result::CellRecord;

/// Flags of `run` and `figures` that choose neither cells nor what they are.
const std::set<std::string> harmless_flags = {"--profile",
                                              "--device",
                                              "--threads",
                                              "--rounds",
                                              "--seed",
                                              "--jobs",
                                              "--out",
                                              "--cell-timeout",
                                              "--now",
                                              "--memory-limit",
                                              "--wait",
                                              "--resume",
                                              "--retry",
                                              "--reuse",
                                              "--fail-on",
                                              "--progress",
                                              "--markdown",
                                              "--junit",
                                              "--no-report",
                                              "--no-plot",
                                              "--timings",
                                              "--force",
                                              "--keep-blas-core",
                                              "--run",
                                              "--again",
                                              "--gallery",
                                              "--tables",
                                              "--data",
                                              "--keep-checkpoints"};

/// Stored rounds have lost the probes that say how fast the machine was beside its ceilings. Of two
/// moments one may have had a neighbour on each core, which takes half of it.
constexpr double busy_ceilings = 2;

[[noreturn]] void refuse(const result::Result& result, const std::string& why,
                         ExitCode code = ExitCode::usage) {
  throw Failure(code, text::quotable(result.suite.name) + ": " + why);
}

/// Paths become the names of their files.
std::string without_folders(std::string text) {
  RE2::GlobalReplace(&text, "(^|[[:space:]\"'(=])/(?:[^/[:space:]\"':,]+/)+", "\\1");
  return text;
}

result::Result cleaned(const result::Result& whole) {
  const std::string published = fs::path(whole.suite.published).filename().string();
  result::Result result = stripped(whole, published.empty() ? "" : "../../suites/" + published);
  for (CellRecord& cell : result.cells) {
    cell.reason = without_folders(cell.reason);
    if (cell.check) cell.check->reason = without_folders(cell.check->reason);
    if (cell.training) cell.training->checkpoint_notes.clear();
    cell.further.erase("python");  // where its file is
  }
  result.run.reason = without_folders(result.run.reason);
  result.run.samples.clear();
  result.run.merged.reset();
  result.run.submission.reset();
  result.machine.kept_from_worker.reset();
  result.machine.noise_sources.reset();  // they name other programs
  if (result.machine.blas) {
    result.machine.blas->library = fs::path(result.machine.blas->library).filename().string();
    result.provenance.further["blas"] = *result.machine.blas;
  }
  result.further["license"] = contribution_licence;
  return result;
}

/// Settings of the command line make other cells, which no other machine has.
void expect_as_suite_says(const result::Result& whole) {
  std::string words = whole.run.command + " ";
  if (!whole.cells.empty()) {
    const std::string& alone = whole.cells.front().reproduce;
    words += alone.substr(0, alone.rfind(" --only "));
  }
  std::istringstream stream(words);
  for (std::string word; stream >> word;) {
    const std::size_t equals = word.find('=');
    const std::string flag = word.substr(0, equals);
    const bool set = !flag.starts_with("--") && equals != std::string::npos;  // NAME=VALUE
    if (!set && (!flag.starts_with("--") || harmless_flags.contains(flag))) continue;
    refuse(whole, "was measured with " + text::quotable(flag) +
                      "; machines are compared by suites as they are: attnbench run " +
                      text::quotable(whole.suite.name));
  }
}

bool is_timed(const CellRecord& cell) {
  return (is_ok(cell) || is_disturbed(cell)) && !cell.timing.empty();
}

/// Whether it is whole, and good enough to stand beside those of other machines.
void expect_comparable(const result::Result& result) {
  const auto count = [&](auto holds) {
    return std::count_if(result.cells.begin(), result.cells.end(), holds);
  };
  if (result.run.state != "complete") {
    refuse(result, "the run is " + text::quotable(result.run.state) +
                       "; only a complete one is contributed");
  }
  if (!result.run.forced.empty() || result.provenance.further.contains("foreign")) {
    refuse(result, "holds runs of several builds, or records of another program");
  }
  if (result.run.shard) refuse(result, "is one shard; attnbench merge joins the shards of a suite");
  if (result.further.contains("machines")) {
    refuse(result, "was merged from several machines; each machine contributes its own");
  }
  if (result.provenance.commit.empty()) {
    refuse(result, "the build knows no commit, so that nobody can measure it again");
  }
  if (!result.run.threads) refuse(result, "it does not say its number of threads");
  const auto wrong = count([](const CellRecord& cell) { return cell.status == Status::wrong; });
  if (wrong > 0) refuse(result, "wrong cells: " + std::to_string(wrong), ExitCode::failed);
  const auto timed = count(is_timed);
  if (timed == 0) refuse(result, "no cell has a time");
  const auto disturbed =
      count([](const CellRecord& cell) { return is_timed(cell) && is_disturbed(cell); });
  if (2 * disturbed > timed) {
    refuse(result,
           std::to_string(disturbed) + " of " + std::to_string(timed) +
               " timed cells are disturbed; on a quiet machine `attnbench run --resume RUN --retry "
               "disturbed` measures them again",
           ExitCode::undecided);
  }
}

/// The first fault of a timing: its median lies between those of its rounds.
std::string timing_fault(const result::Timing& timing) {
  const auto [least, most] = std::minmax_element(
      timing.rounds.begin(), timing.rounds.end(),
      [](const auto& a, const auto& b) { return a.median_seconds < b.median_seconds; });
  if (least == timing.rounds.end()) return "/rounds: expected at least one, found none";
  constexpr double rounding = 1e-5;  // six digits are kept
  if (timing.median_seconds < (1 - rounding) * least->median_seconds ||
      timing.median_seconds > (1 + rounding) * most->median_seconds) {
    return "/median_seconds: expected a number between the medians of the rounds";
  }
  if (timing.low_seconds > timing.median_seconds || timing.high_seconds < timing.median_seconds) {
    return "/low_seconds: expected low, median and high in this order";
  }
  return "";
}

/// The first fault of a timed cell, "POINTER: expected …".
std::string cell_fault(const CellRecord& cell, const Values& ceilings) {
  for (const std::string size : {"batch", "heads", "kv_heads", "length", "head_dim", "value_dim"}) {
    // A problem's head_dim is that of queries and keys.
    const bool keys = size == "head_dim" && cell.settings.count("key_dim") != 0;
    const std::string said = keys ? "key_dim" : size;
    const auto setting = number_of(cell.settings, said), problem = number_of(cell.problem, size);
    if (setting && problem && *setting != *problem) {
      return "/settings/" + said + ": expected that of the problem";
    }
  }
  for (const auto& [what, timing] : cell.timing) {
    const std::string fault = timing_fault(timing);
    if (!fault.empty()) return "/timing/" + what + fault;
  }
  const double calibration = number_of(ceilings, "calibration_seconds").value_or(0);
  if (!(calibration > 0)) {
    return "/device: no ceilings of it were measured, which --no-ceilings leaves out";
  }
  if (!cell.cost) return "";
  const auto reason =
      measure::impossible(run::work_of(cell), ceilings,
                          {result::timing_of(cell)->median_seconds, calibration}, busy_ceilings);
  return reason ? "/timing/" + cell.primary + ": " + *reason : "";
}

void expect_plausible(const result::Result& result) {
  const std::string form = result::result_fault(Json(result));
  if (!form.empty()) refuse(result, form, ExitCode::failed);
  std::set<std::string> ids;
  for (std::size_t i = 0; i < result.cells.size(); ++i) {
    const CellRecord& cell = result.cells[i];
    std::string fault;
    if (cell.id.size() != 12 ||
        cell.id.find_first_not_of("0123456789abcdef") != std::string::npos ||
        !ids.insert(cell.id).second) {
      fault = "/id: expected 12 hexadecimal digits, those of no other cell";
    } else if (is_timed(cell)) {
      fault = cell_fault(cell, result.ceilings_of(cell.device));
    }
    if (fault.empty()) continue;
    refuse(result, "/attnbench/cells/" + std::to_string(i) + fault, ExitCode::failed);
  }
}

/// Nothing says who or where somebody is: no text, and no key that is a path.
void expect_nameless(const result::Result& result, const std::vector<std::string>& names) {
  std::string any;
  for (const std::string& name : names) any += (any.empty() ? "" : "|") + RE2::QuoteMeta(name);
  const std::string as_word = any.empty() ? "" : "(?:^|[^[:alnum:]])((?i:" + any + "))|";
  const RE2 pattern("(?:" + as_word + "(/home|/Users|/root|/tmp))(?:[^[:alnum:]]|$)",
                    RE2::Latin1);  // names may be of any bytes
  const Json flat = Json(result).flatten();
  for (const auto& [pointer, value] : flat.items()) {
    std::string text = pointer, found, folder;
    RE2::GlobalReplace(&text, "/[^/~]*", " ");  // of the keys those with a slash remain
    RE2::GlobalReplace(&text, "~1", "/");
    if (value.is_string()) text += " " + value.get<std::string>();
    const bool holds = any.empty() ? RE2::PartialMatch(text, pattern, &found)
                                   : RE2::PartialMatch(text, pattern, &found, &folder);
    if (!holds) continue;
    found += folder;
    refuse(result, text::quotable(pointer) + ": holds \"" + text::quotable(found) +
                       "\", which says who measured or where; expected no names of users, hosts "
                       "and their folders");
  }
}

/// The words of `text` in lower case, joined by dashes, without what stands in parentheses.
std::string dashed(std::string text) {
  RE2::GlobalReplace(&text, "\\([^)]*\\)", " ");
  for (char& letter : text) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  RE2::GlobalReplace(&text, "[^a-z0-9]+", " ");
  RE2::GlobalReplace(&text, "^ | $", "");
  RE2::GlobalReplace(&text, " ", "-");
  constexpr std::size_t longest = 80;
  return text.empty() ? "unknown" : text.substr(0, longest);
}

}  // namespace

result::Result contributed(const result::Result& whole, const fs::path& suites) {
  const fs::path file = suites / (whole.suite.name + ".json");
  std::error_code ignored;
  if (suites.empty() || !fs::is_regular_file(file, ignored) ||
      hash_file(file) != whole.suite.hash) {
    refuse(whole, "is no suite of " + (suites.empty() ? "the project" : suites.string()) +
                      ", or not as it is there now; machines are compared by the project's suites");
  }
  expect_as_suite_says(whole);
  return cleaned(whole);
}

void expect_contribution(const result::Result& contributed, const std::vector<std::string>& names) {
  expect_comparable(contributed);
  for (const Json& change : Json::diff(Json(contributed), Json(cleaned(contributed)))) {
    refuse(contributed,
           change.at("path").get<std::string>() + ": is not as attnbench contribute writes it");
  }
  expect_plausible(contributed);
  expect_nameless(contributed, names);
}

std::string contribution_name(const result::Result& contributed) {
  const result::MachineCard& machine = contributed.machine;
  std::string name = machine.cpu_model.empty() ? machine.architecture : machine.cpu_model;
  for (const CellRecord& cell : contributed.cells) {
    const auto card = machine.devices.find(cell.device);
    if (is_timed(cell) && card != machine.devices.end()) name = card->second.name;
  }
  return dashed(contributed.suite.name) + "-" + dashed(name) + "-" +
         std::to_string(contributed.run.threads.value_or(0)) + ".json";
}

fs::path store_contribution(const result::Result& contributed, const fs::path& folder, bool force) {
  const fs::path file = folder / contribution_name(contributed);
  std::error_code error;
  if (!force && fs::exists(file, error)) {
    const result::Result there = result::read_result(file);
    if (there.provenance.commit != contributed.provenance.commit ||
        there.provenance.binary != contributed.provenance.binary ||
        there.machine.memory_bytes != contributed.machine.memory_bytes ||
        there.suite.profile != contributed.suite.profile) {
      throw UsageFailure(file.string() + ": is there already, of commit " +
                         text::quotable(there.provenance.commit.substr(0, 8)) + " and profile \"" +
                         text::quotable(there.suite.profile) +
                         "\", or of another build or machine; --force replaces it");
    }
  }
  const std::string text = stored_text(contributed);
  fs::create_directories(folder, error);
  if (error) throw EnvironmentFailure(folder.string() + ": " + error.message());
  write_atomically(file, text);
  return file;
}

}  // namespace attnbench::gallery
