// Decoding several sequences at once, with contexts of one length or of several.
#include "tasks/decode/generation.hpp"
#include "tests/support/catch.hpp"
#include "tests/tasks/run_cell.hpp"

using namespace attnbench;
using namespace attnbench::test;
using Catch::Contains;

namespace {

Settings small_batch(const Settings& more = {}) {
  return with({{"length", n(50)}, {"heads", n(2)}, {"head_dim", n(16)}, {"steps", n(4)}}, more);
}

Settings ragged_contexts(const Settings& more = {}) {
  return small_batch(with({{"lengths", s("9+50+31")}, {"batch", n(3)}}, more));
}

tasks::TaskForecast batch_forecast(const std::string& mechanism, const Settings& settings,
                                   const char* implementation = "auto") {
  const auto cell = make_cell("decode", mechanism, implementation, settings);
  return tasks::find_task("decode").forecast(registry(), cell);
}

Ran batch_run(const Registry& registry, const std::string& mechanism, const Settings& settings) {
  return run_cell(registry, "decode", make_cell("decode", mechanism, "auto", settings));
}

std::string batch_refusal(const Settings& settings) {
  try {
    batch_forecast("softmax", settings);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

void check_decoded(const Ran& ran) {
  INFO(ran.check.dump() << "\n" << ran.sections["timed_check"].dump());
  CHECK(ran.check["verdict"] == "ok");
  CHECK(ran.check["prefill"]["verdict"] == "ok");
  for (const char* what : {"step", "generation", "prefill"}) {
    CHECK(ran.sections["timed_check"][what]["verdict"] == "ok");
  }
}

}  // namespace

TEST_CASE("every mechanism with a state decodes a batch of 8 as of 1", "[decode][batch]") {
  for (const std::string& name : registry().mechanisms()) {
    if (!batch_forecast(name, small_batch()).support) continue;
    double state_of_one = 0;
    for (const std::int64_t batch : {1, 8}) {
      INFO(name << ", batch " << batch);
      const Ran ran = batch_run(registry(), name, small_batch({{"batch", n(batch)}}));
      check_decoded(ran);
      CHECK(ran.check["rows"] == 2 * batch * 2);
      CHECK(ran.sections["memory"]["output_bytes"] == batch * 2 * 16 * 4);
      const double state = ran.sections["metrics"]["state_bytes"].get<double>();
      if (batch == 1) state_of_one = state;
      CHECK(state == batch * state_of_one);
      CHECK(ran.forecast.cost.state_bytes == Approx(state).epsilon(0.35));
    }
    const Cost one = batch_forecast(name, small_batch()).cost;
    const Cost eight = batch_forecast(name, small_batch({{"batch", n(8)}})).cost;
    INFO(name);
    CHECK(eight.model_flops == Approx(8 * one.model_flops));
    CHECK(eight.state_bytes == Approx(8 * one.state_bytes));
    CHECK(eight.minimal_bytes == Approx(8 * one.minimal_bytes));
  }
}

TEST_CASE("the predicted peak of a batch is near the measured one", "[decode][batch]") {
  for (const char* mechanism : {"softmax", "linear"}) {
    const Ran ran =
        batch_run(registry(), mechanism, small_batch({{"batch", n(8)}, {"length", n(512)}}));
    const double measured = ran.sections["memory"]["peak_bytes"].get<double>();
    INFO(mechanism << ": predicted " << ran.forecast.peak_bytes << ", measured " << measured);
    CHECK(ran.forecast.peak_bytes > 0.6 * measured);
    CHECK(ran.forecast.peak_bytes < 3 * measured);
  }
}

TEST_CASE("every mechanism with a state decodes contexts of several lengths", "[decode][ragged]") {
  for (const std::string& name : registry().mechanisms()) {
    if (!batch_forecast(name, ragged_contexts()).support) continue;
    INFO(name);
    const Ran ran = batch_run(registry(), name, ragged_contexts());
    check_decoded(ran);
    CHECK(ran.sections["metrics"]["real_tokens"] == 9 + 50 + 31);
    CHECK(ran.sections["metrics"]["executed_tokens"] == 3 * 50);
    CHECK(ran.sections["metrics"]["state_bytes"].get<double>() > 0);
  }
}

TEST_CASE("a step after a padded context is that after the context alone", "[decode][ragged]") {
  const std::int64_t lengths[] = {9, 50, 31};
  for (const char* name : {"softmax", "window", "retention", "delta", "latte", "fox"}) {
    const Settings options =
        std::string(name) == "window" ? Settings{{"window", Window{3, 0}}} : Settings{};
    const auto cell = make_cell("decode", name, "auto", ragged_contexts(), options);
    const tasks::TaskForecast forecast = tasks::find_task("decode").forecast(registry(), cell);
    const at::NoGradGuard no_grad;
    tasks::decode::Generation generation(registry(), cell, forecast, 5);
    generation.read_context();
    const at::Tensor step = generation.first_step();
    for (std::int64_t b = 0; b < 3; ++b) {
      INFO(name << ", " << lengths[b] << " tokens of context");
      Problem problem = forecast.problem;
      problem.batch = 1;
      problem.length = problem.key_length = lengths[b] + 1;
      const auto alone = registry().entry(name).make(forecast.options, problem);
      Inputs inputs;
      for (const Role& role : alone->roles()) {
        inputs.tensors[role.name] = generation.inputs()[role.name].narrow(0, b, 1).narrow(
            2, 50 - lengths[b], lengths[b] + 1);
      }
      const at::Tensor whole =
          registry().entry(name).implementations.front().mix(*alone, inputs, nullptr).output;
      CHECK(at::allclose(step[b], whole[0].narrow(1, lengths[b], 1), 1e-4, 1e-5));
    }
  }
}

TEST_CASE("a padded context that is read without its mask is wrong", "[decode][ragged]") {
  const Registry blind = with_changed_softmax(
      "blind", [](const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
        Inputs unmasked = inputs;
        unmasked.key_mask.reset();
        return mix(mechanism, unmasked, state);
      });
  CHECK(batch_run(blind, "blind", ragged_contexts()).check["verdict"] == "wrong");
  CHECK(batch_run(blind, "blind", ragged_contexts({{"lengths", s("3x50")}})).check["verdict"] ==
        "ok");
}

TEST_CASE("what a step after contexts of several lengths must do is the sum of them",
          "[decode][ragged]") {
  for (const char* mechanism : {"softmax", "latte"}) {
    INFO(mechanism);
    const tasks::TaskForecast whole =
        batch_forecast(mechanism, small_batch({{"batch", n(3)}}), "composite");
    const tasks::TaskForecast some = batch_forecast(mechanism, ragged_contexts(), "composite");
    double flops = 0, bytes = 0, prefill = 0, generation = 0;
    for (const std::int64_t length : {9, 50, 31}) {
      const auto one = batch_forecast(mechanism, small_batch({{"length", n(length)}}), "composite");
      flops += one.cost.model_flops;
      bytes += one.cost.minimal_bytes;
      prefill += one.prefill_cost->model_flops;
      generation += one.calls_cost.minimal_bytes;
    }
    CHECK(some.cost.model_flops == Approx(flops));
    CHECK(some.cost.minimal_bytes == Approx(bytes));
    CHECK(some.prefill_cost->model_flops == Approx(prefill));
    CHECK(some.calls_cost.minimal_bytes == Approx(generation));
    CHECK(some.prefill_cost->executed_flops == whole.prefill_cost->executed_flops);
    CHECK(some.cost.state_bytes == whole.cost.state_bytes);
    CHECK(some.peak_bytes == whole.peak_bytes);
  }
}

TEST_CASE("contexts of several lengths that no mix has are refused", "[decode][ragged]") {
  CHECK_THAT(batch_refusal(ragged_contexts({{"batch", n(2)}})), Contains("expected batch 3"));
  CHECK_THAT(batch_refusal(ragged_contexts({{"length", n(64)}})), Contains("expected length 50"));
  CHECK_THAT(batch_refusal(ragged_contexts({{"lengths", s("9+x+31")}})), Contains("is no"));
  CHECK_THAT(batch_refusal(ragged_contexts({{"scope", s("model")}})), Contains("say scope mix"));
}
