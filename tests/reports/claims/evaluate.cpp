#include "reports/claims/evaluate.hpp"

#include "core/errors.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using namespace attnbench::reports::claims;
using Catch::Matchers::Contains;
using test::CellBuilder;

namespace {

/// A cell of three rounds around `seconds`, 1 % apart.
CellBuilder timed(const std::string& label, int length, double seconds, double bytes = 0) {
  CellBuilder cell(label);
  cell.named(label + std::to_string(length)).length(length).took(seconds, "forward", 0.01);
  cell.rounds({seconds * 0.99, seconds, seconds * 1.01});
  cell.memory["workspace_bytes"] = bytes;
  return cell;
}

/// Latte overtakes attention between 512 and 2048 tokens.
result::Result times() {
  return test::result_of({timed("softmax", 128, 0.01, 100), timed("softmax", 512, 0.16, 1600),
                          timed("softmax", 2048, 2.56, 25600), timed("latte", 128, 0.05, 400),
                          timed("latte", 512, 0.2, 400), timed("latte", 2048, 0.8, 400)});
}

Json quantity(const std::string& label, const Json& length = nullptr,
              const std::string& of = "time") {
  Json made = {{"of", of}, {"label", label}};
  if (!length.is_null()) made["length"] = length;
  return made;
}

PaperClaim claim_of(const Json& predicate, const Json& size = Json::object()) {
  PaperClaim claim = Json{{"name", "one"},   {"claim", "It is so."}, {"place", "Figure 1"},
                          {"suite", "some"}, {"size", size},         {"predicate", predicate}}
                         .get<PaperClaim>();
  claim.paper = "paper";
  return claim;
}

Evidence found(const Json& predicate, const result::Result& result = times()) {
  return evaluate(claim_of(predicate), result);
}

std::string outcome(const Json& predicate, const result::Result& result = times()) {
  return to_string(found(predicate, result).outcome);
}

void evaluation_refused(const Json& predicate, const std::string& message,
                        const result::Result& result = times()) {
  INFO(predicate.dump());
  CHECK_THROWS_WITH(found(predicate, result),
                    Contains("the claim paper.one: ") && Contains(message));
}

result::Result trainings(const std::vector<double>& latte, const std::vector<double>& softmax,
                         bool converged = true) {
  std::vector<result::CellRecord> cells;
  const auto add = [&](const std::string& label, const std::vector<double>& accuracies) {
    for (std::size_t seed = 0; seed < accuracies.size(); ++seed) {
      CellBuilder cell =
          test::training_cell(label, 0.01, static_cast<int>(seed), 0.9, accuracies[seed]);
      cell.training->converged = converged;
      cells.push_back(cell);
    }
  };
  add("latte", latte);
  add("softmax", softmax);
  return test::result_of(cells);
}

const Json more_accurate = {
    {"less", {quantity("softmax", nullptr, "accuracy"), quantity("latte", nullptr, "accuracy")}}};

}  // namespace

TEST_CASE("one time less than another is seen, its opposite and what overlaps told apart",
          "[claims]") {
  const Json less = {{"less", {quantity("latte", 2048), quantity("softmax", 2048)}}};
  CHECK(outcome(less) == "seen");
  CHECK_THAT(found(less).found, Contains("at length 2048: latte 800 ms") && Contains("ratio 0.31"));
  CHECK(outcome({{"less", {quantity("latte", 128), quantity("softmax", 128)}}}) == "opposite seen");
  result::Result close = times();
  close.cells[5] = timed("latte", 2048, 2.55);
  const Evidence overlapping = found(less, close);
  CHECK(overlapping.outcome == ClaimOutcome::undecided);
  CHECK(overlapping.leaning == Leaning::towards);
  CHECK_THAT(overlapping.reason, Contains("interval"));
}

TEST_CASE("a chain of less holds where each pair does", "[claims]") {
  const Json rising = {quantity("softmax", 128), quantity("softmax", 512),
                       quantity("softmax", "greatest")};
  CHECK(outcome({{"less", rising}}) == "seen");
  const Json broken = {quantity("softmax", 128), quantity("softmax", 2048),
                       quantity("softmax", 512)};
  CHECK(outcome({{"less", broken}}) == "opposite seen");
}

