// What a task trained before classifiers came must be trained to the same numbers: each default is
// the earlier behaviour.
#include "tests/support/catch.hpp"
#include "tests/tasks/run_cell.hpp"

using namespace attnbench;
using namespace attnbench::test;

namespace {

/// The last point of a curve, in float64, as it was before, on one thread.
struct Before {
  const char* task;
  const char* mechanism;
  Settings settings;
  Settings options;
  double loss;
  double validation_loss;
};

const Settings sizes{
    {"width", n(32)}, {"heads", n(2)}, {"batch", n(32)}, {"epochs", n(2)}, {"dtype", s("float64")}};
const Settings mqar{{"length", n(64)},          {"pairs", n(4)},
                    {"train_examples", n(512)}, {"validation_examples", n(64)},
                    {"test_examples", n(64)},   {"vocabulary", n(128)}};
const Settings copy{{"length", n(32)},        {"train_examples", n(256)},
                    {"test_examples", n(64)}, {"validation_examples", n(64)},
                    {"warm_up_steps", n(4)},  {"embedding_dropout", 0.1}};
const Settings compression{{"exercise", s("compression")}, {"train_examples", n(256)}};

}  // namespace

TEST_CASE("trainings of recall, copies and MAD give the numbers they gave before", "[defaults]") {
  const Before all[] = {
      {"mqar", "softmax", mqar, {}, 4.683911489592306, 4.707069373371882},
      {"copy", "softmax", copy, {}, 2.3414439434170844, 2.3315142523812153},
      {"mad", "softmax", compression, {}, 2.7389748050436222, 2.7382769806987186}};
  for (const Before& before : all) {
    INFO(before.task << " " << before.mechanism);
    const auto cell = make_cell(before.task, before.mechanism, "auto", with(sizes, before.settings),
                                before.options);
    const Ran ran = run_cell(registry(), before.task, cell, /*round=*/1);
    const Json& last = ran.sections["training"]["curve"].back();
    CHECK(last["loss"].get<double>() == Approx(before.loss).epsilon(1e-10));
    CHECK(last["validation_loss"].get<double>() == Approx(before.validation_loss).epsilon(1e-10));
  }
}
