#include <set>

#include "tests/support/catch.hpp"
#include "tests/tasks/mqar/small_cell.hpp"

using namespace attnbench;
using namespace attnbench::test;
using Catch::Matchers::Contains;
using std::int64_t;

namespace {

tasks::TaskForecast forecast_of_recall(const std::string& mechanism, const Settings& settings) {
  return tasks::find_task("mqar").forecast(
      registry(), make_cell("mqar", mechanism, "auto", settings, options_of(mechanism)));
}

}  // namespace

TEST_CASE("every causal mechanism is trained and scored, whatever its lengths", "[mqar]") {
  std::set<std::string> trained;
  for (const std::string& name : registry().mechanisms()) {
    const tasks::ResolvedCell cell =
        make_cell("mqar", name, "auto", small_recall(), options_of(name));
    const tasks::TaskForecast forecast = tasks::find_task("mqar").forecast(registry(), cell);
    INFO(name << ": " << forecast.support.reason);
    CHECK(forecast.once);
    const auto& patterns = registry().entry(name).patterns;
    const bool causal =
        std::find(patterns.begin(), patterns.end(), Pattern::causal) != patterns.end();
    CHECK(bool(forecast.support) == causal);
    if (!forecast.support) continue;
    CHECK(forecast.problem.length == 40);
    const Ran ran = run_cell(registry(), "mqar", cell);
    CHECK(ran.check["verdict"] == "ok");
    CHECK(ran.check.contains("gradient"));
    const Json& training = ran.sections["training"];
    CHECK(training["steps"] == 2 * (3 + 2));
    CHECK(training["examples_seen"] == 58);
    CHECK(training["curve"].size() == 2);
    CHECK(training["test"][1]["questions"] == 20);
    CHECK(training["chance"] == Approx(1.0 / 64));
    CHECK(training["guess"] == Approx((0.5 + 0.25) / 2));
    const Json& metrics = ran.sections["metrics"];
    CHECK(metrics["examples_per_second"].get<double>() > 0);
    CHECK(metrics.contains("state_bytes"));
    trained.insert(name);
  }
  for (const char* name :
       {"softmax", "window", "latte", "linear", "performer", "luna", "macchiato"}) {
    CHECK(trained.count(name) == 1);
  }
}

TEST_CASE("widths of keys and of values are counted in weights and state", "[mqar]") {
  struct Row {
    std::string mechanism;
    Settings options, widths;
    int64_t weights, state;  // of two heads
  };
  const int64_t width = 16, narrow = 3;
  for (const Row& row :
       std::vector<Row>{{"gla",
                         {},
                         {{"key_dim", narrow}},
                         3 * width * 2 * narrow + 2 * width * width,
                         2 * narrow * 8},
                        {"retention",
                         {},
                         {{"value_dim", int64_t{20}}},
                         2 * width * 16 + 2 * width * 40,
                         2 * 8 * 20},
                        {"linear",
                         {{"feature", std::string("taylor2")}},
                         {{"key_dim", narrow}},
                         2 * width * 2 * narrow + 2 * width * width,
                         2 * (1 + 3 + 6) * 9},
                        {"linear",
                         {{"feature", std::string("hedgehog")}},
                         {{"key_dim", narrow}},
                         2 * width * 2 * narrow + 2 * width * width + 2 * 2 * narrow * narrow,
                         2 * 6 * 10}}) {
    CAPTURE(row.mechanism, row.widths.begin()->first, row.weights);
    const auto cell =
        make_cell("mqar", row.mechanism, "auto", small_recall(row.widths), row.options);
    const tasks::TaskForecast forecast = tasks::find_task("mqar").forecast(registry(), cell);
    REQUIRE(forecast.support);
    const Ran ran = run_cell(registry(), "mqar", cell);
    CHECK(ran.check["verdict"] == "ok");
    const Json& training = ran.sections["training"];
    CHECK(training["parameters"]["mechanism"] == row.weights);
    CHECK(training["state_bytes"]["mechanism"] == 4 * row.state);
  }
  for (const char* refused : {"lavo", "luna", "rg_lru"}) {
    const auto forecast = forecast_of_recall(refused, small_recall({{"key_dim", narrow}}));
    CHECK_FALSE(forecast.support);
    CAPTURE(refused, forecast.support.reason);
    CHECK((refused != std::string("rg_lru") ||
           forecast.support.reason.find("key_dim 3") != std::string::npos));
  }
}

