#include "tests/tasks/run_cell.hpp"

#include "tests/support/catch.hpp"

using namespace attnbench;
using namespace attnbench::test;

namespace {

Settings small_call(const Settings& more = {}) {
  return with({{"length", n(96)}, {"heads", n(2)}, {"head_dim", n(16)}}, more);
}

}  // namespace

TEST_CASE("the kernel task measures a forward pass, checked at its size", "[kernel]") {
  const auto cell = make_cell("kernel", "softmax", "composite", small_call());
  const Ran ran = run_cell(registry(), "kernel", cell);
  CHECK(ran.forecast.support.yes);
  CHECK(ran.check["verdict"] == "ok");
  CHECK(ran.check["rows"].get<int>() >= 8);  // up to 32, in 0.25 s
  CHECK(ran.check["error"].get<double>() < 1e-6);
  CHECK_FALSE(ran.check.contains("gradient"));
  CHECK(ran.measured["timing"]["forward"]["samples_seconds"].size() >=
        2);  // more where one was preempted
  CHECK(ran.sections["chosen"]["implementation"] == "composite");
}

TEST_CASE("each pass is recorded under its own name, with its memory", "[kernel]") {
  for (const char* pass : {"forward", "backward", "forward+backward"}) {
    INFO(pass);
    const auto cell = make_cell("kernel", "softmax", "composite", small_call({{"pass", s(pass)}}));
    const Ran ran = run_cell(registry(), "kernel", cell);
    INFO(ran.check.dump());
    CHECK(ran.measured["timing"].contains(pass));
    CHECK(ran.check["verdict"] == "ok");
    const test::Json& memory = ran.sections["memory"];
    const std::int64_t one = 2 * 96 * 16 * 4;
    CHECK(memory["input_bytes"] == 3 * one);
    CHECK(memory["output_bytes"] == one);
    CHECK(memory["peak_bytes"].get<std::int64_t>() > 4 * one);
    if (std::string(pass) == "forward") {
      CHECK_FALSE(memory.contains("saved_bytes"));
      // The scores, at least.
      CHECK(memory["workspace_bytes"].get<std::int64_t>() >= 2 * 96 * 96 * 4);
    } else {
      CHECK(memory["saved_bytes"].get<std::int64_t>() >= 2 * 96 * 96 * 4);
      CHECK(memory["gradient_bytes"] == 3 * one);
      CHECK(ran.check["gradient"]["error"].get<double>() < 1e-5);
    }
  }
}

TEST_CASE("a width of keys is refused in every scope by what has no query or key", "[kernel]") {
  const auto forecast_of = [](const char* mechanism, const char* scope) {
    const auto cell = make_cell("kernel", mechanism, "auto",
                                small_call({{"key_dim", n(8)}, {"scope", s(scope)}}));
    return tasks::find_task("kernel").forecast(registry(), cell);
  };
  for (const char* scope : {"mix", "layer"}) {
    INFO(scope);
    CHECK(forecast_of("softmax", scope).support.yes);
    CHECK(forecast_of("linear", scope).support.yes);
    for (const char* mechanism : {"latte", "rg_lru"}) {
      CHECK_THAT(forecast_of(mechanism, scope).support.reason,
                 Catch::Contains(std::string(mechanism) + ": key_dim 8 needs a query or key"));
    }
    CHECK_FALSE(forecast_of("luna", scope).support.yes);
  }
}

TEST_CASE("later rounds measure time alone", "[kernel]") {
  const auto cell = make_cell("kernel", "softmax", "auto", small_call());
  const Ran ran = run_cell(registry(), "kernel", cell, 2);
  CHECK_FALSE(ran.sections.contains("memory"));
  CHECK(ran.measured["timing"]["forward"]["round"] == 2);
}

TEST_CASE("projections inside the clock are counted, checked and metered", "[kernel]") {
  const auto mix =
      make_cell("kernel", "latte", "auto", small_call({{"pass", s("forward+backward")}}));
  const double flops = run_cell(registry(), "kernel", mix).forecast.cost.model_flops;
  for (const char* scope : {"projected", "layer"}) {
    INFO(scope);
    const auto cell = make_cell("kernel", "latte", "auto",
                                small_call({{"scope", s(scope)}, {"pass", s("forward+backward")}}));
    const Ran ran = run_cell(registry(), "kernel", cell);
    INFO(ran.check.dump());
    CHECK(ran.check["verdict"] == "ok");
    // Three roles of 16 per head from 32 channels; once forward, twice backward.
    const double matrices = std::string(scope) == "layer" ? 4 : 3;
    CHECK(ran.forecast.cost.model_flops - flops == Approx(3 * matrices * 2 * 96 * 32 * 32));
    CHECK(ran.measured["timing"].contains("forward+backward"));
  }
}

TEST_CASE("an unsupported cell is refused by the forecast", "[kernel]") {
  const auto cell =
      make_cell("kernel", "softmax", "composite", small_call({{"dtype", s("float16")}}));
  const tasks::Task& task = tasks::find_task("kernel");
  const tasks::TaskForecast forecast = task.forecast(registry(), cell);
  CHECK_FALSE(forecast.support.yes);
  CHECK(forecast.support.reason.find("float16") != std::string::npos);
  CHECK_THROWS_AS(task.make(registry(), cell), UnsupportedError);
}

TEST_CASE("forecasts run nothing in parallel and keep the number of threads", "[kernel]") {
  const int threads = at::get_num_threads();
  at::set_num_threads(3);
  const auto cell = make_cell("kernel", "softmax", "auto", small_call({{"scope", s("layer")}}));
  tasks::find_task("kernel").forecast(registry(), cell);
  CHECK(at::get_num_threads() == 3);
  at::set_num_threads(threads);
}

TEST_CASE("the predicted peak is near the measured one", "[kernel]") {
  for (const char* pass : {"forward", "forward+backward"}) {
    const auto cell = make_cell("kernel", "softmax", "composite",
                                small_call({{"length", n(512)}, {"pass", s(pass)}}));
    const Ran ran = run_cell(registry(), "kernel", cell);
    const double measured = ran.sections["memory"]["peak_bytes"].get<double>();
    INFO(pass << ": predicted " << ran.forecast.peak_bytes << ", measured " << measured);
    CHECK(ran.forecast.peak_bytes > 0.6 * measured);
    CHECK(ran.forecast.peak_bytes < 1.7 * measured);
  }
}

TEST_CASE("projecting a stream of latents costs by its rows, not by the tokens", "[kernel]") {
  const auto flops = [](const char* scope) {
    const auto cell = make_cell("kernel", "luna", "composite",
                                small_call({{"scope", s(scope)}, {"pattern", s("bidirectional")}}),
                                {{"latents_per_head", n(5)}});
    return tasks::find_task("kernel").forecast(registry(), cell).cost.model_flops;
  };
  // Tied: the stream, the queries and the tokens that are packed.
  CHECK(flops("projected") - flops("mix") == Approx((5 + 96 + 96) * 2 * 32 * 32));
}