TEST_CASE("ratios are held to bounds, bytes exactly", "[claims]") {
  const auto ratio = [](const char* of, const Json& within) {
    return outcome({{"ratio", {quantity("softmax", "greatest", of), quantity("latte", 2048, of)}},
                    {"within", within}});
  };
  CHECK(ratio("time", {2, 4}) == "seen");
  CHECK(ratio("time", {4, nullptr}) == "opposite seen");
  CHECK(ratio("time", {3.2, nullptr}) == "cannot tell");
  CHECK(ratio("memory.workspace_bytes", {64, 64}) == "seen");
  CHECK(ratio("memory.workspace_bytes", {nullptr, 63}) == "opposite seen");
  // Equal bytes are not less.
  CHECK(outcome({{"less",
                  {quantity("latte", 128, "memory.workspace_bytes"),
                   quantity("latte", 512, "memory.workspace_bytes")}}}) == "opposite seen");
}

TEST_CASE("along a setting a claim has to hold at each of its values", "[claims]") {
  const auto less = [](const Json& quantities) {
    return Json{{"less", quantities}, {"along", "length"}};
  };
  const Evidence broken = found(less({quantity("latte"), quantity("softmax")}));
  CHECK(broken.outcome == ClaimOutcome::opposite);
  CHECK_THAT(broken.found, Contains("length 128") && Contains("length 512") && !Contains("2048"));
  const Json slower = {{"ratio", {quantity("softmax"), quantity("latte")}},
                       {"within", {0.1, 4}},
                       {"along", "length"}};
  CHECK(outcome(slower) == "seen");
}

TEST_CASE("a crossing is found with its interval, and held to the published one", "[claims]") {
  const auto crossing = [](const char* a, const char* b, const Json& within = nullptr) {
    Json predicate = {{"crossing", {quantity(a), quantity(b)}}, {"along", "length"}};
    if (!within.is_null()) predicate["within"] = within;
    return predicate;
  };
  CHECK(outcome(crossing("latte", "softmax")) == "seen");
  CHECK_THAT(found(crossing("latte", "softmax")).found, Contains("from 640"));
  CHECK(outcome(crossing("latte", "softmax", {500, 800})) == "seen");
  CHECK(outcome(crossing("latte", "softmax", {2500, 3500})) == "opposite seen");
  CHECK(outcome(crossing("softmax", "latte")) == "opposite seen");
  // Faster at every length was overtaken before the shortest.
  result::Result fast = times();
  for (std::size_t i = 3; i < 6; ++i) fast.cells[i].timing = timed("latte", 1, 0.001).timing;
  CHECK(outcome(crossing("latte", "softmax"), fast) == "seen");
  CHECK(outcome(crossing("latte", "softmax", {2500, 3500}), fast) == "opposite seen");
  // A crossing of longer sequences than were measured is not refuted.
  CHECK(outcome(crossing("softmax", "latte", {9000, 10000})) == "cannot tell");
}

TEST_CASE("a single quantity is held to bounds, a training's over its seeds", "[claims]") {
  const auto value = [](const Json& quantity, const Json& within) {
    return Json{{"value", quantity}, {"within", within}};
  };
  CHECK(outcome(value(quantity("latte", 2048), {0.5, 1})) == "seen");
  CHECK(outcome(value(quantity("latte", 2048), {1, nullptr})) == "opposite seen");
  const Json accuracy = quantity("latte", nullptr, "accuracy");
  CHECK(outcome(value(accuracy, {0.8, nullptr}), trainings({0.9, 0.91, 0.92}, {})) == "seen");
  CHECK(outcome(value(accuracy, {0.8, nullptr}), trainings({0.4, 0.81, 0.99}, {})) ==
        "cannot tell");
  CHECK_THAT(found(value(accuracy, {0.8, nullptr}), trainings({0.9}, {})).reason,
             Contains("one seed"));
  // What all seeds share is exact.
  CHECK(outcome(value(quantity("latte", nullptr, "metrics.state_bytes"), {16384, 16384}),
                trainings({0.9, 0.8}, {})) == "seen");
}

TEST_CASE("a part of a cell's time is ranked as the whole is", "[claims]") {
  result::Result result = times();
  for (result::CellRecord& cell : result.cells) {
    cell.timing["step"] = cell.timing["forward"];
    for (result::TimingRound& round : cell.timing["step"].rounds) round.median_seconds /= 2;
    for (double* seconds : {&cell.timing["step"].median_seconds, &cell.timing["step"].low_seconds,
                            &cell.timing["step"].high_seconds}) {
      *seconds /= 2;
    }
  }
  const Json step = {{"value", quantity("latte", 2048, "time.step")}, {"within", {0.3, 0.5}}};
  CHECK(outcome(step, result) == "seen");
  evaluation_refused({{"value", quantity("latte", 2048, "time.backward")}, {"within", {0, 1}}},
                     "no \"time.backward\" was measured", result);
}

