// The scope model of the decode task.
#include "tests/support/catch.hpp"
#include "tests/tasks/run_cell.hpp"

using namespace attnbench;
using namespace attnbench::test;

namespace {

Settings small_model_decode(const Settings& more = {}) {
  return with({{"length", n(50)},
               {"heads", n(2)},
               {"head_dim", n(16)},
               {"steps", n(4)},
               {"batch", n(2)},
               {"scope", s("model")},
               {"layers", n(3)},
               {"vocabulary", n(101)}},
              more);
}

Ran decoded_model(const Registry& with, const char* mechanism, const Settings& more = {}) {
  return run_cell(with, "decode", make_cell("decode", mechanism, "auto", small_model_decode(more)));
}

tasks::TaskForecast model_forecast(const char* mechanism, const Settings& more = {}) {
  return tasks::find_task("decode").forecast(
      registry(), make_cell("decode", mechanism, "auto", small_model_decode(more)));
}

}  // namespace

TEST_CASE("a whole model is decoded, metered and checked", "[decode][model]") {
  for (const auto& [mechanism, more] :
       {std::pair<const char*, Settings>{"softmax", {{"positions", s("rotary")}}},
        {"window", {{"positions", s("learned")}, {"norm", s("rms")}}},
        {"latte", {{"positions", s("sinusoidal")}, {"mlp", s("gated")}}},
        {"delta", {{"dtype", s("bfloat16")}}},
        {"luna", {{"tied_head", false}}}}) {
    INFO(mechanism);
    const Ran ran = decoded_model(registry(), mechanism, more);
    INFO(ran.check.dump() << ran.sections["timed_check"].dump());
    CHECK(ran.check["verdict"] == "ok");
    CHECK(ran.check["mixes"] == 2);
    CHECK(ran.check["model"]["rows"] == 3 * 2);
    CHECK(ran.sections["timed_check"]["verdict"] == "ok");
    for (const char* what : {"step", "prefill", "generation"}) {
      CHECK(ran.measured["timing"][what]["samples_seconds"].size() >= 2);
      CHECK(ran.sections["timed_check"][what]["rows"].get<int>() >= 2);
    }
    CHECK(ran.sections["metrics"]["state_bytes"].get<double>() == ran.forecast.cost.state_bytes);
    CHECK(ran.sections["memory"]["output_bytes"].get<int>() % (2 * 101) == 0);
  }
}

TEST_CASE("a model whose step forgets is wrong", "[decode][model][cheats]") {
  const auto ran_with = [](std::int64_t from, bool single) {
    const Registry forgetting = with_changed_softmax(
        "forgetting",
        [=](const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
          Mixed mixed = mix(mechanism, inputs, state);
          const bool spoilt = state != nullptr && state->position >= from &&
                              (inputs["query"].size(2) == 1) == single;
          if (spoilt) mixed.output = mixed.output * 1.1;
          return mixed;
        });
    return decoded_model(forgetting, "forgetting");
  };
  CHECK(ran_with(1000, true).check["verdict"] == "ok");
  CHECK(ran_with(0, true).check["verdict"] == "wrong");
  CHECK(ran_with(54, true).check["verdict"] == "wrong");  // the last step
  CHECK(ran_with(0, false).check["verdict"] == "wrong");  // the context
}

TEST_CASE("timed steps of a model are checked", "[decode][model][cheats]") {
  int calls = 0;
  const Registry tiring = with_changed_softmax(
      "tiring", [&](const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
        Mixed mixed = mix(mechanism, inputs, state);
        // The context, the steps and the mixes of the check come before anything is timed.
        if (state != nullptr && ++calls > 40) mixed.output = mixed.output * 1.1;
        return mixed;
      });
  const Ran ran = decoded_model(tiring, "tiring");
  INFO(ran.check.dump() << ran.sections["timed_check"].dump() << calls);
  CHECK(ran.check["verdict"] == "ok");
  CHECK(ran.sections["timed_check"]["verdict"] == "wrong");
}

TEST_CASE("the forecast of a model's step counts its products and weights", "[decode][model]") {
  const double mix = [] {
    return model_forecast("softmax", {{"scope", s("mix")}}).cost.model_flops;
  }();
  const double layer = 4 * 32 * 32 + 2 * 32 * 128;
  CHECK(model_forecast("softmax").cost.model_flops ==
        Approx(3 * mix + 2 * 2 * (3 * layer + 32 * 101)));
  const tasks::TaskForecast one = model_forecast("softmax", {{"layers", n(1)}});
  const tasks::TaskForecast three = model_forecast("softmax");
  CHECK(three.cost.state_bytes == 3 * one.cost.state_bytes);
  CHECK(three.cost.minimal_bytes > 4.0 * 3 * layer + three.cost.state_bytes);
  CHECK(three.peak_bytes > three.cost.minimal_bytes);
  CHECK_THAT(model_forecast("latte", {{"positions", s("rotary")}}).support.reason,
             Catch::Contains("query and a key"));
}
