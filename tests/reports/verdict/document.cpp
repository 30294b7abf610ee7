#include "reports/verdict/document.hpp"

#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"

using namespace attnbench::reports::verdict;
using Json = nlohmann::json;

namespace {

/// A cell of 1 ms at 256 tokens, and of `long_ms` at 1024; with 0 it is disturbed there.
std::vector<Candidate> two_lengths(const std::string& label, double short_ms, double long_ms) {
  std::vector<Candidate> cells(2);
  for (Candidate& cell : cells) {
    cell.label = label;
    cell.implementation = label + "/fused";
    cell.exact = label == "softmax";
  }
  cells[0].x = 256;
  cells[0].time = Time{short_ms / 1e3, short_ms / 1e3 * 0.98, short_ms / 1e3 * 1.02};
  cells[1].x = 1024;
  if (long_ms > 0) {
    cells[1].time = Time{long_ms / 1e3, long_ms / 1e3 * 0.98, long_ms / 1e3 * 1.02};
  } else {
    cells[1].status = attnbench::Status::disturbed;
  }
  return cells;
}

PanelQuestion forward_of(std::vector<Candidate> cells, const std::vector<Candidate>& more) {
  PanelQuestion one;
  one.task = "forward";
  one.what = "forward";
  one.axis = "length";
  one.conditions = "B=1";
  one.cells = std::move(cells);
  one.cells.insert(one.cells.end(), more.begin(), more.end());
  return one;
}

}  // namespace

TEST_CASE("a verdict as JSON has the lines of the text, and their numbers", "[verdict]") {
  const Json json = document_of(
      judge({"a CPU", {forward_of(two_lengths("softmax", 1, 16), two_lengths("latte", 2, 8))}}));
  REQUIRE(json["tasks"].size() == 1);
  const Json& task = json["tasks"][0];
  CHECK(task["task"] == "forward");
  CHECK(task["conditions"] == "B=1");
  REQUIRE(task["fastest"].size() == 2);
  CHECK(task["fastest"][0]["labels"] == Json{"softmax"});
  CHECK(task["fastest"][1]["labels"] == Json{"latte"});
  CHECK(task["fastest"][1]["length"] == 1024);
  CHECK(task["fastest"][1]["median_seconds"].get<double>() == Approx(0.008));
  REQUIRE(task["crossings"].size() == 1);
  const Json& crossing = task["crossings"][0];
  CHECK(crossing["crossing"] == "found");
  CHECK(crossing["against"] == "softmax/fused");
  CHECK(crossing["low"].get<double>() < crossing["length"].get<double>());
  CHECK(crossing["length"].get<double>() < crossing["high"].get<double>());
  REQUIRE(task["lines"].size() >= 2);
  CHECK(task["lines"][0] == Json{{"topic", "fastest"}, {"text", "softmax at 256; latte at 1024"}});
  REQUIRE(json["rankings"].size() == 1);
  const Json& ranking = json["rankings"][0];
  CHECK(ranking["at"] == 1024);
  REQUIRE(ranking["rows"].size() == 2);
  CHECK(ranking["rows"][0]["label"] == "latte");
  CHECK(ranking["rows"][0]["median_seconds"].get<double>() == Approx(0.008));
  CHECK(ranking["rows"][0]["speedup"]["median"].get<double>() == Approx(2));
  CHECK(ranking["rows"][1]["exact"] == true);
  CHECK(ranking["headline"] == json["headline"]);
  const std::string text = json["text"];
  CHECK(text.rfind("Verdict\n" + json["headline"].get<std::string>().substr(0, 20), 0) == 0);
  CHECK(json["sentence"].get<std::string>().rfind("On a CPU, B=1: ", 0) == 0);
  CHECK(json["exceptions"].empty());
}

TEST_CASE("a verdict as JSON says what is missing where nothing is told", "[verdict]") {
  std::vector<Candidate> others = two_lengths("latte", 2, 0);
  for (const Candidate& one : two_lengths("window", 3, 9)) others.push_back(one);
  const Json json = document_of(judge({"", {forward_of(two_lengths("softmax", 1, 16), others)}}));
  REQUIRE(json["tasks"][0]["fastest"].size() == 2);
  const Json& last = json["tasks"][0]["fastest"][1];
  CHECK(last["labels"].empty());
  REQUIRE(last.contains("missing"));
  REQUIRE(last["missing"].size() == 1);
  CHECK(last["missing"][0]["label"] == "latte");
  CHECK(last["missing"][0]["status"] == "disturbed");
  CHECK_FALSE(last.contains("median_seconds"));
  REQUIRE(json["exceptions"].size() == 1);
  CHECK(json["exceptions"][0]["status"] == "disturbed");
  CHECK(json["exceptions"][0]["count"] == 1);
}

TEST_CASE("a verdict of nothing is empty JSON", "[verdict]") {
  const Json json = document_of(Verdict{});
  CHECK(json["text"] == "");
  CHECK(json["tasks"].empty());
}
