// The verdict over stored recordings of machines, made by `harness/program/compare/study.py
// record`: rounds of one side against itself, or against the plugin `slowed`.
#include <zlib.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/program/compare/paired.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using compare::Match;
using compare::SpeedVerdict;
using Json = nlohmann::json;

namespace {

std::vector<std::filesystem::path> recordings() {
  std::vector<std::filesystem::path> files;
  const auto folder =
      std::filesystem::path(test::source_folder()) / "tests/harness/program/compare/recordings";
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    if (entry.path().extension() == ".gz") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Json unpacked(const std::filesystem::path& file) {
  gzFile stream = gzopen(file.c_str(), "rb");
  REQUIRE(stream != nullptr);
  std::string text;
  std::array<char, 65536> part{};
  int count = 0;
  while ((count = gzread(stream, part.data(), part.size())) > 0) {
    text.append(part.data(), static_cast<std::size_t>(count));
  }
  gzclose(stream);
  REQUIRE(count == 0);
  return Json::parse(text);
}

/// Adds `count` recorded rounds, numbered from `number` on.
void add_rounds(result::CellRecord& cell, const Json& rounds, std::size_t begin, std::size_t count,
                std::size_t side, int number, bool disturbed) {
  for (std::size_t i = 0; i < count; ++i) {
    result::TimingRound one;
    one.round = number + static_cast<std::int64_t>(i);
    one.median_seconds = rounds.at(begin + i).at(side).get<double>();
    one.disturbed = disturbed;
    cell.timing["forward"].rounds.push_back(one);
  }
}

/// The verdict of rounds of one cell, which shares the error with all cells recorded. `confirming`
/// begin those that confirm it.
compare::Pair judged(const Json& rounds, std::size_t begin, std::size_t count, std::size_t cells,
                     std::optional<std::size_t> confirming, bool disturbed) {
  compare::Gate gate;
  if (!confirming) gate.confirm = 0;
  result::Result result;
  if (disturbed) result.run.threads = 1;
  const std::array<const char*, 3> ids{"base", "new", "again"};
  for (std::size_t side = 0; side < 3; ++side) {
    result::CellRecord cell =
        test::CellBuilder(ids[side]).took(rounds.at(begin).at(side).get<double>());
    add_rounds(cell, rounds, begin, count, side, 0, disturbed);
    if (confirming) {
      add_rounds(cell, rounds, *confirming, static_cast<std::size_t>(gate.confirm), side,
                 gate.rounds_most, disturbed);
    }
    result.cells.push_back(cell);
  }
  // As many pairs share the error.
  const std::vector<Match> matches(cells, {"cell", "base", "new", "again"});
  return compare::paired(result, {"base", "new", "again"}, matches, gate).pairs.at(0);
}

/// Whether its rounds are to be judged as if other programs had disturbed each: they are the least
/// samples of all.
bool disturbed(const Json& recording) { return recording.value("least", false); }

using Verdicts = std::map<std::string, int>;

Verdicts none() { return {{"SLOW", 0}, {"FAST", 0}, {"SAME", 0}, {"UNCLEAR", 0}}; }

/// The verdicts of the looks at each block of `size` rounds, where so many cells share the error.
Verdicts verdicts_of_blocks(const Json& recording, std::size_t size, std::size_t sharing) {
  Verdicts count = none();
  const Json& cells = recording.at("cells");
  for (const auto& [name, rounds] : cells.items()) {
    for (std::size_t begin = 0; begin + size <= rounds.size(); begin += size) {
      ++count[to_string(judged(rounds, begin, size, sharing, {}, disturbed(recording)).verdict)];
    }
  }
  return count;
}

/// The verdicts of runs one after another, each of which takes the rounds that it needs.
Verdicts verdicts_of_runs(const Json& recording) {
  Verdicts count = none();
  const Json& cells = recording.at("cells");
  for (const auto& [name, rounds] : cells.items()) {
    std::size_t begin = 0;
    const compare::Gate gate;
    const auto most = static_cast<std::size_t>(gate.rounds_most);
    const auto confirm = static_cast<std::size_t>(gate.confirm);
    while (begin + most + confirm <= rounds.size()) {
      compare::Pair pair = judged(rounds, begin, most, cells.size(), {}, disturbed(recording));
      const std::size_t taken = pair.rounds;
      if (pair.verdict == SpeedVerdict::slow) {
        pair = judged(rounds, begin, taken, cells.size(), begin + taken, disturbed(recording));
        begin += confirm;
      }
      begin += taken;
      ++count[to_string(pair.verdict)];
    }
  }
  return count;
}

/// What a recording of a slowdown says of one side against itself: its base and the base once more.
Json bases_of(const Json& recording) {
  Json bases = recording;
  bases["percent"] = 0;
  for (auto& [name, rounds] : bases["cells"].items()) {
    for (Json& round : rounds) round = {round.at(0), round.at(2), round.at(0)};
  }
  return bases;
}

/// By change, machine and condition: recordings of one count together.
using Together = std::map<std::pair<int, std::string>, Verdicts>;

void add(Together& together, const Json& recording, const Verdicts& verdicts) {
  auto& sum = together[{recording.at("percent").get<int>(),
                        recording.at("machine").get<std::string>() + ", " +
                            recording.at("condition").get<std::string>() +
                            (disturbed(recording) ? ", least samples" : "")}];
  for (const auto& [verdict, count] : verdicts) sum[verdict] += count;
}

}  // namespace

TEST_CASE("verdicts over stored recordings: few false alarms, and what the study says",
          "[compare][ab]") {
  const auto files = recordings();
  if (files.empty())
    WARN("no recording is stored: harness/program/compare/study.py record makes one");
  Together together;
  for (const auto& file : files) {
    INFO(file.filename().string());
    const Json recording = unpacked(file);
    const std::size_t cells = recording.at("cells").size();
    const Verdicts at_12 = verdicts_of_blocks(recording, 12, cells);
    // The study's rules, in Python, are these.
    CHECK(Json(at_12) == recording.at("verdicts").at("12"));
    CHECK(Json(verdicts_of_runs(recording)) == recording.at("verdicts").at("runs"));
    add(together, recording, at_12);
    if (recording.at("percent").get<int>() >= 50 && disturbed(recording)) {
      // What is far from 1 has a verdict beside other programs, too.
      const Verdicts far = verdicts_of_blocks(recording, 24, 1);
      CHECK(far.at("SLOW") >= 14);
      CHECK(far.at("SLOW") * 100 >= 95 * (far.at("SLOW") + far.at("UNCLEAR") + far.at("FAST")));
    }
    if (recording.at("percent").get<int>() > 0) {
      const Json bases = bases_of(recording);
      add(together, bases, verdicts_of_blocks(bases, 12, cells));
    }
  }
  for (const auto& [about, count] : together) {
    INFO(about.second << ", slower by " << about.first << " %");
    int total = 0;
    for (const auto& [verdict, number] : count) total += number;
    REQUIRE(total > 0);
    CHECK(count.at("FAST") * 100 <= total);
    if (about.first == 0) CHECK(count.at("SLOW") * 100 <= total);
  }
}
