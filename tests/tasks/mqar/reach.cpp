#include "tasks/mqar/reach.hpp"

#include <algorithm>

#include "tests/support/catch.hpp"
#include "tests/tasks/run_cell.hpp"

using namespace attnbench;
using namespace attnbench::tasks;
using mqar::LookBackShares;
using std::int64_t;
using test::Json;

namespace {

mqar::RecallPlan plan_of(const std::string& test) {
  mqar::RecallPlan plan;
  plan.test = mqar::segments_from(test);
  plan.seed = 7;
  return plan;
}

training::ModelOptions layout_of(training::Layout layout, int64_t taps = 3) {
  training::ModelOptions model;
  model.layout = layout;
  model.taps = taps;
  return model;
}

/// The record of a model trained for one step.
Json training_of_window(int64_t keys, const std::string& layout) {
  const tasks::ResolvedCell cell = test::make_cell("mqar", "window", "auto",
                                                   {{"batch", int64_t{8}},
                                                    {"width", int64_t{8}},
                                                    {"layout", layout},
                                                    {"vocabulary", int64_t{64}},
                                                    {"train_mix", std::string("32x4:8")},
                                                    {"validation_mix", std::string("32x4:8")},
                                                    {"test_mix", std::string("32x4:50")},
                                                    {"epochs", int64_t{1}}},
                                                   {{"window", Window{keys - 1, 0}}});
  return test::run_cell(Registry::with_builtins(), "mqar", cell, /*round=*/1).sections["training"];
}

}  // namespace

TEST_CASE("test segments are weighted by examples, not by questions", "[mqar]") {
  const LookBackShares both(plan_of("64x4:100, 64x16:300"));
  // The same examples in two plans: a segment's index is part of their seed.
  mqar::RecallPlan first = plan_of("64x4:100, 64x16:300");
  first.test[1].examples = 0;
  mqar::RecallPlan second = plan_of("64x4:100, 64x16:300");
  second.test[0].examples = 0;
  const LookBackShares few(first);
  const LookBackShares many(second);
  for (const int64_t distance : {8, 16, 32}) {
    INFO(distance);
    CHECK(both.share_within(distance) ==
          Approx(0.25 * few.share_within(distance) + 0.75 * many.share_within(distance)));
    CHECK(few.share_within(distance) > many.share_within(distance));
  }
}

TEST_CASE("a convolution below extends a window's reach by its taps", "[mqar]") {
  using training::Layout;
  CHECK(mqar::farthest_found(16, layout_of(Layout::mechanism)) == 15);
  CHECK(mqar::farthest_found(16, layout_of(Layout::convolution_first)) == 16);
  CHECK(mqar::farthest_found(16, layout_of(Layout::convolution_first, 4)) == 17);
  CHECK(mqar::farthest_found(16, layout_of(Layout::convolution_first, 1)) == 15);
}

TEST_CASE("the line of reach rises to 1 in small steps of whole keys", "[mqar]") {
  const LookBackShares look_back(plan_of("256x16:200"));
  const auto model = layout_of(training::Layout::convolution_first);
  const Json line = mqar::reach_line(look_back, model, 256, 100, 6400, 10);
  const auto keys = line["keys"].get<std::vector<int64_t>>();
  REQUIRE(keys.size() > 60);
  CHECK(keys.front() == 1);
  CHECK(keys.back() <= 256);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    INFO(keys[i]);
    CHECK(line["state_bytes"][i] == 10 + 64 * keys[i]);
    CHECK(line["reach"][i] == look_back.share_within(keys[i]));
    if (i > 0) CHECK((keys[i] > keys[i - 1] && keys[i] <= keys[i - 1] * 1.02 + 1));
  }
  CHECK(line["reach"].back() == 1);
  // A window longer than the sequence keeps the sequence only.
  CHECK(mqar::reach_line(look_back, model, 256, 1000, 256 * 64, 10).state_bytes[0] == 74);
}

TEST_CASE("records of windows agree on the line of reach", "[mqar]") {
  for (const std::string layout : {"convolution_first", "mechanism"}) {
    INFO(layout);
    const Json small = training_of_window(5, layout);
    const Json large = training_of_window(12, layout);
    CHECK(small["reach_line"] == large["reach_line"]);
    CHECK(small["stacked"] == (layout == "mechanism" ? 2 : 1));
    for (const Json* training : {&small, &large}) {
      const Json& line = (*training)["reach_line"];
      const int64_t keys = training == &small ? 5 : 12;
      const auto listed = line["keys"].get<std::vector<int64_t>>();
      const auto at =
          static_cast<std::size_t>(std::find(listed.begin(), listed.end(), keys) - listed.begin());
      REQUIRE(at < listed.size());
      int64_t bytes = 0;
      for (const auto& [part, own] : (*training)["state_bytes"].items())
        bytes += own.get<int64_t>();
      CHECK(line["state_bytes"][at] == bytes);
      CHECK(line["reach"][at] == (*training)["reach"]);
    }
    CHECK(small["reach"].get<double>() < large["reach"].get<double>());
  }
}
