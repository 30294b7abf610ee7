#include <set>

#include "tests/tasks/run_cell.hpp"

#include "tests/support/catch.hpp"

using namespace attnbench;
using namespace attnbench::test;

namespace {

Settings small(Settings more = {}) {
  Settings settings{{"length", n(50)}, {"heads", n(2)}, {"head_dim", n(16)}, {"steps", n(4)}};
  for (const auto& [name, value] : more) settings[name] = value;
  return settings;
}

}  // namespace

TEST_CASE("a step from a prefilled state is measured and right", "[decode]") {
  for (const char* mechanism : {"softmax", "latte", "linear"}) {
    INFO(mechanism);
    const auto cell = make_cell("decode", mechanism, "auto", small({{"batch", n(2)}}));
    const Ran ran = run_cell(registry(), "decode", cell);
    INFO(ran.check.dump());
    CHECK(ran.check["verdict"] == "ok");
    CHECK(ran.check["rows"] == 8);  // of the first and the last token
    for (const char* what : {"step", "prefill", "generation"}) {
      CHECK(ran.measured["timing"][what]["samples_seconds"].size() == 2);
    }
    CHECK(ran.sections["metrics"]["tokens_per_second"].get<double>() > 0);
    CHECK(ran.sections["metrics"]["state_bytes"].get<double>() > 0);
    CHECK(ran.sections["memory"]["output_bytes"] == 2 * 2 * 16 * 4);
  }
}

TEST_CASE("shared key heads decode right, and their state is smaller", "[decode]") {
  for (const char* mechanism : {"softmax", "window"}) {
    for (const char* implementation : {"composite", "chunked", "tiled"}) {
      INFO(mechanism << " " << implementation);
      const auto with = [&](std::int64_t kv_heads) {
        const auto cell = make_cell("decode", mechanism, implementation,
                                    small({{"heads", n(4)}, {"kv_heads", n(kv_heads)}}));
        return run_cell(registry(), "decode", cell);
      };
      const Ran shared = with(1);
      INFO(shared.check.dump());
      CHECK(shared.check["verdict"] == "ok");
      CHECK(shared.forecast.cost.state_bytes * 4 == with(4).forecast.cost.state_bytes);
      const auto bytes = shared.sections["metrics"]["state_bytes"].get<double>();
      CHECK(bytes == shared.forecast.cost.state_bytes);
    }
  }
}

TEST_CASE("softmax's state grows with the context, latte's does not", "[decode]") {
  const auto bytes = [](const char* mechanism, std::int64_t length) {
    const auto cell = make_cell("decode", mechanism, "auto", small({{"length", n(length)}}));
    return run_cell(registry(), "decode", cell, 1).sections["metrics"]["state_bytes"].get<double>();
  };
  CHECK(bytes("softmax", 120) == 2 * bytes("softmax", 60));
  CHECK(bytes("latte", 120) == bytes("latte", 60));
}

TEST_CASE("a step's forecast is that of one token", "[decode]") {
  const auto cell = make_cell("decode", "softmax", "composite", small());
  const tasks::Forecast forecast = tasks::find_task("decode").forecast(registry(), cell);
  // Two products of 16 numbers with 51 keys, for each of two heads.
  CHECK(forecast.cost.model_flops == Approx(2 * 2 * 2 * 16 * 51));
  CHECK(forecast.cost.state_bytes == Approx(2 * 2 * 16 * 4 * 50));
  CHECK(forecast.cost.minimal_bytes > forecast.cost.state_bytes);
  CHECK(forecast.peak_bytes > 2 * forecast.cost.state_bytes);
}

TEST_CASE("a state that goes wrong on the way is found at the last token", "[decode]") {
  Registry with_drift = Registry::with_builtins();
  Entry entry = with_drift.entry("softmax");
  entry.name = "drifting";
  entry.aliases.clear();
  entry.implementations.resize(1);
  const auto mix = entry.implementations.front().mix;
  entry.implementations.front().mix = [mix](Mechanism& mechanism, const Inputs& inputs,
                                            State* state) {
    Mixed mixed = mix(mechanism, inputs, state);
    if (state && state->position > 52) mixed.output = mixed.output + 1;
    return mixed;
  };
  with_drift.add(entry, with_drift.reference("softmax"));
  const auto verdict = [&](std::int64_t steps) {
    const auto cell = make_cell("decode", "drifting", "auto", small({{"steps", n(steps)}}));
    return run_cell(with_drift, "decode", cell).check["verdict"];
  };
  CHECK(verdict(2) == "ok");
  CHECK(verdict(4) == "wrong");
}

TEST_CASE("every first step finds its state in the same memory, wherever the last one left it",
          "[decode]") {
  Registry with_moving = Registry::with_builtins();
  Entry entry = with_moving.entry("softmax");
  entry.name = "moving";
  entry.aliases.clear();
  entry.implementations.resize(1);
  const auto mix = entry.implementations.front().mix;
  std::set<const void*> begun_in;
  entry.implementations.front().mix = [mix, &begun_in](Mechanism& mechanism, const Inputs& inputs,
                                                       State* state) {
    if (state && state->position == 50) begun_in.insert(state->tensors.at("key").data_ptr());
    Mixed mixed = mix(mechanism, inputs, state);
    if (!state) return mixed;
    for (auto& [name, tensor] : state->tensors) tensor = tensor.clone();
    return mixed;
  };
  with_moving.add(entry, with_moving.reference("softmax"));
  const auto cell = make_cell("decode", "moving", "composite", small());
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
  const auto cell = make_cell("decode", "stateless", "auto", small());
  const tasks::Task& task = tasks::find_task("decode");
  const tasks::Forecast forecast = task.forecast(with_stateless, cell);
  CHECK_FALSE(forecast.support.yes);
  CHECK(forecast.support.reason.find("stateless has no decoding state") != std::string::npos);
  CHECK_THROWS_AS(task.make(with_stateless, cell), UnsupportedError);
}