TEST_CASE("all variants, layouts and schedules can be trained", "[mqar]") {
  const std::vector<Settings> some{{{"variant", std::string("forgetting")},
                                    {"updates", int64_t{1}},
                                    {"filler", std::string("zeros")}},
                                   {{"variant", std::string("compositional")},
                                    {"train_mix", std::string("24x4:16")},
                                    {"test_mix", std::string("54x9:5")},
                                    {"validation_mix", std::string("24x4:8")}},
                                   {{"variant", std::string("stacked")},
                                    {"train_mix", std::string("16x8:16")},
                                    {"validation_mix", std::string("16x8:16")},
                                    {"test_mix", std::string("24x12:5")},
                                    {"tied_head", false}},
                                   {{"layout", std::string("mechanism")},
                                    {"positions", std::string("learned")},
                                    {"mlp", std::string("gated")},
                                    {"norm", std::string("rms")},
                                    {"schedule", std::string("cosine_by_epoch")},
                                    {"order", std::string("numbered")}},
                                   {{"positions", std::string("sinusoidal")},
                                    {"mlp", std::string("none")},
                                    {"embedding_dropout", 0.1},
                                    {"initial_deviation", 0.02},
                                    {"decay_all", true},
                                    {"schedule", std::string("inverse_square_root")},
                                    {"warm_up_steps", int64_t{3}}}};
  for (const Settings& more : some) {
    INFO(to_string(more.begin()->second));
    const Ran ran =
        run_cell(registry(), "mqar", make_cell("mqar", "latte", "auto", small_recall(more)));
    CHECK(ran.check["verdict"] == "ok");
    CHECK(ran.sections["training"]["stopped"] == "epochs");
  }
  // The one choice that latte refuses.
  const Settings turned = small_recall({{"positions", std::string("rotary")}});
  CHECK(
      run_cell(registry(), "mqar", make_cell("mqar", "softmax", "auto", turned)).check["verdict"] ==
      "ok");
}

TEST_CASE("shapes of validation and test default to those of training", "[mqar]") {
  Settings settings{{"batch", int64_t{8}},
                    {"width", int64_t{8}},
                    {"vocabulary", int64_t{64}},
                    {"length", int64_t{16}},
                    {"pairs", int64_t{3}},
                    {"train_examples", int64_t{10}},
                    {"validation_examples", int64_t{6}},
                    {"test_examples", int64_t{4}},
                    {"epochs", int64_t{1}}};
  const Ran ran = run_cell(registry(), "mqar", make_cell("mqar", "linear", "auto", settings));
  const Json& training = ran.sections["training"];
  CHECK(training["train"] == Json{{{"segment", "16x3"}, {"examples", 10}}});
  CHECK(training["validation"] == Json{{{"segment", "16x3"}, {"examples", 6}}});
  CHECK(training["test"][0]["examples"] == 4);
  CHECK(training["test"][0]["questions"] == 12);
}

TEST_CASE("invalid trainings are refused before they begin", "[mqar]") {
  const auto refused = [](const Settings& more, const char* why) {
    INFO(why);
    CHECK_THROWS_WITH(forecast_of_recall("softmax", small_recall(more)), Contains(why));
  };
  refused({{"train_mix", std::string("15x2:20")}}, "even");
  refused({{"test_mix", std::string("16 pairs")}}, "LENGTHxPAIRS:EXAMPLES");
  refused({{"vocabulary", int64_t{20}}}, "vocabulary");
  refused({{"layers", int64_t{1}}}, "convolution_first");
  refused({{"variant", std::string("stacked")},
           {"train_mix", std::string("16x8:16")},
           {"validation_mix", std::string("16x8:16")},
           {"test_mix", std::string("16x8:16")}},
          "tied_head");
  CHECK_THROWS_AS(make_cell("mqar", "softmax", "auto", {{"dtype", std::string("bfloat16")}}),
                  UsageError);
  CHECK_THROWS_AS(make_cell("mqar", "softmax", "auto", {{"learning_rate", -1.0}}), UsageError);
  CHECK_FALSE(forecast_of_recall("linformer", small_recall()).support);
  const Settings turned = small_recall({{"positions", std::string("rotary")}});
  CHECK_THAT(forecast_of_recall("latte", turned).support.reason, Contains("query and a key"));
  CHECK(forecast_of_recall("softmax", turned).support);
}
