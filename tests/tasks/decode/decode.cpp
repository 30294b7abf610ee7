#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "attention/algorithms/tokens/tokens.hpp"
#include "tests/tasks/run_cell.hpp"

#include "tests/support/catch.hpp"

using namespace attnbench;
using namespace attnbench::test;

namespace {

Settings small_decode(const Settings& more = {}) {
  return with({{"length", n(50)}, {"heads", n(2)}, {"head_dim", n(16)}, {"steps", n(4)}}, more);
}

}  // namespace

TEST_CASE("a step from a prefilled state is measured and right", "[decode]") {
  for (const char* mechanism : {"softmax", "latte", "linear"}) {
    INFO(mechanism);
    const auto cell = make_cell("decode", mechanism, "auto", small_decode({{"batch", n(2)}}));
    const Ran ran = run_cell(registry(), "decode", cell);
    INFO(ran.check.dump());
    CHECK(ran.check["verdict"] == "ok");
    CHECK(ran.check["rows"] == 8);  // of the first and the last token
    for (const char* what : {"step", "prefill", "generation"}) {
      // More where other programs preempted one.
      CHECK(ran.measured["timing"][what]["samples_seconds"].size() >= 2);
    }
    CHECK(ran.sections["metrics"]["tokens_per_second"].get<double>() > 0);
    CHECK(ran.sections["metrics"]["state_bytes"].get<double>() > 0);
    CHECK(ran.sections["memory"]["output_bytes"] == 2 * 2 * 16 * 4);
  }
}

TEST_CASE("rotary positions continue from the context, and need a query and a key", "[decode]") {
  const Settings rotary{{"positions", s("rotary")}};
  const auto decoded = [](const Registry& with, const char* mechanism, const Settings& more) {
    return run_cell(with, "decode", make_cell("decode", mechanism, "auto", small_decode(more)));
  };
  for (const char* mechanism : {"softmax", "window", "linear", "gla", "mla"}) {
    INFO(mechanism);
    const Ran ran = decoded(registry(), mechanism, rotary);
    INFO(ran.check.dump() << ran.sections["timed_check"].dump());
    CHECK(ran.check["verdict"] == "ok");
    CHECK(ran.check["prefill"]["verdict"] == "ok");
    CHECK(ran.sections["timed_check"]["verdict"] == "ok");
  }
  // A mix that turns its keys back by their positions is right without positions only.
  const Registry turning = with_changed_softmax(
      "turning", [](const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
        Inputs still = inputs;
        const std::int64_t first = state != nullptr ? state->position : 0;
        still.tensors["key"] = rotated(inputs["key"], first, 10000, Rotation::inverse);
        return mix(mechanism, still, state);
      });
  CHECK(decoded(turning, "turning", rotary).check["verdict"] == "wrong");
  for (const auto& [mechanism, why] :
       {std::pair{"latte", "rotary positions need"}, std::pair{"rg_lru", "rotary"}}) {
    const auto cell = make_cell("decode", mechanism, "auto", small_decode(rotary));
    const tasks::TaskForecast forecast = tasks::find_task("decode").forecast(registry(), cell);
    CHECK_FALSE(forecast.support.yes);
    CHECK_THAT(forecast.support.reason, Catch::Contains(why));
  }
  for (const char* added : {"learned", "sinusoidal"}) {
    const auto cell =
        make_cell("decode", "softmax", "auto", small_decode({{"positions", s(added)}}));
    const tasks::TaskForecast forecast = tasks::find_task("decode").forecast(registry(), cell);
    CHECK_FALSE(forecast.support.yes);
    CHECK_THAT(forecast.support.reason, Catch::Contains("say scope model"));
  }
  CHECK_THROWS_AS(decoded(registry(), "softmax", {{"positions", s("absolute")}}), UsageError);
}

TEST_CASE("the state of shared key heads is smaller", "[decode]") {
  for (const char* mechanism : {"softmax", "window"}) {
    INFO(mechanism);
    const auto with = [&](std::int64_t kv_heads) {
      const auto cell = make_cell("decode", mechanism, "auto",
                                  small_decode({{"heads", n(4)}, {"kv_heads", n(kv_heads)}}));
      return run_cell(registry(), "decode", cell);
    };
    const Ran shared = with(1);
    CHECK(shared.check["verdict"] == "ok");
    CHECK(shared.forecast.cost.state_bytes * 4 == with(4).forecast.cost.state_bytes);
    const auto bytes = shared.sections["metrics"]["state_bytes"].get<double>();
    CHECK(bytes == shared.forecast.cost.state_bytes);
  }
}

