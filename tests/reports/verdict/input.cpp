#include "reports/verdict/input.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "reports/verdict/sentences.hpp"
#include "tests/reports/verdict/words.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using namespace attnbench::reports;

namespace {

/// Three rounds each of exact attention and ten mechanisms that cross it at `crossing`. Rounds
/// scatter by 18 % in a run, and every time by 16 % more between runs, as in five idle runs of
/// quickstart on a virtual machine.
result::Result noisy_run(std::mt19937_64& random, double crossing) {
  std::normal_distribution<double> in_run(0, 0.18), between_runs(0, 0.16);
  std::vector<result::CellRecord> cells;
  for (int mechanism = 0; mechanism <= 10; ++mechanism) {
    for (const int length : {256, 512, 1024, 2048, 8192}) {
      const std::string name =
          mechanism == 0 ? "softmax" : std::string(1, static_cast<char>('a' + mechanism));
      const double usual = std::pow(length / crossing, mechanism == 0 ? 2 : 1);
      const double of_run = between_runs(random);
      std::vector<double> rounds;
      for (int i = 0; i < 3; ++i) rounds.push_back(usual * std::exp(of_run + in_run(random)));
      test::CellBuilder cell(name);
      cell.took(median(rounds)).rounds(rounds).length(length);
      cell.timing.at("forward").low_seconds = *std::min_element(rounds.begin(), rounds.end());
      cell.timing.at("forward").high_seconds = *std::max_element(rounds.begin(), rounds.end());
      cell.timing.at("forward").interval = "range";
      cells.push_back(cell.named(name + std::to_string(length)));
    }
  }
  return test::result_of(cells);
}

}  // namespace

TEST_CASE("crossovers of three rounds cover the true one, and say where it is", "[verdict]") {
  constexpr double crossing = 1400;
  std::mt19937_64 random(3);
  int said = 0, covered = 0, asked = 0, disjoint = 0;
  std::vector<double> widths;
  std::map<std::string, std::pair<double, double>> before;
  for (int run = 0; run < 40; ++run) {
    const verdict::Verdict verdict = verdict::verdict_of(noisy_run(random, crossing));
    for (const verdict::CrossingStatement& one : verdict.answers.at(0).crossings) {
      ++asked;
      if (one.crossing != verdict::CrossingKind::found) continue;
      ++said;
      const double low = one.low.value_or(one.shortest);
      covered += low <= crossing && crossing <= one.high;
      widths.push_back(one.high / low);
      const auto [other, is_new] = before.try_emplace(one.label, low, one.high);
      disjoint += !is_new && (other->second.first > one.high || other->second.second < low);
      other->second = {low, one.high};
    }
  }
  CHECK(said > 0.9 * asked);
  CHECK(covered >= 0.95 * said);
  CHECK(disjoint <= 0.02 * said);
  CHECK(median(widths) < 3.5);
}

TEST_CASE("a stored result has a verdict with machine, conditions and exact attention",
          "[verdict]") {
  const verdict::VerdictInput input =
      verdict::input_of(test::fixture_result("fixtures/quickstart"));
  CHECK(input.machine == "a CPU, 2 threads");
  REQUIRE(input.questions.size() == 2);
  const verdict::PanelQuestion& forward = input.questions[0];
  CHECK(forward.axis == "length");
  CHECK(forward.what == "forward");
  for (const char* part : {"float32", "scope mix", "D=64", "cpu"}) {
    CHECK(forward.conditions.find(part) != std::string::npos);
  }
  for (const verdict::Candidate& cell : forward.cells) {
    CHECK(cell.exact == (cell.label == "softmax" || cell.label == "flash"));
    CHECK(cell.time.has_value());
    CHECK(cell.workspace_bytes.has_value());
    if (cell.label == "flash") CHECK(cell.implementation == "softmax/tiled");
  }
  const verdict::Verdict verdict = verdict::judge(input);
  CHECK(verdict.answers[0].fastest.size() == 3);
  CHECK(verdict.answers[0].crossings.size() == 4);
  REQUIRE(verdict.exceptions.size() == 1);
  CHECK(verdict.exceptions[0].count == 1);
  CHECK(verdict.answers[1].states.size() >= 3);
  CHECK(verdict.sentence.find("On a CPU, 2 threads, ") == 0);
}

