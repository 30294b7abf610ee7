#include "reports/tables/layout.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using result::CellRecord;
using test::CellBuilder;
using Words = std::vector<std::string>;

namespace {

std::vector<reports::Panel> laid(std::vector<CellRecord> cells,
                                 const std::string& axis = "length") {
  return test::panels(test::result_of(std::move(cells), axis));
}

CellBuilder sized(const std::string& label, int length) {
  return CellBuilder(label).length(length);
}

/// Latents are of all heads together, of which there are four.
CellBuilder latent(int total, int length = 512) {
  return sized("latte", length)
      .option("latents_total", total)
      .option("latents_per_head", total / 4);
}

}  // namespace

TEST_CASE("the task's axis is the axis when it varies", "[result]") {
  const auto found = laid(
      {sized("softmax", 512).set("key_length", 512), sized("softmax", 256).set("key_length", 256)});
  REQUIRE(found.size() == 1);
  CHECK(found[0].axis == "length");
  CHECK(found[0].facet.empty());  // key_length follows from length
  CHECK(axis_values(found[0]) == std::vector<Json>{256, 512});
}

TEST_CASE("no name has an option that says nothing", "[result]") {
  const auto stacked = [](const char* blocks) {
    return sized("softmax", 512).named(blocks).set("stack", blocks);
  };
  const auto found = laid({stacked(""), stacked("3 self + window"), stacked("self")});
  REQUIRE(found.size() == 1);
  CHECK(found[0].series ==
        Words{"softmax", "softmax, stack=3 self + window", "softmax, stack=self"});
  const auto faceted =
      laid({sized("softmax", 512).set("order", ""), sized("softmax", 512).set("order", "sorted")});
  REQUIRE(faceted.size() == 2);
  CHECK(faceted[0].facet_text() == "order=none");
  CHECK(reports::label_part("stack", "") == "");
  CHECK(reports::label_part("stack", nullptr) == "");
  CHECK(reports::label_part("window", 0) == ", window=0");
}

TEST_CASE("another option becomes the axis when only it varies", "[result]") {
  const auto found = laid({latent(64), latent(128), sized("softmax", 512)});
  REQUIRE(found.size() == 1);
  CHECK(found[0].axis == "latents_total");
  CHECK(found[0].series == Words{"latte", "softmax"});
  CHECK_FALSE(found[0].cells[2].x);
}

TEST_CASE("mechanisms of different options stand along the bytes of their states", "[result]") {
  const auto with_state = [](CellBuilder one, double bytes) {
    one.cost.emplace().state_bytes = bytes;
    return one;
  };
  const auto window = [](int left) {
    return sized("window", 64).option("window", {{"left", left}, {"right", 0}});
  };
  std::vector<CellRecord> cells{with_state(sized("softmax", 64), 4096),
                                with_state(window(15), 1024), with_state(window(31), 2048),
                                with_state(sized("latte", 64).option("latents_total", 16), 512),
                                with_state(sized("latte", 64).option("latents_total", 64), 2048)};
  for (const char* declared : {"window", "length", "latents_total"}) {
    const auto found = laid(cells, declared);
    REQUIRE(found.size() == 1);
    CHECK(found[0].axis == "state_bytes");
    CHECK(found[0].series == Words{"softmax", "window", "latte"});
    CHECK(axis_values(found[0]).size() == 4);
  }
  // One that shares the axis, or does not vary at all, needs no other.
  cells.erase(cells.begin() + 2);
  CHECK(laid(cells)[0].axis == "latents_total");
  // A larger batch has a larger state, but is no size of the mechanism.
  std::vector<CellRecord> batches = cells;
  for (CellRecord other : cells) {
    other.settings["batch"] = 2;
    other.cost->state_bytes *= 2;
    batches.push_back(std::move(other));
  }
  CHECK(laid(batches)[0].axis == "latents_total");
  // Where somebody's state is not known, nobody stands along it.
  cells[0].cost.reset();
  cells.push_back(with_state(window(31), 2048));
  CHECK(laid(cells)[0].axis == "latents_total");
}

TEST_CASE("further settings make panels, further options make lines", "[result]") {
  std::vector<CellRecord> cells;
  for (const char* pass : {"forward", "backward"}) {
    for (const int total : {64, 128}) {
      for (const int length : {256, 512}) cells.push_back(latent(total, length).set("pass", pass));
    }
  }
  const auto found = laid(cells);
  REQUIRE(found.size() == 2);
  CHECK(found[0].facet_text() == "pass=forward");
  CHECK(found[1].facet_text() == "pass=backward");
  CHECK(found[0].series == Words{"latte, latents_total=64", "latte, latents_total=128"});
  CHECK(found[0].cells.size() == 4);
}

TEST_CASE("settings that differ between labels only make no panel", "[result]") {
  CHECK(laid({sized("a", 256).set("pattern", "causal"), sized("a", 512).set("pattern", "causal"),
              sized("b", 256).set("pattern", "bidirectional")})
            .size() == 1);
}

TEST_CASE("softmax is exact attention, but not in a stack with others", "[result]") {
  CHECK(reports::is_exact(sized("softmax", 512)));
  CHECK(reports::is_exact(sized("softmax", 512).set("stack", "")));
  CHECK(reports::is_exact(sized("softmax", 512).set("stack", "self")));
  CHECK_FALSE(reports::is_exact(sized("softmax", 512).set("stack", "self + window(window=64)")));
  CHECK_FALSE(reports::is_exact(sized("latte", 512).set("stack", "self + softmax")));
}

TEST_CASE("stacks of one label are lines beside each other and beside exact attention",
          "[result]") {
  const auto found =
      laid({sized("softmax", 512).set("stack", ""), sized("delta", 512).set("stack", "self"),
            sized("delta", 512).set("stack", "3 self + softmax")});
  REQUIRE(found.size() == 1);
  CHECK(found[0].facet.empty());
  CHECK(found[0].series.size() == 3);
  CHECK(found[0].series.back() == "delta, stack=3 self + softmax");
}

TEST_CASE("implementations listed under one label are told apart", "[result]") {
  CellBuilder scan = sized("latte", 256);
  CellBuilder chunked = scan;
  scan.implementation = "composite";
  chunked.implementation = "chunked";
  CHECK(laid({scan, chunked})[0].series ==
        Words{"latte, implementation=composite", "latte, implementation=chunked"});
}
