#include <algorithm>
#include <limits>
#include <set>
#include <sstream>

#include "core/text/format.hpp"
#include "harness/program/compare/compare.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using namespace attnbench::compare;

namespace {

Comparison example() {
  Comparison comparison;
  comparison.differences = {"seed: 1, then 2"};
  Pair pair;
  pair.id = "a";
  pair.name = "kernel latte length=1024";
  pair.what = "forward";
  pair.verdict = SpeedVerdict::slow;
  pair.base = Spread{0.001, 0.00099, 0.00101};
  pair.changed = Spread{0.0011, 0.00109, 0.00112};
  pair.ratio = 1.1;
  pair.ratio_low = 1.079;
  pair.ratio_high = 1.131;
  pair.disjoint = true;
  pair.base_rounds = pair.changed_rounds = 3;
  comparison.pairs = {pair};
  comparison.timed = comparison.disjoint = 1;
  comparison.disjoint_by_chance = 0.1;
  return comparison;
}

}  // namespace

TEST_CASE("the forest shows times, ratio, bar and verdict", "[compare]") {
  const std::string text = to_text(example(), 120, true);
  for (const char* part : {"differs: seed: 1, then 2", "kernel latte length=1024 forward",
                           "1.00 ms   1.10 ms  1.100 [1.079, 1.131]", "●", "SLOW\n", "1 SLOW\n",
                           "disjoint in 1 of 1 timings (100.0 %)", "10.0 %"}) {
    CHECK_THAT(text, Catch::Contains(part));
  }
  // Slower is right of the middle.
  CHECK(text.find("│") < text.find("●"));
  const std::string ascii = to_text(example(), 80, false);
  CHECK(std::all_of(ascii.begin(), ascii.end(), [](char letter) { return letter > 0; }));
}

TEST_CASE("a comparison breaks between words alone, at any width", "[compare]") {
  Comparison long_one = example();
  long_one.pairs[0].name = "kernel a mechanism with quite a long label length=1024";
  long_one.pairs[0].reason =
      "its interval spans more than twice its low end: repeat on a quiet machine";
  long_one.differences = {"compiler flags: Release -O2 -DNDEBUG, then Release -O3 -DNDEBUG -g"};
  std::istringstream whole(to_text(long_one, 400, true));
  std::multiset<std::string> words;
  for (std::string word; whole >> word;) words.insert(word);
  for (const std::size_t width : {60, 80, 100, 120}) {
    INFO(width);
    std::istringstream lines(to_text(long_one, width, true));
    std::multiset<std::string> broken;
    for (std::string line; std::getline(lines, line);) {
      CHECK(text::display_width(line) <= std::max<std::size_t>(width, 76));
      std::istringstream parts(line);
      for (std::string word; parts >> word;) broken.insert(word);
    }
    for (const std::string& word : words) {
      const bool drawn =
          word.find("─") != word.npos || word.find("│") != word.npos || word.find("●") != word.npos;
      if (!drawn) CHECK(broken.count(word) == words.count(word));
    }
  }
}

TEST_CASE("bounds that no clock gives are shown without a bar", "[compare]") {
  for (const double bound : {0.0, -1.0, std::numeric_limits<double>::infinity()}) {
    Comparison odd = example();
    odd.pairs[0].ratio_low = bound;
    const std::string text = to_text(odd, 120, true);
    CHECK_THAT(text, Catch::Contains("1.00 ms   1.10 ms"));
    CHECK_THAT(text, !Catch::Contains("●"));
  }
}

TEST_CASE("the JSON of a comparison names its units", "[compare]") {
  const Json json = to_json(example());
  CHECK(json["pairs"][0]["verdict"] == "SLOW");
  CHECK(json["pairs"][0]["base"]["median_seconds"] == 0.001);
  CHECK(json["pairs"][0]["new"]["rounds"] == 3);
  CHECK(json["pairs"][0]["ratio"] == 1.1);
  CHECK(json["disjoint"] == 1);
}
