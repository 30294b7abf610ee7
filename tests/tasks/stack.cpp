// Models whose blocks hold several mechanisms.
#include "tasks/stack.hpp"

#include "core/errors.hpp"
#include "tasks/training/model.hpp"
#include "tests/support/catch.hpp"
#include "tests/tasks/run_cell.hpp"

using namespace attnbench;
using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

const std::map<std::string, Settings>& small_models() {
  static const std::map<std::string, Settings> settings{{"decode",
                                                         {{"length", n(20)},
                                                          {"steps", n(3)},
                                                          {"heads", n(2)},
                                                          {"head_dim", n(8)},
                                                          {"scope", s("model")},
                                                          {"layers", n(6)},
                                                          {"vocabulary", n(31)}}},
                                                        {"kernel",
                                                         {{"length", n(20)},
                                                          {"pass", s("forward+backward")},
                                                          {"heads", n(2)},
                                                          {"head_dim", n(8)},
                                                          {"scope", s("model")},
                                                          {"layers", n(6)},
                                                          {"vocabulary", n(31)}}},
                                                        {"mqar",
                                                         {{"length", n(24)},
                                                          {"pairs", n(2)},
                                                          {"vocabulary", n(32)},
                                                          {"width", n(16)},
                                                          {"batch", n(8)},
                                                          {"layers", n(6)},
                                                          {"train_examples", n(16)},
                                                          {"validation_examples", n(8)},
                                                          {"test_examples", n(8)},
                                                          {"epochs", n(1)},
                                                          {"evaluate_every", n(1)}}}};
  return settings;
}

tasks::ResolvedCell stacked(const std::string& task, const std::string& mechanism,
                            const std::string& stack, const Settings& more = {}) {
  return make_cell(task, mechanism, "auto",
                   with(with(small_models().at(task), {{"stack", stack}}), more));
}

tasks::TaskForecast forecast_of(const tasks::ResolvedCell& cell, const std::string& task) {
  return tasks::find_task(task).forecast(registry(), cell);
}

std::string why(const tasks::ResolvedCell& cell, const std::string& task) {
  try {
    return forecast_of(cell, task).support.reason;
  } catch (const UsageError& error) {
    return error.what();
  }
}

/// A registry with "broken", which doubles what softmax returns after the first token.
const Registry& with_broken() {
  static const Registry broken = with_changed_softmax(
      "broken", [](const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
        Mixed mixed = mix(mechanism, inputs, state);
        mixed.output = mixed.output * 2;
        return mixed;
      });
  return broken;
}

}  // namespace

TEST_CASE("a model's blocks hold the mechanisms of its stack, in its order", "[stack]") {
  const auto cell = stacked("decode", "latte", "2 self + window(window=3)");
  const auto forecast = forecast_of(cell, "decode");
  REQUIRE(forecast.support);
  CHECK_THAT(forecast.choice_reason, Contains("window(window=3): "));
  tasks::training::ModelOptions options;
  options.layers = 6;
  tasks::training::Model model(tasks::mixers(registry(), cell, forecast), options, 1);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < model.mixes(); ++i) names.push_back(model.mechanism(i).name());
  CHECK(names == std::vector<std::string>{"latte", "latte", "window", "latte", "latte", "window"});
  CHECK(model.mechanism(2).options.window("window") == Window{2, 0});
  CHECK(tasks::blocks_to_check(forecast, 6) == std::vector<std::size_t>{0, 2, 5});
}

TEST_CASE("a stack of one mechanism is the model without a stack, to the bit", "[stack]") {
  const auto logits = [](const std::string& stack) {
    const auto cell = stacked("decode", "softmax", stack);
    const auto forecast = forecast_of(cell, "decode");
    tasks::training::ModelOptions options;
    options.layers = 6;
    tasks::training::Model model(tasks::mixers(registry(), cell, forecast), options, 1);
    return model.forward(at::arange(20, at::kLong).view({1, 20}));
  };
  CHECK(at::equal(logits(""), logits("self + softmax")));
  CHECK_FALSE(at::equal(logits(""), logits("self + window(window=2)")));
}

