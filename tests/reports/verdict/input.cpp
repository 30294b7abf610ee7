#include "reports/verdict/input.hpp"

#include "reports/verdict/sentences.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using namespace attnbench::reports;

TEST_CASE("a stored result has a verdict with machine, conditions and exact attention",
          "[verdict]") {
  const verdict::Input input = verdict::input_of(test::fixture_result("fixtures/quickstart"));
  CHECK(input.machine == "a CPU, 2 threads");
  REQUIRE(input.questions.size() == 2);
  const verdict::Question& forward = input.questions[0];
  CHECK(forward.axis == "length");
  CHECK(forward.what == "forward");
  for (const char* part : {"float32", "scope mix", "D=64", "cpu"}) {
    CHECK(forward.conditions.find(part) != std::string::npos);
  }
  for (const verdict::Cell& cell : forward.cells) {
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

TEST_CASE("a decoding's length is said to be that of its context", "[verdict]") {
  std::vector<result::CellRecord> cells;
  for (const char* label : {"softmax", "latte"}) {
    test::CellBuilder cell(label, "decode");
    cell.length(1).set("steps", 8192).took(1, "step");
    cells.push_back(cell);
  }
  const verdict::Input input = verdict::input_of(test::result_of(cells));
  CHECK(input.questions.at(0).place == "a context of length");
  CHECK(input.questions.at(0).conditions.find("8192 tokens decoded") != std::string::npos);
}
