#include "reports/figures/end_labels.hpp"

#include <algorithm>
#include <cmath>

#include "reports/draw.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using reports::spread_apart;
using Json = nlohmann::json;

namespace {

/// The layer of labels in the time figure of these cells; null without one.
Json labels_of(std::vector<result::CellRecord> cells) {
  const auto panel = test::first_panel(test::result_of(std::move(cells)));
  const reports::Figure figure =
      reports::draw("time", panel, reports::Palette(panel.series), {}).at(0);
  for (const Json& layer : figure.spec["layer"][0]["layer"]) {
    if (layer.contains("data") && layer["data"]["name"] == "labels") return layer;
  }
  return nullptr;
}

test::CellBuilder timed_at(const std::string& label, int length, double seconds) {
  test::CellBuilder cell(label);
  return cell.named(label + std::to_string(length)).length(length).took(seconds);
}

}  // namespace

TEST_CASE("labels that have room stay where they are", "[reports]") {
  CHECK(spread_apart({}, 10, 0, 100).empty());
  CHECK(spread_apart({50}, 10, 0, 100) == std::vector<double>{50});
  CHECK(spread_apart({80, 20, 50}, 10, 0, 100) == std::vector<double>{80, 20, 50});
}

TEST_CASE("labels that would lie over each other are moved apart around their mean", "[reports]") {
  CHECK(spread_apart({50, 50}, 10, 0, 100) == std::vector<double>{45, 55});
  CHECK(spread_apart({52, 50, 48}, 10, 0, 100) == std::vector<double>{60, 50, 40});
  // The moved ones push the next.
  CHECK(spread_apart({50, 50, 57}, 10, 0, 100)[2] > 60);
  // At an edge they give way inwards, and where there is no room below it.
  CHECK(spread_apart({99, 100}, 10, 0, 100) == std::vector<double>{90, 100});
  CHECK(spread_apart({0, 1}, 10, 0, 100) == std::vector<double>{0, 10});
  CHECK(spread_apart({1, 1, 1}, 10, 0, 15) == std::vector<double>{0, 10, 20});
}

TEST_CASE("any labels keep their order and their distance", "[reports]") {
  std::vector<double> places;
  for (int i = 1; i <= 14; ++i) places.push_back(340 * std::fmod(i * 0.6180339887, 1.0));
  for (const double squeeze : {1.0, 0.3, 0.01}) {
    std::vector<double> wanted;
    for (const double place : places) wanted.push_back(place * squeeze);
    const std::vector<double> spread = spread_apart(wanted, 13, 0, 340);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      CHECK((spread[i] >= -1e-9 && spread[i] <= 340 + 1e-9));
      for (std::size_t k = 0; k < wanted.size(); ++k) {
        if (wanted[i] < wanted[k]) CHECK(spread[k] - spread[i] >= 13 - 1e-9);
      }
    }
  }
}

TEST_CASE("each line has a label at its end, as high as its last point where there is room",
          "[reports]") {
  const Json layer = labels_of({timed_at("softmax", 256, 0.001), timed_at("softmax", 512, 0.004),
                                timed_at("softmax", 1024, 0.016), timed_at("latte", 256, 0.002),
                                timed_at("latte", 512, 0.004)});
  REQUIRE_FALSE(layer.is_null());
  const Json& rows = layer["data"]["values"];
  REQUIRE(rows.size() == 2);
  const auto row = [&](const char* series) {
    return *std::find_if(rows.begin(), rows.end(),
                         [&](const Json& one) { return one["series"] == series; });
  };
  CHECK(row("softmax")["x"] == 1024);
  CHECK(row("softmax")["y"].get<double>() == Approx(16));
  // It ended earlier, and its label stands there.
  CHECK(row("latte")["x"] == 512);
  CHECK(row("latte")["y"].get<double>() == Approx(4));
}

TEST_CASE("lines without an axis of numbers keep their legend", "[reports]") {
  CHECK(labels_of({timed_at("softmax", 256, 0.001), timed_at("latte", 256, 0.002)}).is_null());
  CHECK_FALSE(
      labels_of({timed_at("softmax", 256, 0.001), timed_at("softmax", 512, 0.002)}).is_null());
}