TEST_CASE("hybrids are timed, decoded and trained, each of their mixes checked", "[stack]") {
  for (const auto& [task, settings] : small_models()) {
    INFO(task);
    const auto cell = stacked(task, "delta", "2 self + softmax");
    const Ran ran = run_cell(registry(), task, cell);
    INFO(ran.check.dump());
    CHECK(ran.check["verdict"] == "ok");
    CHECK(ran.check["mixes"].get<int>() >= 2);
    if (task == "decode") {
      CHECK(ran.sections["metrics"]["state_bytes"].get<double>() == ran.forecast.cost.state_bytes);
    }
    const Ran wrong = run_cell(with_broken(), task, stacked(task, "delta", "2 self + broken"));
    INFO(wrong.check.dump());
    CHECK(wrong.check["verdict"] == "wrong");
  }
}

TEST_CASE("the cost of a stack is the mean of its mechanisms', weighted by their blocks",
          "[stack]") {
  for (const auto& [task, settings] : small_models()) {
    INFO(task);
    const auto alone = [&, &task = task](const char* mechanism) {
      return forecast_of(stacked(task, mechanism, ""), task).cost;
    };
    const auto forecast = forecast_of(stacked(task, "rg_lru", "2 self + softmax"), task);
    const Cost mixed = forecast.cost;
    const auto peak = [&, &task = task](const char* mechanism) {
      return forecast_of(stacked(task, mechanism, ""), task).peak_bytes;
    };
    CHECK(forecast.peak_bytes == Approx(task == "mqar"
                                            ? (2 * peak("rg_lru") + peak("softmax")) / 3
                                            : std::max(peak("rg_lru"), peak("softmax"))));
    const Cost own = alone("rg_lru"), exact = alone("softmax");
    CHECK(mixed.model_flops == Approx((2 * own.model_flops + exact.model_flops) / 3));
    CHECK(mixed.state_bytes == Approx((2 * own.state_bytes + exact.state_bytes) / 3));
    CHECK(mixed.minimal_bytes == Approx((2 * own.minimal_bytes + exact.minimal_bytes) / 3));
  }
}

TEST_CASE("stacks that say nothing that can be built are refused with the reason", "[stack]") {
  const auto refusal = [](const std::string& stack, const Settings& more = {}) {
    return why(stacked("decode", "latte", stack, more), "decode");
  };
  CHECK_THAT(refusal("3 softmax"), Contains("no block of self"));
  CHECK_THAT(refusal("self + "), Contains("names no mechanism at one place"));
  CHECK_THAT(refusal("self + 2"), Contains("names no mechanism at one place"));
  CHECK_THAT(refusal("0 self + softmax"), Contains("a count is from 1 to 1000"));
  CHECK_THAT(refusal("99999999999999999999 self"), Contains("a count is from 1 to 1000"));
  CHECK_THAT(refusal("self + softmax +"), Contains("names no mechanism at one place"));
  CHECK_THAT(refusal("self + softmaxx"), Contains("did you mean softmax"));
  CHECK_THAT(refusal("self + softmax/fusedd"), Contains("fusedd"));
  CHECK_THAT(refusal("self + window(windo=64)"), Contains("did you mean window"));
  CHECK_THAT(refusal("self + window(window)"), Contains("has no option"));
  CHECK_THAT(refusal("self + window(window=0)"), Contains("window must be"));
  CHECK_THAT(refusal("self + window(window=4 window=5)"), Contains("two values of window"));
  CHECK(refusal("self + softmax(scale=1e+3)").empty());  // its + is none of the stack's
  CHECK_THAT(refusal("self + python:near.py:Near"), Contains("as self alone"));
  CHECK_THAT(refusal("self + luna(latents_per_head=3) + luna(latents_per_head=4)"),
             Contains("one stream of latents"));
  CHECK_THAT(refusal("self + window(window=64"), Contains("closing bracket"));
  CHECK_THAT(refusal("4 self + softmax"), Contains("do not divide the 6"));
  CHECK_THAT(refusal("self + softmax", {{"scope", s("mix")}}), Contains("say scope model"));
  CHECK_THAT(refusal("self + linformer"), Contains("linformer: "));
}

TEST_CASE("a stack's blocks share one stream of latents, so that its length is one", "[stack]") {
  const auto reason = [](const std::string& stack) {
    return why(stacked("kernel", "luna", stack, {{"pattern", s("bidirectional")}}), "kernel");
  };
  CHECK(reason("self + luna(latents_per_head=32)").empty());
  CHECK_THAT(reason("self + luna(latents_per_head=5)"),
             Contains("ask for 5, others for 32") || Contains("ask for 32, others for 5"));
}
