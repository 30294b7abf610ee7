#include "harness/program/gallery/stored.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/failure.hpp"
#include "core/json_file.hpp"
#include "core/output_file.hpp"
#include "core/text/printable.hpp"

namespace attnbench::gallery {
namespace {

namespace fs = std::filesystem;

/// The median of a round with its interval, and whether it was disturbed.
result::TimingRound stripped_round(const result::TimingRound& whole) {
  result::TimingRound round;
  round.round = whole.round;
  round.median_seconds = whole.median_seconds;
  round.low_seconds = whole.low_seconds;
  round.high_seconds = whole.high_seconds;
  round.disturbed = whole.disturbed;
  round.disturbed_by = whole.disturbed_by;
  return round;
}

/// Keeps what a reader asks of a check: the error, the tolerance, and the reference.
void strip_check(result::Check& check) {
  std::erase_if(check.further, [](const auto& member) {
    return member.first != "error" && member.first != "tolerance" && member.first != "reference";
  });
}

/// Six significant digits, which no measurement here exceeds, in half the bytes.
Json rounded(Json value) {
  if (value.is_number_float()) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.6g", value.get<double>());
    return std::strtod(text.data(), nullptr);
  }
  if (value.is_structured()) {
    for (Json& item : value) item = rounded(std::move(item));
  }
  return value;
}

/// A stored result without its cells, which are not even parsed.
result::Result head_of(const fs::path& file) {
  const std::string text = read_file(file, "a stored result, in JSON", 4 * mebibyte);
  const BoundsFault fault = bounds_fault(text, {});
  if (!fault.reason.empty()) throw UsageFailure(file.string() + ": " + fault.reason);
  const auto wanted = [](int depth, Json::parse_event_t event, Json& parsed) {
    return !(depth == 2 && event == Json::parse_event_t::key && parsed == "cells") &&
           !(depth == 1 && event == Json::parse_event_t::key && parsed != "attnbench");
  };
  const Json whole = Json::parse(text, wanted, false);
  if (whole.is_discarded()) throw UsageFailure(file.string() + ": is not JSON, or is cut off");
  if (!whole.is_object() || whole.empty() || !whole.front().is_object()) {
    throw UsageFailure(file.string() + ": is not a result: it has no object \"attnbench\"");
  }
  try {
    return whole.get<result::Result>();
  } catch (const UsageError& error) {
    throw UsageFailure(file.string() + ": is not of the form of a result: " + error.what());
  }
}

}  // namespace

ATTNBENCH_JSON_WRITER(Stored) {
  json.at("file", value.file.string());
  JSON_AT(commit, finished_at, cpu_model);
  JSON_MAYBE(wall_seconds, threads, load);
}

result::Result stripped(result::Result result, const std::string& published) {
  for (result::CellRecord& cell : result.cells) {
    cell.detail = nullptr;
    cell.reproduce.clear();
    cell.reused_from.clear();
    if (cell.check) strip_check(*cell.check);
    for (auto& [what, timing] : cell.timing) {
      for (result::TimingRound& round : timing.rounds) round = stripped_round(round);
    }
  }
  result.benchmarks = Json::array();
  result.context.clear();
  const std::string& profile = result.suite.profile;
  result.run.command = "attnbench run suites/" + result.suite.name + ".json" +
                       (profile.empty() ? "" : " --profile " + profile);
  result.run.plugins.reset();
  result.machine.host.clear();
  result.machine.environment.reset();
  if (result.machine.load) result.machine.load->further.clear();
  result.suite.published = published;
  return result;
}

std::string stored_text(const result::Result& stripped) {
  std::string text = rounded(Json(stripped)).dump() + "\n";
  if (text.size() <= max_stored_bytes) return text;
  throw UsageFailure(stripped.suite.name + ": its result has " + std::to_string(text.size()) +
                     " bytes without samples; expected at most " +
                     std::to_string(max_stored_bytes) + ": fewer cells or rounds");
}

fs::path store(const result::Result& result, const fs::path& folder, const fs::path& suites) {
  const std::string& name = result.suite.name;
  if (result.run.state != "complete") {
    throw UsageFailure(name + ": the run is " + result.run.state +
                       "; only a complete one is stored");
  }
  const bool measured =
      std::any_of(result.cells.begin(), result.cells.end(),
                  [](const result::CellRecord& cell) { return is_ok(cell) || is_disturbed(cell); });
  if (!measured) throw UsageFailure(name + ": nothing was measured, so nothing is stored");
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw EnvironmentFailure(folder.string() + ": " + error.message());
  const std::string published =
      result.suite.published.empty()
          ? ""
          : fs::proximate(suites / fs::path(result.suite.published).filename(), folder, error)
                .string();
  const fs::path file = folder / (name + ".json");
  write_atomically(file, stored_text(stripped(result, published)));
  return file;
}

std::optional<Stored> look_up(const fs::path& folder, const std::string& suite) {
  Stored stored;
  stored.file = folder / (suite + ".json");
  std::error_code ignored;
  if (!fs::exists(stored.file, ignored)) return std::nullopt;
  try {
    const result::Result head = head_of(stored.file);
    if (head.suite.name.empty() || (head.suite.name == suite && head.suite.hash.empty())) {
      throw UsageFailure(stored.file.string() +
                         ": is not of the form of a result: it does not name its suite and hash");
    }
    if (head.suite.name != suite) {
      throw UsageFailure(stored.file.string() + ": is a result of " +
                         text::quotable("\"" + head.suite.name + "\"") + ", not of " + suite);
    }
    stored.suite_hash = head.suite.hash;
    stored.settings_hash = head.suite.settings_hash;
    stored.profile = head.suite.profile;
    stored.finished_at = head.run.finished_at;
    stored.threads = head.run.threads;
    stored.wall_seconds = head.run.wall_seconds;
    stored.commit = head.provenance.commit;
    stored.cpu_model = head.machine.cpu_model;
    if (head.machine.load) stored.load = head.machine.load->average_1_minute;
  } catch (const UsageFailure& failure) {
    stored.fault = failure.what();
  }
  return stored;
}

}  // namespace attnbench::gallery