TEST_CASE("a stored training has accuracies and no ranked times", "[verdict]") {
  const auto verdict = verdict::verdict_of(test::fixture_result("fixtures/mqar_smoke"));
  REQUIRE(verdict.answers.size() == 1);
  CHECK(verdict.answers[0].fastest.empty());
  CHECK(verdict.answers[0].accuracies.size() == 7);
  CHECK(verdict.answers[0].accuracies.front().state_bytes.has_value());
}

TEST_CASE("an option on the axis is part of a training's label", "[verdict]") {
  std::vector<result::CellRecord> cells;
  for (const int latents : {16, 32}) {
    test::CellBuilder cell = test::training_cell("latte", 1e-3, 0, 0.8, latents / 100.0);
    cell.named(std::to_string(latents)).option("latents_per_head", latents);
    cells.push_back(cell);
  }
  const auto verdict = verdict::verdict_of(test::result_of(cells, "latents_per_head"));
  REQUIRE(verdict.answers[0].accuracies.size() == 2);
  CHECK(verdict.answers[0].accuracies[0].label == "latte, latents_per_head=32");
}

TEST_CASE("an error of the check alone is told from others by the stored check", "[verdict]") {
  std::vector<result::CellRecord> cells;
  for (const char* label : {"softmax", "latte", "linear"}) {
    for (const int length : {256, 512}) {
      test::CellBuilder cell(label);
      cell.named(label + std::to_string(length)).length(length).took(1).rounds({1, 1, 1});
      if (length == 512 && cell.label != "softmax") {
        cell.untimed().ended(Status::error, "whatever it says");
      }
      if (length == 512 && cell.label == "latte") cell.check = result::Check{"unchecked", "", {}};
      cells.push_back(cell);
    }
  }
  const auto verdict = verdict::verdict_of(test::result_of(cells));
  std::string text = test::words_of(verdict);
  CHECK(text.find("latte faster than exact attention: cannot tell at 512: the output of latte "
                  "could not be checked\n") != std::string::npos);
  CHECK(text.find("linear faster than exact attention: cannot tell at 512: linear was ended by an "
                  "error\n") != std::string::npos);
}

TEST_CASE("a decoding's length is said to be that of its context", "[verdict]") {
  std::vector<result::CellRecord> cells;
  for (const char* label : {"softmax", "latte"}) {
    test::CellBuilder cell(label, "decode");
    cell.length(1).set("steps", 8192).took(1, "step");
    cells.push_back(cell);
  }
  const verdict::VerdictInput input = verdict::input_of(test::result_of(cells));
  CHECK(input.questions.at(0).place == "a context of length");
  CHECK(input.questions.at(0).conditions.find("8192 tokens decoded") != std::string::npos);
}

TEST_CASE("the state after a context is not said to be that after many tokens decoded",
          "[verdict]") {
  std::vector<result::CellRecord> cells;
  for (const char* label : {"softmax", "latte"}) {
    for (const int steps : {256, 1024}) {
      test::CellBuilder cell(label, "decode");
      cell.named(label + std::to_string(steps)).length(1).set("steps", steps).took(1, "step");
      cell.metrics["state_bytes"] = 2048;
      cells.push_back(cell);
    }
  }
  const auto states = [&](const std::string& axis) {
    const verdict::VerdictInput input = verdict::input_of(test::result_of(cells, axis));
    return std::count_if(
        input.questions.at(0).cells.begin(), input.questions.at(0).cells.end(),
        [](const verdict::Candidate& cell) { return cell.state_bytes.has_value(); });
  };
  CHECK(states("steps") == 0);
  for (result::CellRecord& cell : cells) cell.settings.erase("steps");
  CHECK(states("length") > 0);
}
