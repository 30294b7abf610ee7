// The setting `past`: the tokens after a past, mixed from its state.
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "tests/support/catch.hpp"
#include "tests/tasks/run_cell.hpp"

using namespace attnbench;
using namespace attnbench::test;
using Catch::Contains;

namespace {

Settings chunk(const Settings& more = {}) {
  return with({{"length", n(24)}, {"past", n(150)}, {"heads", n(2)}, {"head_dim", n(16)}}, more);
}

tasks::TaskForecast chunk_forecast(const char* mechanism, const char* implementation,
                                   const Settings& more = {}, const Settings& options = {}) {
  const auto cell = make_cell("kernel", mechanism, implementation, chunk(more), options);
  return tasks::find_task("kernel").forecast(registry(), cell);
}

std::string chunk_refusal(const Settings& more) {
  try {
    chunk_forecast("softmax", "auto", more);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

/// softmax/composite as "cheating", with the outputs of single blocks changed by `spoil`.
Registry cheating_chunk(
    const std::function<at::Tensor(const at::Tensor&, const Inputs&, const State&)>& spoil) {
  return with_changed_softmax(
      "cheating", [=](const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
        Mixed mixed = mix(mechanism, inputs, state);
        if (state) mixed.output = spoil(mixed.output, inputs, *state);
        return mixed;
      });
}

Ran chunk_of(const Registry& registry) {
  return run_cell(registry, "kernel", make_cell("kernel", "cheating", "auto", chunk()));
}

}  // namespace

TEST_CASE("every causal mechanism mixes a chunk after a past, or says why not", "[kernel][past]") {
  for (const std::string& name : registry().mechanisms()) {
    INFO(name);
    const auto cell = make_cell("kernel", name, "auto", chunk({{"batch", n(2)}}));
    const tasks::TaskForecast forecast = tasks::find_task("kernel").forecast(registry(), cell);
    if (!forecast.support) {
      const std::vector<Pattern>& patterns = registry().entry(name).patterns;
      if (std::count(patterns.begin(), patterns.end(), Pattern::causal) != 0) {
        CHECK_THAT(forecast.support.reason, Contains("no decoding state"));
      }
      continue;
    }
    const Ran ran = run_cell(registry(), "kernel", cell);
    INFO(ran.check.dump() << "\n" << ran.sections["timed_check"].dump());
    CHECK(ran.check["verdict"] == "ok");
    CHECK(ran.check["rows"].get<int>() >= 8);  // up to 32, in 0.25 s
    CHECK(ran.sections["timed_check"]["verdict"] == "ok");
    CHECK(ran.sections["timed_check"]["rows"].get<int>() >= 4);
    CHECK(ran.sections["memory"]["output_bytes"] == 2 * 2 * 24 * 16 * 4);
    CHECK(ran.sections["metrics"]["state_bytes"].get<std::int64_t>() > 0);
    CHECK(ran.measured["timing"].contains("forward"));
  }
}

TEST_CASE("every implementation of softmax and windows continues from a past", "[kernel][past]") {
  for (const char* mechanism : {"softmax", "window", "latte", "linear", "gla"}) {
    for (const Implementation& one : registry().entry(mechanism).implementations) {
      INFO(mechanism << "/" << one.name);
      const auto cell =
          make_cell("kernel", mechanism, one.name, chunk({{"heads", n(4)}, {"past", n(300)}}));
      if (!tasks::find_task("kernel").forecast(registry(), cell).support) continue;
      const Ran ran = run_cell(registry(), "kernel", cell);
      INFO(ran.check.dump() << "\n" << ran.sections["timed_check"].dump());
      CHECK(ran.check["verdict"] == "ok");
      CHECK(ran.sections["timed_check"]["verdict"] == "ok");
    }
  }
}

TEST_CASE("a chunk's forecast is of the new tokens against all keys that they see",
          "[kernel][past]") {
  const double key_and_value = 2 * 2 * 16 * 4;  // of one token, both heads, in bytes
  const tasks::TaskForecast softmax = chunk_forecast("softmax", "composite");
  // Token i of 24 sees 150 + i + 1 keys; two products of 16 numbers for each of two heads.
  const double pairs = 24 * 150 + 24 * 25 / 2;
  CHECK(softmax.cost.model_flops == Approx(2 * 2 * 2 * 16 * pairs));
  CHECK(softmax.cost.executed_flops == Approx(2 * 2 * 2 * 16 * 24 * 174));  // all, and masks some
  CHECK(softmax.cost.exponentials == Approx(2 * 24 * 174));
  // The keys and values of the past are read; those of the chunk, its queries and outputs, too.
  CHECK(softmax.cost.minimal_bytes == Approx(150 * key_and_value + 2 * 24 * key_and_value));
  CHECK(softmax.cost.state_bytes == Approx(150 * key_and_value));
  CHECK(softmax.unclocked_cost->model_flops == Approx(2 * 2 * 2 * 16 * 150 * 151 / 2));
  CHECK(softmax.problem.length == 24);
  CHECK(softmax.problem.key_length == 174);
  CHECK(visible_pairs(softmax.problem) == static_cast<std::int64_t>(pairs));

  const tasks::TaskForecast tiled = chunk_forecast("softmax", "tiled");
  CHECK(tiled.cost.model_flops == softmax.cost.model_flops);
  CHECK(tiled.cost.executed_flops < 1.5 * softmax.cost.executed_flops);
  // A window sees no more after a longer past, and neither does a recurrence.
  for (const char* mechanism : {"window", "latte", "linear"}) {
    INFO(mechanism);
    const Settings options =
        std::string(mechanism) == "window" ? Settings{{"window", Window{15, 0}}} : Settings{};
    const tasks::TaskForecast near = chunk_forecast(mechanism, "composite", {}, options);
    const tasks::TaskForecast far =
        chunk_forecast(mechanism, "composite", {{"past", n(6000)}}, options);
    CHECK(far.cost.model_flops == Approx(near.cost.model_flops));
    CHECK(far.cost.executed_flops == Approx(near.cost.executed_flops));
    CHECK(far.cost.workspace_bytes == Approx(near.cost.workspace_bytes));
    CHECK(far.cost.minimal_bytes == Approx(near.cost.minimal_bytes));
  }
  CHECK(chunk_forecast("window", "composite", {}, {{"window", Window{15, 0}}}).cost.model_flops ==
        Approx(2 * 2 * 2 * 16 * 24 * 16));
}

TEST_CASE("the predicted peak of a chunk is near the measured one", "[kernel][past]") {
  for (const char* implementation : {"composite", "tiled"}) {
    const auto cell = make_cell("kernel", "softmax", implementation,
                                chunk({{"length", n(256)}, {"past", n(2048)}}));
    const Ran ran = run_cell(registry(), "kernel", cell);
    const double measured = ran.sections["memory"]["peak_bytes"].get<double>();
    INFO(implementation << ": predicted " << ran.forecast.peak_bytes << ", measured " << measured);
    CHECK(ran.forecast.peak_bytes > 0.6 * measured);
    CHECK(ran.forecast.peak_bytes < 1.7 * measured);
  }
}

TEST_CASE("the chunk after no past is the whole sequence", "[kernel][past]") {
  const tasks::TaskForecast whole = chunk_forecast("softmax", "tiled", {{"past", n(0)}});
  CHECK(whole.problem.key_length == 24);
  const auto cell = make_cell("kernel", "softmax", "tiled", chunk({{"past", n(0)}}));
  const Ran ran = run_cell(registry(), "kernel", cell);
  CHECK(ran.check["verdict"] == "ok");
  CHECK_FALSE(ran.sections.contains("metrics"));
}

TEST_CASE("a past with anything but a causal forward mix is refused, with what to say",
          "[kernel][past]") {
  CHECK_THAT(chunk_refusal({{"pattern", s("bidirectional")}}),
             Contains("past 150: only causal tokens continue") && Contains("bidirectional"));
  CHECK_THAT(chunk_refusal({{"pattern", s("cross")}, {"key_length", n(24)}}),
             Contains("only causal tokens continue") && Contains("cross"));
  for (const char* pass : {"forward+backward", "backward"}) {
    CHECK_THAT(chunk_refusal({{"pass", s(pass)}}),
               Contains("a state has no gradient") && Contains(pass) && Contains("say forward"));
  }
  for (const char* scope : {"projected", "layer", "model"}) {
    CHECK_THAT(chunk_refusal({{"scope", s(scope)}}), Contains(scope) && Contains("say mix"));
  }
  CHECK_THAT(chunk_refusal({{"lengths", s("24")}}), Contains("say past or lengths"));
  try {
    make_cell("kernel", "softmax", "auto", chunk({{"past", n(-1)}}));
    FAIL("a negative past was taken");
  } catch (const UsageError& error) {
    CHECK_THAT(error.what(), Contains("past") && Contains("-1"));
  }
}

TEST_CASE("a chunk that is wrong, kept or changes its inputs is found", "[kernel][past][cheats]") {
  const Ran honest = chunk_of(
      cheating_chunk([](const at::Tensor& output, const Inputs&, const State&) { return output; }));
  CHECK(honest.check["verdict"] == "ok");
  CHECK(honest.sections["timed_check"]["verdict"] == "ok");
  // Wrong after the past alone: as from a state that is not advanced.
  const Ran wrong =
      chunk_of(cheating_chunk([](const at::Tensor& output, const Inputs&, const State& state) {
        return state.position == 174 ? output * 1.01 : output;
      }));
  CHECK(wrong.check["verdict"] == "wrong");
  const auto kept = std::make_shared<std::map<const void*, at::Tensor>>();
  const Ran keeps = chunk_of(
      cheating_chunk([=](const at::Tensor& output, const Inputs& inputs, const State& state) {
        if (state.position != 174) return output;
        at::Tensor& first = (*kept)[inputs["query"].data_ptr()];
        if (!first.defined()) first = output.clone();
        return first;
      }));
  INFO(keeps.sections["timed_check"].dump());
  CHECK(keeps.check["verdict"] == "ok");
  CHECK(keeps.sections["timed_check"]["verdict"] == "wrong");
  const Ran spoils = chunk_of(
      cheating_chunk([](const at::Tensor& output, const Inputs& inputs, const State& state) {
        if (state.position == 174) at::Tensor(inputs["key"]).mul_(0.5);
        return output;
      }));
  CHECK(spoils.check["reason"] == "it changed its input \"key\" in place");
  CHECK(spoils.sections["timed_check"]["reason"] ==
        "a timed call changed its input \"key\" in place");
}

TEST_CASE("a past is read in pieces, and every call begins from the same state", "[kernel][past]") {
  std::set<std::int64_t> pieces;
  std::set<const void*> begun_in;
  const Registry watched = with_changed_softmax(
      "watched", [&](const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
        if (state->position < 300) pieces.insert(inputs["key"].size(2));
        if (state->position == 300) begun_in.insert(state->tensors.at("key").data_ptr());
        return mix(mechanism, inputs, state);
      });
  const auto cell = make_cell("kernel", "watched", "composite", chunk({{"past", n(300)}}));
  const Ran ran = run_cell(watched, "kernel", cell, 1);
  CHECK(pieces == std::set<std::int64_t>{128, 300 - 2 * 128});
  CHECK(begun_in.size() == 1);
}
