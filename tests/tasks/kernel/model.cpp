// The scope model of the kernel task.
#include "tests/support/catch.hpp"
#include "tests/tasks/run_cell.hpp"

using namespace attnbench;
using namespace attnbench::test;

namespace {

Settings small_block(const Settings& more = {}) {
  return with({{"length", n(48)},
               {"batch", n(2)},
               {"heads", n(2)},
               {"head_dim", n(8)},
               {"scope", s("model")},
               {"layers", n(3)},
               {"vocabulary", n(101)}},
              more);
}

Ran ran_model(const char* mechanism, const Settings& more) {
  return run_cell(registry(), "kernel", make_cell("kernel", mechanism, "auto", small_block(more)));
}

}  // namespace

TEST_CASE("a whole model is timed, metered and checked", "[kernel][model]") {
  for (const char* mechanism : {"softmax", "window", "latte", "linear"}) {
    for (const char* pass : {"forward", "backward", "forward+backward"}) {
      INFO(mechanism << " " << pass);
      const Ran ran = ran_model(mechanism, {{"pass", s(pass)}});
      INFO(ran.check.dump());
      CHECK(ran.check["verdict"] == "ok");
      CHECK(ran.check["mixes"] == 2);
      CHECK(ran.check.contains("gradient") == (std::string(pass) != "forward"));
      CHECK(ran.measured["timing"].contains(pass));
      CHECK(ran.sections["memory"]["output_bytes"] == 2 * 48 * 101 * 4);
    }
  }
}

TEST_CASE("the predicted memory of a model is near the measured one", "[kernel][model]") {
  for (const Settings& more :
       {Settings{}, Settings{{"vocabulary", n(20000)}}, Settings{{"mlp", s("gated")}},
        Settings{{"length", n(512)}}, Settings{{"layers", n(12)}, {"heads", n(16)}}}) {
    for (const char* pass : {"forward", "forward+backward"}) {
      Settings settings = more;
      settings["pass"] = s(pass);
      const Ran ran = ran_model("softmax", settings);
      const double peak = ran.sections["memory"]["peak_bytes"].get<double>();
      INFO((more.empty() ? "small" : more.begin()->first) << " " << pass << " " << peak);
      CHECK(ran.forecast.peak_bytes > 0.8 * peak);
      CHECK(ran.forecast.peak_bytes < 2.5 * peak);
    }
  }
}

TEST_CASE("the FLOPs of a model are those of its products", "[kernel][model]") {
  const auto flops = [](const Settings& more) {
    const auto cell = make_cell("kernel", "softmax", "auto", small_block(more));
    return tasks::find_task("kernel").forecast(registry(), cell).cost.model_flops;
  };
  const double layer = flops({{"scope", s("layer")}});
  const double tokens = 2 * 48;
  const double mlp = 2 * tokens * 16 * 64;
  const double head = 2 * tokens * 16 * 101;
  CHECK(flops({}) == Approx(3 * (layer + 2 * mlp) + head));
  CHECK(flops({{"mlp", s("gated")}, {"mlp_width", n(32)}}) ==
        Approx(3 * (layer + 1.5 * mlp) + head));
  const double learned = flops({{"scope", s("layer")}, {"pass", s("backward")}});
  CHECK(flops({{"pass", s("backward")}}) == Approx(3 * (learned + 4 * mlp) + 2 * head));
}

TEST_CASE("a model in 16 bits, bidirectional and with one block", "[kernel][model]") {
  for (const Settings& more :
       {Settings{{"dtype", s("bfloat16")}, {"norm", s("rms")}},
        Settings{{"pattern", s("bidirectional")}}, Settings{{"layers", n(1)}},
        Settings{{"tied_head", false}, {"norm", s("rms")}, {"mlp", s("gated")}}}) {
    const Ran ran = ran_model("softmax", more);
    INFO(more.begin()->first << " " << ran.check.dump());
    CHECK(ran.check["verdict"] == "ok");
  }
}

TEST_CASE("positions are those of the scope: a model has all, layers rotary ones",
          "[kernel][model]") {
  for (const char* positions : {"rotary", "learned", "sinusoidal"}) {
    const Ran ran =
        ran_model("softmax", {{"positions", s(positions)}, {"pass", s("forward+backward")}});
    INFO(positions << " " << ran.check.dump());
    CHECK(ran.check["verdict"] == "ok");
  }
  const auto support = [](const char* mechanism, const char* scope, const char* positions) {
    const auto cell = make_cell("kernel", mechanism, "auto",
                                small_block({{"scope", s(scope)}, {"positions", s(positions)}}));
    return tasks::find_task("kernel").forecast(registry(), cell).support;
  };
  for (const char* scope : {"projected", "layer"}) {
    const Ran ran = ran_model("softmax", {{"scope", s(scope)}, {"positions", s("rotary")}});
    INFO(scope << " " << ran.check.dump());
    CHECK(ran.check["verdict"] == "ok");
    CHECK_THAT(support("softmax", scope, "learned").reason, Catch::Contains("embedding"));
  }
  CHECK_THAT(support("softmax", "mix", "rotary").reason, Catch::Contains("scope mix"));
  CHECK_THAT(support("latte", "model", "rotary").reason, Catch::Contains("query and a key"));
  CHECK(support("latte", "model", "learned"));
}

TEST_CASE("a model is refused cross attention in the forecast", "[kernel][model]") {
  const auto cell = make_cell("kernel", "softmax", "auto", small_block({{"pattern", s("cross")}}));
  const tasks::TaskForecast forecast = tasks::find_task("kernel").forecast(registry(), cell);
  CHECK_FALSE(forecast.support.yes);
  CHECK_THAT(forecast.support.reason, Catch::Contains("cross"));
}
