#include "harness/program/counts/counts.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <future>
#include <set>
#include <sstream>
#include <thread>

#include "core/failure.hpp"
#include "core/json_file.hpp"
#include "core/text/printable.hpp"
#include "harness/program/cluster/shell.hpp"

namespace attnbench::counts {
namespace {

using Json = nlohmann::json;

constexpr const char* expected = "counts of attnbench gate";

/// The first key that an object of `text` has twice; empty where none has.
std::string repeated_key(const std::string& text) {
  std::vector<std::set<std::string>> keys;
  std::string repeated;
  const auto look = [&](int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second &&
        repeated.empty()) {
      repeated = value.get<std::string>();
    }
    return true;
  };
  const bool whole = !Json::parse(text, look, false).is_discarded();
  return whole ? repeated : std::string();
}

/// What a program prints under valgrind. The C library copies memory in the form that suits the
/// processor, which changes counts by up to 7 %: all machines are given the one that each has.
std::string under_valgrind(const std::vector<std::string>& words) {
  std::vector<std::string> call{
      "env",
      "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX_Fast_Unaligned_Load,-AVX2,-ERMS,-FSRM,-SSSE3"
      ":glibc.cpu.x86_non_temporal_threshold=0x10000000"};
  call.insert(call.end(), words.begin(), words.end());
  const cluster::CommandAnswer output = cluster::answer_of(call);
  if (output.not_found()) {
    throw EnvironmentFailure("valgrind is not here: install it (apt-get install valgrind)");
  }
  if (output.exit_code != 0) {
    throw EnvironmentFailure("valgrind ended with " + std::to_string(output.exit_code) + ": " +
                             text::quotable(output.text, 600));
  }
  return output.text;
}

/// The instructions of each call. Calls are counted side by side, one a core, since a count is the
/// same on a busy machine.
std::vector<std::int64_t> counts_of(const std::filesystem::path& program,
                                    const std::vector<std::string>& calls) {
  std::vector<std::int64_t> found(calls.size());
  std::atomic<std::size_t> next{0};
  const auto lane = [&] {
    for (std::size_t i = next++; i < calls.size(); i = next++) {
      found[i] = collected_from(
          under_valgrind({"valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
                          "--toggle-collect=attnbench_counted", program.string(), calls[i]}));
    }
  };
  std::vector<std::future<void>> lanes(std::max(1U, std::thread::hardware_concurrency()));
  for (auto& each : lanes) each = std::async(std::launch::async, lane);
  for (auto& each : lanes) each.get();
  return found;
}

}  // namespace

ATTNBENCH_JSON_CODEC(Counts) {
  JSON_AT(version, program, compiler, flags, instruction_set, instructions, workspace_bytes);
}

Counts read_counts(const std::filesystem::path& file) {
  const std::string text = read_file(file, expected);
  const Json json = parse_json(text, file.string(), expected);
  const std::string name = text::quotable(file.string()) + ": ";
  const std::string repeated = repeated_key(text);
  if (!repeated.empty()) {
    throw UsageFailure(name + "\"" + text::quotable(repeated) + "\" is there twice");
  }
  if (json.is_object() && json.contains("version") && json["version"] != counts_version) {
    throw UsageFailure(name + "/version: expected " + std::to_string(counts_version) + ", found " +
                       text::quotable(json["version"].dump()) + "; write it anew with --update");
  }
  try {
    return json.get<Counts>();
  } catch (const SchemaError& error) {
    throw UsageFailure(name + error.what());
  }
}

std::string counts_text(const Counts& counts) { return Json(counts).dump(1) + "\n"; }

std::string not_comparable(const Counts& stored, const Counts& now) {
  const auto differs = [](const char* what, const std::string& then, const std::string& here) {
    return std::string(what) + " " + here + " here, " + then + " in the counts";
  };
  if (stored.compiler != now.compiler) return differs("compiler", stored.compiler, now.compiler);
  if (stored.flags != now.flags) return differs("flags", stored.flags, now.flags);
  if (stored.instruction_set != now.instruction_set) {
    return differs("instruction set", stored.instruction_set, now.instruction_set);
  }
  return "";
}

std::vector<CountChange> findings_of(const std::map<std::string, std::int64_t>& stored,
                                     const std::map<std::string, std::int64_t>& now,
                                     double tolerance) {
  std::vector<CountChange> findings;
  for (const auto& [name, before] : stored) {
    const auto found = now.find(name);
    if (found == now.end()) {
      findings.push_back({CountChange::Kind::gone, name, before, 0});
      continue;
    }
    const std::int64_t after = found->second;
    const double allowed = static_cast<double>(before) * tolerance;
    const auto change = static_cast<double>(after - before);
    if (change > allowed) findings.push_back({CountChange::Kind::more, name, before, after});
    if (-change > allowed) findings.push_back({CountChange::Kind::fewer, name, before, after});
  }
  for (const auto& [name, after] : now) {
    if (!stored.contains(name)) findings.push_back({CountChange::Kind::added, name, 0, after});
  }
  return findings;
}

std::string finding_text(const CountChange& finding, const std::string& unit) {
  const std::string name = finding.name + ": ";
  if (finding.kind == CountChange::Kind::gone) return name + "is in the counts and not here";
  if (finding.kind == CountChange::Kind::added) {
    return name + std::to_string(finding.after) + " " + unit + ", not in the counts";
  }
  std::string text =
      name + std::to_string(finding.before) + " to " + std::to_string(finding.after) + " " + unit;
  if (finding.before > 0) {
    std::array<char, 32> share{};
    std::snprintf(share.data(), share.size(), " (%+.2f %%)",
                  100.0 * static_cast<double>(finding.after - finding.before) /
                      static_cast<double>(finding.before));
    text += share.data();
  }
  return text;
}

std::int64_t collected_from(std::string_view output) {
  const std::string_view word = "Collected :";
  const std::size_t at = output.find(word);
  std::int64_t count = 0;
  if (at != std::string_view::npos) {
    const std::size_t begin = output.find_first_of("0123456789", at + word.size());
    if (begin != std::string_view::npos) {
      std::from_chars(output.data() + begin, output.data() + output.size(), count);
    }
  }
  if (count > 0) return count;
  throw EnvironmentFailure("valgrind counted no instruction: " + text::quotable(output, 400));
}

Counts count_instructions(const std::filesystem::path& program) {
  std::error_code ignored;
  if (!std::filesystem::exists(program, ignored)) {
    throw EnvironmentFailure(text::quotable(program.string()) +
                             " is not there: build it (ninja attnbench-counts)");
  }
  Counts counts;
  counts.program = program.filename().string();
  std::istringstream lines(
      under_valgrind({"valgrind", "-q", "--tool=none", program.string(), "--list"}));
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("isa ", 0) == 0) {
      counts.instruction_set = line.substr(4);
    } else if (line.rfind("==", 0) != 0 && !line.empty()) {
      names.push_back(line);
    }
  }
  const std::vector<std::int64_t> found = counts_of(program, names);
  for (std::size_t i = 0; i < names.size(); ++i) counts.instructions[names[i]] = found[i];
  return counts;
}

}  // namespace attnbench::counts