TEST_CASE("softmax's state grows with the context, latte's does not", "[decode]") {
  const auto bytes = [](const char* mechanism, std::int64_t length) {
    const auto cell = make_cell("decode", mechanism, "auto", small_decode({{"length", n(length)}}));
    return run_cell(registry(), "decode", cell, 1).sections["metrics"]["state_bytes"].get<double>();
  };
  CHECK(bytes("softmax", 120) == 2 * bytes("softmax", 60));
  CHECK(bytes("latte", 120) == bytes("latte", 60));
}

TEST_CASE("a step's forecast is that of one token", "[decode]") {
  const auto cell = make_cell("decode", "softmax", "composite", small_decode());
  const tasks::TaskForecast forecast = tasks::find_task("decode").forecast(registry(), cell);
  // Two products of 16 numbers with 51 keys, for each of two heads.
  CHECK(forecast.cost.model_flops == Approx(2 * 2 * 2 * 16 * 51));
  CHECK(forecast.cost.state_bytes == Approx(2 * 2 * 16 * 4 * 50));
  CHECK(forecast.cost.minimal_bytes > forecast.cost.state_bytes);
  CHECK(forecast.peak_bytes > 2 * forecast.cost.state_bytes);
}

TEST_CASE("memory and cost of a generation count the state as it grows, or as it stays",
          "[decode]") {
  const auto made = [](const char* mechanism, std::int64_t steps) {
    const auto cell = make_cell("decode", mechanism, "composite",
                                small_decode({{"length", n(1)}, {"steps", n(steps)}}));
    return tasks::find_task("decode").forecast(registry(), cell);
  };
  // What a token's inputs and output take: no more than four roles of 16 numbers for two heads.
  const double of_token = 4 * 2 * 16 * 4;
  const tasks::TaskForecast fixed = made("latte", 1000);
  CHECK(fixed.calls == 1000);
  const double latents = fixed.cost.state_bytes;
  CHECK(latents > of_token);
  CHECK(fixed.peak_bytes > 2 * latents);
  CHECK(made("latte", 3000).peak_bytes - fixed.peak_bytes < 2000 * latents);
  CHECK(fixed.calls_cost.minimal_bytes == Approx(1000 * fixed.cost.minimal_bytes));
  CHECK(fixed.calls_cost.model_flops == Approx(1000 * fixed.cost.model_flops));
  REQUIRE(fixed.prefill_cost);  // of one token, so that it is about that of a step
  CHECK(fixed.prefill_cost->model_flops == Approx(fixed.cost.model_flops));

  const tasks::TaskForecast growing = made("softmax", 1000);
  const double key_and_value = 2 * 2 * 16 * 4;
  CHECK(growing.cost.state_bytes == Approx(key_and_value));  // of one token
  CHECK(growing.peak_bytes > 2 * 1001 * key_and_value);
  CHECK(growing.peak_bytes < 2 * 1001 * key_and_value + 2 * 1001 * of_token);
  // The middle step reads the keys and values of 501 tokens.
  CHECK(growing.calls_cost.minimal_bytes > 1000 * 501 * key_and_value);
  CHECK(growing.calls_cost.minimal_bytes < 1000 * (502 * key_and_value + of_token));
}

TEST_CASE("a state that becomes wrong later is found at the last token", "[decode]") {
  const Registry with_drift = with_changed_softmax(
      "drifting", [](const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
        Mixed mixed = mix(mechanism, inputs, state);
        if (state && state->position > 52) mixed.output = mixed.output + 1;
        return mixed;
      });
  const auto verdict = [&](std::int64_t steps) {
    const auto cell = make_cell("decode", "drifting", "auto", small_decode({{"steps", n(steps)}}));
    return run_cell(with_drift, "decode", cell).check["verdict"];
  };
  CHECK(verdict(2) == "ok");
  CHECK(verdict(4) == "wrong");
}

namespace {

/// softmax/composite as "cheating", with outputs changed by `spoil`.
Registry cheating_decode(
    const std::function<at::Tensor(const at::Tensor&, const Inputs&, const State&)>& spoil) {
  return with_changed_softmax(
      "cheating", [=](const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
        Mixed mixed = mix(mechanism, inputs, state);
        mixed.output = spoil(mixed.output, inputs, *state);
        return mixed;
      });
}

Ran decoded(const Registry& registry) {
  return run_cell(registry, "decode", make_cell("decode", "cheating", "auto", small_decode()));
}

}  // namespace

TEST_CASE("outputs of timed steps, generations and prefills are checked", "[decode][cheats]") {
  const Ran honest = decoded(cheating_decode(
      [](const at::Tensor& output, const Inputs&, const State&) { return output; }));
  INFO(honest.check.dump() << honest.sections["timed_check"].dump());
  CHECK(honest.check["prefill"]["verdict"] == "ok");
  CHECK(honest.sections["timed_check"]["verdict"] == "ok");
  for (const char* what : {"step", "generation", "prefill"}) {
    CHECK(honest.sections["timed_check"][what]["verdict"] == "ok");
    CHECK(honest.sections["timed_check"][what]["rows"].get<int>() >= 2);
  }
}