TEST_CASE("a slope is held to bounds", "[claims]") {
  const auto slope = [](const char* label, const Json& within) {
    return outcome({{"slope", quantity(label)}, {"along", "length"}, {"within", within}});
  };
  CHECK(slope("softmax", {1.9, 2.1}) == "seen");
  CHECK(slope("softmax", {0.9, 1.1}) == "opposite seen");
  CHECK(slope("latte", {0.9, 1.1}) == "seen");
}

TEST_CASE("all of several: one opposite decides, one unknown leaves it open", "[claims]") {
  const Json yes = {{"less", {quantity("latte", 2048), quantity("softmax", 2048)}}};
  const Json no = {{"less", {quantity("latte", 128), quantity("softmax", 128)}}};
  const Json open = {{"ratio", {quantity("softmax", 2048), quantity("latte", 2048)}},
                     {"within", {3.2, nullptr}}};
  CHECK(outcome({{"all", {yes, yes}}}) == "seen");
  CHECK(outcome({{"all", {yes, no}}}) == "opposite seen");
  CHECK(outcome({{"all", {no, open}}}) == "opposite seen");
  CHECK(outcome({{"all", {yes, open}}}) == "cannot tell");
}

TEST_CASE("cells that are disturbed or missing leave a claim open", "[claims]") {
  const Json less = {{"less", {quantity("latte", 2048), quantity("softmax", 2048)}}};
  result::Result disturbed = times();
  disturbed.cells[2].status = Status::disturbed;
  CHECK(outcome(less, disturbed) == "cannot tell");
  CHECK_THAT(found(less, disturbed).reason, Contains("softmax at length 2048 was disturbed"));
  // Bytes are what they are, whoever had the CPU.
  const Json bytes = {{"less",
                       {quantity("latte", 2048, "memory.workspace_bytes"),
                        quantity("softmax", 2048, "memory.workspace_bytes")}}};
  CHECK(outcome(bytes, disturbed) == "seen");
  CHECK(outcome({{"less", {quantity("latte", 4096), quantity("softmax", 2048)}}}) == "not run");
  CHECK(outcome({{"less", {quantity("latte", 2048), quantity("gone", 2048)}}}) == "not run");
  result::Result single = times();
  single.cells[5].timing["forward"].rounds.resize(1);
  CHECK_THAT(found(less, single).reason, Contains("not timed in several processes"));
}

TEST_CASE("trainings are compared seed by seed", "[claims]") {
  const auto seen = [](const result::Result& result) { return outcome(more_accurate, result); };
  CHECK(seen(trainings({0.9, 0.8, 0.7}, {0.85, 0.75, 0.66})) == "seen");
  CHECK(seen(trainings({0.85, 0.75, 0.66}, {0.9, 0.8, 0.7})) == "opposite seen");
  CHECK(seen(trainings({0.9, 0.7, 0.7}, {0.8, 0.8, 0.7})) == "cannot tell");
  const Evidence one = found(more_accurate, trainings({0.9}, {0.5}));
  CHECK(one.outcome == ClaimOutcome::undecided);
  CHECK(one.leaning == Leaning::towards);
  CHECK_THAT(one.reason, Contains("one seed"));
  const Evidence early = found(more_accurate, trainings({0.5, 0.51}, {0.9, 0.91}, false));
  CHECK(early.outcome == ClaimOutcome::undecided);
  CHECK(early.leaning == Leaning::against);
  CHECK_THAT(early.reason, Contains("not converged"));
  // Standing still at chance is no end of learning.
  result::Result unlearned = trainings({0.9, 0.89}, {0.004, 0.005});
  CHECK(outcome(more_accurate, unlearned) == "seen");
  for (result::CellRecord& cell : unlearned.cells) {
    if (cell.label != "softmax") continue;
    for (result::CurvePoint& point : cell.training->curve) point.validation_accuracy = 0.006;
  }
  const Evidence at_chance = found(more_accurate, unlearned);
  CHECK(at_chance.outcome == ClaimOutcome::undecided);
  CHECK(at_chance.leaning == Leaning::towards);
  CHECK(at_chance.reason == "softmax never left chance");
  for (result::CellRecord& cell : unlearned.cells) {
    for (result::CurvePoint& point : cell.training->curve) point.validation_accuracy = 0.006;
  }
  CHECK(found(more_accurate, unlearned).reason == "never left chance");
  unlearned = trainings({0.9, 0.89}, {0.004, 0.005});
  for (result::CurvePoint& point : unlearned.cells[2].training->curve) {
    point.validation_accuracy = 0.006;
  }
  CHECK(found(more_accurate, unlearned).reason == "1 of 2 seeds of softmax never left chance");
  CHECK_THAT(found(more_accurate, trainings({0.9, 0.8}, {0.5})).reason,
             Contains("not the same seeds"));
  const Json close = {
      {"difference",
       {quantity("softmax", nullptr, "accuracy"), quantity("latte", nullptr, "accuracy")}},
      {"within", {-0.1, 0.1}}};
  CHECK(outcome(close, trainings({0.9, 0.8, 0.7}, {0.85, 0.75, 0.66})) == "seen");
  CHECK(outcome(close, trainings({0.9, 0.8, 0.7}, {0.5, 0.41, 0.3})) == "opposite seen");
}

