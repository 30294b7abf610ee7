// The setting autocast in a whole task: supported implementations, forecasts, and the check of
// every mechanism's mix on bfloat16 inputs.
#include "tests/support/catch.hpp"
#include "tests/tasks/mqar/small_cell.hpp"

using namespace attnbench;
using namespace attnbench::test;
using Catch::Matchers::Contains;
using std::int64_t;

namespace {

/// Two steps under autocast, with an MLP whose products it narrows.
Settings narrow(Settings more = {}) {
  more.insert({{"autocast", std::string("bfloat16")},
               {"mlp", std::string("plain")},
               {"train_mix", std::string("16x2:16")},
               {"epochs", int64_t{1}}});
  return small_recall(more);
}

tasks::TaskForecast forecast_of(const Registry& registry, const std::string& implementation,
                                const Settings& settings) {
  return tasks::find_task("mqar").forecast(registry,
                                           make_cell("mqar", "softmax", implementation, settings));
}

/// Softmax' composite form under another name.
Implementation another(const char* name) {
  const Registry registry = Registry::with_builtins();
  Implementation implementation = registry.entry("softmax").implementations.front();
  implementation.name = name;
  implementation.rank = 100;
  return implementation;
}

}  // namespace

TEST_CASE("a mix is checked in the dtype that it is given, trained or not under autocast",
          "[autocast]") {
  for (const char* autocast : {"off", "bfloat16"}) {
    const tasks::ResolvedCell cell =
        make_cell("mqar", "latte", "auto", narrow({{"autocast", std::string(autocast)}}));
    const Ran ran = run_cell(registry(), "mqar", cell);
    CHECK(ran.forecast.problem.dtype == Dtype::float32);  // of the weights
    CHECK(ran.check["verdict"] == "ok");
    CHECK(ran.check["dtype"] == (std::string(autocast) == "off" ? "float32" : autocast));
    CHECK(ran.check.contains("gradient"));
    CHECK(ran.sections["training"]["steps"] == 2);
  }
}

TEST_CASE("an implementation without bfloat16 is refused with the reason", "[autocast]") {
  Registry registry = Registry::with_builtins();
  Implementation wide_only = another("wide_only");
  wide_only.supports = [](const Options&, const Problem& problem) {
    return problem.dtype == Dtype::bfloat16 ? Support::no("there is no kernel for bfloat16")
                                            : Support{};
  };
  registry.add_implementation("softmax", wide_only);
  const Settings off = narrow({{"autocast", std::string("off")}});
  CHECK(forecast_of(registry, "wide_only", off).support.yes);
  CHECK(forecast_of(registry, "auto", off).implementation == "wide_only");
  const tasks::TaskForecast refused = forecast_of(registry, "wide_only", narrow());
  CHECK_FALSE(refused.support.yes);
  CHECK_THAT(refused.support.reason, Contains("autocast gives the mix bfloat16: ") &&
                                         Contains("there is no kernel for bfloat16"));
  CHECK_THROWS_AS(
      tasks::find_task("mqar").make(registry, make_cell("mqar", "softmax", "wide_only", narrow())),
      UnsupportedError);
  // auto chooses a form that supports bfloat16; other refusals do not mention autocast.
  CHECK(forecast_of(registry, "auto", narrow()).implementation != "wide_only");
  const tasks::TaskForecast linformer =
      tasks::find_task("mqar").forecast(registry, make_cell("mqar", "linformer", "auto", narrow()));
  CHECK_FALSE(linformer.support.yes);
  CHECK_THAT(linformer.support.reason, !Contains("autocast"));
}

TEST_CASE("a mix that fails on inputs narrower than its parameters is unsupported, not an error",
          "[autocast]") {
  Registry registry = Registry::with_builtins();
  Implementation one_width = another("one_width");
  one_width.mix = [](Mechanism&, const Inputs& inputs, State*) {
    const at::Tensor parameter = at::ones({inputs["query"].size(3), inputs["query"].size(3)});
    return Mixed{at::matmul(inputs["query"], parameter), {}};
  };
  registry.add_implementation("softmax", one_width);
  CHECK_THROWS_AS(run_cell(registry, "mqar", make_cell("mqar", "softmax", "one_width", narrow())),
                  UnsupportedError);
  CHECK_THROWS_WITH(
      run_cell(registry, "mqar", make_cell("mqar", "softmax", "one_width", narrow())),
      Contains("it does not mix bfloat16 beside parameters in float32, which autocast asks for"));
}

TEST_CASE("a mix that fails in either dtype fails as without autocast", "[autocast]") {
  Registry registry = Registry::with_builtins();
  Implementation broken = another("broken");
  broken.mix = [](Mechanism&, const Inputs&, State*) -> Mixed {
    throw std::runtime_error("no kernel was built");
  };
  registry.add_implementation("softmax", broken);
  CHECK_THROWS_WITH(run_cell(registry, "mqar", make_cell("mqar", "softmax", "broken", narrow())),
                    "no kernel was built");
}

TEST_CASE("options that autocast excludes are refused before anything runs", "[autocast]") {
  CHECK_THROWS_WITH(make_cell("mqar", "softmax", "auto", {{"autocast", std::string("float16")}}),
                    Contains("autocast must be one of off, bfloat16") && Contains("float16"));
  const Registry registry = Registry::with_builtins();
  CHECK_THROWS_WITH(forecast_of(registry, "auto", narrow({{"dtype", std::string("float64")}})),
                    Contains("autocast narrows products of float32 weights, not of float64"));
}

TEST_CASE("the predicted memory of a training is near the measured one, and less under autocast",
          "[autocast]") {
  worker::install_counting_allocator();
  for (const char* name : {"softmax", "latte", "linear"}) {
    INFO(name);
    std::map<std::string, double> predicted;
    std::map<std::string, double> measured;
    for (const std::string autocast : {"off", "bfloat16"}) {
      const tasks::ResolvedCell cell =
          make_cell("mqar", name, "auto",
                    narrow({{"autocast", autocast},
                            {"width", int64_t{64}},
                            {"batch", int64_t{32}},
                            {"train_mix", std::string("128x16:64")},
                            {"validation_mix", std::string("128x16:32")},
                            {"test_mix", std::string("128x16:32")},
                            {"vocabulary", int64_t{1024}}}));
      tasks::MemoryMeter& meter = worker::cpu_memory();
      const auto before = meter.live_bytes();
      meter.reset_peak();
      const Ran ran = run_cell(registry(), "mqar", cell, /*round=*/1);
      measured[autocast] = static_cast<double>(meter.peak_bytes() - before);
      predicted[autocast] = ran.forecast.peak_bytes;
    }
    CAPTURE(measured["off"], measured["bfloat16"], predicted["off"], predicted["bfloat16"]);
    CHECK(predicted["bfloat16"] < predicted["off"]);
    for (const char* autocast : {"off", "bfloat16"}) {
      CHECK(predicted[autocast] > 0.7 * measured[autocast]);
      CHECK(predicted[autocast] < 4 * measured[autocast]);
    }
  }
}