TEST_CASE("a wrong output of the context is found before anything is timed", "[decode][cheats]") {
  for (const double factor : {1.01, std::nan("")}) {
    const Ran ran =
        decoded(cheating_decode([=](const at::Tensor& output, const Inputs&, const State&) {
          return output.size(2) > 1 ? output * factor : output;
        }));
    INFO(ran.check.dump());
    CHECK(ran.check["verdict"] == "wrong");
    CHECK(ran.check["reason"].get<std::string>().rfind("prefill: ", 0) == 0);
  }
}

TEST_CASE("outputs kept from earlier calls are found in each kind of call", "[decode][cheats]") {
  for (const auto& [what, position] :
       {std::pair{"step", 51}, std::pair{"generation", 54}, std::pair{"prefill", 50}}) {
    const auto kept = std::make_shared<std::map<const void*, at::Tensor>>();
    const std::int64_t after = position;
    const bool whole = std::string(what) == "prefill";
    const Ran ran = decoded(
        cheating_decode([=](const at::Tensor& output, const Inputs& inputs, const State& state) {
          if (state.position != after || (output.size(2) > 1) != whole) return output;
          at::Tensor& first = (*kept)[inputs["query"].data_ptr()];
          if (!first.defined()) first = output.clone();
          return first;
        }));
    const test::Json& timed = ran.sections["timed_check"];
    INFO(what << " " << timed.dump());
    CHECK(ran.check["verdict"] == "ok");
    CHECK(timed["verdict"] == "wrong");
    CHECK(timed[what]["verdict"] == "wrong");
  }
}

TEST_CASE("steps that change their inputs are found", "[decode][cheats]") {
  const auto spoil = [](const at::Tensor& output, const Inputs& inputs, const State&) {
    if (output.size(2) == 1) at::Tensor(inputs["key"]).mul_(0.5);
    return output;
  };
  const Ran ran = decoded(cheating_decode(spoil));
  CHECK(ran.check["verdict"] == "wrong");
  CHECK(ran.check["reason"] == "it changed its input \"key\" in place");
  CHECK(ran.sections["timed_check"]["reason"] ==
        "a timed step: it changed its input \"key\" in place");
}

TEST_CASE("a step's output of another dtype is found", "[decode][cheats]") {
  const Ran ran =
      decoded(cheating_decode([](const at::Tensor& output, const Inputs&, const State& state) {
        return state.position == 51 ? output.to(at::kDouble) : output;
      }));
  CHECK(ran.check["verdict"] == "wrong");
  CHECK(ran.check["reason"] ==
        "cheating/composite returned an output of float64, expected float32");
}

TEST_CASE("every first step finds its state at the same address", "[decode]") {
  std::set<const void*> begun_in;
  const Registry with_moving = with_changed_softmax(
      "moving", [&](const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
        if (state && state->position == 50) begun_in.insert(state->tensors.at("key").data_ptr());
        Mixed mixed = mix(mechanism, inputs, state);
        if (!state) return mixed;
        for (auto& [name, tensor] : state->tensors) tensor = tensor.clone();
        return mixed;
      });
  const auto cell = make_cell("decode", "moving", "composite", small_decode());
  CHECK(run_cell(with_moving, "decode", cell).check["verdict"] == "ok");
  CHECK(begun_in.size() == 1);
}

TEST_CASE("a mechanism without a state is unsupported, with its reason", "[decode]") {
  Registry with_stateless = Registry::with_builtins();
  Entry entry = with_stateless.entry("softmax");
  entry.name = "stateless";
  entry.aliases.clear();
  entry.make = [](const Options& options, const Problem& problem) {
    class Stateless : public Mechanism {
     public:
      using Mechanism::Mechanism;
      std::vector<Role> roles() const override { return {}; }
    };
    return std::make_shared<Stateless>("stateless", options, problem);
  };
  with_stateless.add(entry, with_stateless.reference("softmax"));
  const auto cell = make_cell("decode", "stateless", "auto", small_decode());
  const tasks::Task& task = tasks::find_task("decode");
  const tasks::TaskForecast forecast = task.forecast(with_stateless, cell);
  CHECK_FALSE(forecast.support.yes);
  CHECK(forecast.support.reason.find("stateless has no decoding state") != std::string::npos);
  CHECK_THROWS_AS(task.make(with_stateless, cell), UnsupportedError);
}