TEST_CASE("a segment of the test is a quantity of its own", "[claims]") {
  const auto bits = [](const char* segment) {
    return Json{{"of", "bits_per_byte"}, {"label", "latte"}, {"segment", segment}};
  };
  const result::Result result = test::result_of({test::text_cell("latte", 0.01, 0, 2.0, 2.1, 2.9)});
  const Evidence longer = found({{"less", {bits("1x"), bits("2x")}}}, result);
  CHECK_THAT(longer.found, Contains("2.100 bits") && Contains("2.900 bits"));
  CHECK(longer.leaning == Leaning::towards);
  evaluation_refused({{"less", {bits("1x"), bits("64x")}}}, "64x", result);
}

TEST_CASE("what a result does not have is refused by name", "[claims]") {
  const Json softmax = quantity("softmax", 2048);
  evaluation_refused({{"less", {quantity("latte"), softmax}}}, "3 cells of latte");
  Json depth = quantity("latte", 2048);
  depth["depth"] = 3;
  evaluation_refused({{"less", {depth, softmax}}}, "\"depth\"");
  const auto both = [](const char* of) {
    return Json{{"less", {quantity("latte", 2048, of), quantity("softmax", 2048, of)}}};
  };
  evaluation_refused(both("speed"), "expected time");
  evaluation_refused(both("memory.gone_bytes"), "memory.gone_bytes");
  evaluation_refused({{"value", quantity("latte", nullptr, "states_in_use")}, {"within", {0, 1}}},
                     "states_in_use", trainings({0.9}, {0.8}));
  evaluation_refused({{"less", {quantity("latte", 2048, "memory.workspace_bytes"), softmax}}},
                     "is compared with");
  evaluation_refused(
      {{"ratio",
        {quantity("softmax", nullptr, "accuracy"), quantity("latte", nullptr, "accuracy")}},
       {"within", {0, 1}}},
      "a ratio is one of times", trainings({0.9}, {0.8}));
  evaluation_refused({{"difference", {quantity("latte", 2048), softmax}}, {"within", {0, 1}}},
                     "a difference is one of trainings");
}

TEST_CASE("the size is said beside the paper's", "[claims]") {
  const Json less = {{"less", {quantity("latte", 2048), quantity("softmax", 2048)}}};
  CHECK(evaluate(claim_of(less, {{"length", 16000}}), times()).size == "length 2048 of 16000");
  CHECK_THROWS_WITH(evaluate(claim_of(less, {{"depth", 3}}), times()), Contains("\"depth\""));
  // What is not so at a smaller size may be so at the paper's; what is so, is so.
  const Json more = {{"less", {quantity("softmax", 2048), quantity("latte", 2048)}}};
  const Evidence smaller = evaluate(claim_of(more, {{"length", 16000}}), times());
  CHECK(smaller.outcome == ClaimOutcome::undecided);
  CHECK(smaller.leaning == Leaning::against);
  CHECK_THAT(smaller.reason, Contains("smaller than in the paper"));
  CHECK(evaluate(claim_of(more, {{"length", 2048}}), times()).outcome == ClaimOutcome::opposite);
  CHECK(evaluate(claim_of(less, {{"length", 16000}}), times()).outcome == ClaimOutcome::seen);
}
