#include "tasks/crossover/search.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/support/catch.hpp"

using namespace attnbench::tasks::crossover;

namespace {

using Seconds = std::function<double(double length)>;

const Seconds quadratic = [](double n) { return 1e-9 * n * n + 1e-6 * n + 2e-6; };

/// A line that crosses `quadratic` at `length`.
Seconds line_through(double length) {
  return [=](double n) { return quadratic(length) * (0.2 + 0.8 * n / length); };
}

/// Times as they are, undecided where they differ by less than `margin`.
Compare exactly(const Seconds& exact, const Seconds& mechanism, double margin = 0,
                std::vector<std::int64_t>* tried = nullptr) {
  return [=](std::int64_t length) -> std::optional<LengthTrial> {
    if (tried != nullptr) tried->push_back(length);
    const double n = static_cast<double>(length);
    const double ratio = mechanism(n) / exact(n);
    Faster faster = ratio < 1 ? Faster::mechanism : Faster::exact;
    if (std::abs(std::log(ratio)) <= margin) faster = Faster::undecided;
    return LengthTrial{length, faster, ratio};
  };
}

const Range usual{64, 16384, 0.05};

}  // namespace

TEST_CASE("coarse lengths double and end at the longest", "[crossover]") {
  CHECK(coarse_lengths(64, 512) == std::vector<std::int64_t>{64, 128, 256, 512});
  CHECK(coarse_lengths(100, 500) == std::vector<std::int64_t>{100, 200, 400, 500});
}

TEST_CASE("a crossing inside is found to the resolution, wherever it lies", "[crossover]") {
  for (const double length : {65.5, 127.0, 129.5, 700.0, 1024.5, 3333.0, 16000.0}) {
    INFO(length);
    std::vector<std::int64_t> tried;
    const SearchResult found = search(usual, exactly(quadratic, line_through(length), 0, &tried));
    CHECK(found.verdict == "found");
    REQUIRE(found.low);
    REQUIRE(found.high);
    CHECK(static_cast<double>(*found.low) <= length);
    CHECK(static_cast<double>(*found.high) >= length);
    const bool neighbours = *found.high - *found.low == 1;
    CHECK(
        (neighbours || static_cast<double>(*found.high) <= 1.05 * static_cast<double>(*found.low)));
    // Nine coarse lengths, and log2(ln 2 / ln 1.05) halvings.
    CHECK(tried.size() <= 13);
    CHECK(std::is_sorted(
        found.trials.begin(), found.trials.end(),
        [](const LengthTrial& a, const LengthTrial& b) { return a.length < b.length; }));
  }
}

TEST_CASE("undecided lengths lie inside the interval, whose edges are searched", "[crossover]") {
  // The ratio is within 10 % of 1 from about 644 to 778.
  const Seconds line = line_through(700);
  const SearchResult found = search(usual, exactly(quadratic, line, std::log(1.1)));
  REQUIRE(found.verdict == "found");
  const auto ratio = [&](std::int64_t length) {
    return line(static_cast<double>(length)) / quadratic(static_cast<double>(length));
  };
  CHECK(ratio(*found.low) > 1.1);
  CHECK(ratio(*found.high) < 1 / 1.1);
  CHECK(ratio(*found.low) < 1.1 * 1.06);
  CHECK(ratio(*found.high) > 1 / 1.1 / 1.06);
}

TEST_CASE("a crossing outside the range is reported as below or above", "[crossover]") {
  const SearchResult below = search(usual, exactly(quadratic, line_through(30)));
  CHECK(below.verdict == "below");
  CHECK(below.high == 64);
  CHECK_FALSE(below.low);
  const SearchResult above = search(usual, exactly(quadratic, line_through(50000)));
  CHECK(above.verdict == "above");
  CHECK(above.low == 16384);
  CHECK_FALSE(above.high);
}

TEST_CASE("a mechanism that does not catch up has no crossover", "[crossover]") {
  const SearchResult same =
      search(usual, exactly(quadratic, [](double n) { return 3 * quadratic(n); }));
  CHECK(same.verdict == "none");
  const SearchResult cubic =
      search(usual, exactly(quadratic, [](double n) { return 1e-6 * n * n * n; }));
  CHECK(cubic.verdict == "none");
  // One length shows no trend.
  const SearchResult one = search({64, 64, 0.05}, exactly(quadratic, line_through(30000)));
  CHECK(one.verdict == "above");
}

TEST_CASE("a mechanism that falls behind has a reverse crossover", "[crossover]") {
  const SearchResult found = search(usual, exactly(line_through(1000), quadratic));
  CHECK(found.verdict == "reverse");
  CHECK(*found.low <= 1000);
  CHECK(*found.high >= 1000);
}

TEST_CASE("more than one change of sign is reported, each one narrowed", "[crossover]") {
  const Seconds wavy = [](double n) {
    return quadratic(n) * (n > 200 && n < 900 ? 0.5 : n > 5000 ? 0.5 : 2);
  };
  const SearchResult found = search(usual, exactly(quadratic, wavy));
  CHECK(found.verdict == "several");
  REQUIRE(found.crossings.size() == 3);
  const double at[] = {200, 900, 5000};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(static_cast<double>(found.crossings[i].low) <= at[i] + 1);
    CHECK(static_cast<double>(found.crossings[i].high) >= at[i]);
    CHECK(static_cast<double>(found.crossings[i].high) <=
          1.05 * static_cast<double>(found.crossings[i].low) + 1);
  }
  CHECK(found.crossings[1].from == Faster::mechanism);
  CHECK_FALSE(found.low);
}

TEST_CASE("undecided noise never moves the interval off the crossing", "[crossover]") {
  std::mt19937 random(7);
  std::normal_distribution<double> noise(0, 0.02);
  for (int repeat = 0; repeat < 50; ++repeat) {
    const Seconds line = line_through(1500);
    const Compare noisy = [&](std::int64_t length) -> std::optional<LengthTrial> {
      const double n = static_cast<double>(length);
      const double log_ratio = std::log(line(n) / quadratic(n)) + noise(random);
      // A comparison that decides at four standard deviations.
      const Faster faster = std::abs(log_ratio) < 0.08 ? Faster::undecided
                            : log_ratio < 0            ? Faster::mechanism
                                                       : Faster::exact;
      return LengthTrial{length, faster, std::exp(log_ratio)};
    };
    const SearchResult found = search(usual, noisy);
    REQUIRE(found.verdict == "found");
    CHECK(*found.low < 1500);
    CHECK(*found.high > 1500);
    CHECK(*found.high < 2 * *found.low);
  }
}

TEST_CASE("a search without decisions is undecided", "[crossover]") {
  const SearchResult found = search(usual, exactly(quadratic, quadratic));
  CHECK((found.verdict == "none" || found.verdict == "undecided"));
  CHECK(search(usual, exactly(quadratic, quadratic, 0.01)).verdict == "undecided");
}

TEST_CASE("a search that ends early reports its bounds", "[crossover]") {
  const Compare compare = exactly(quadratic, line_through(1000));
  int left = 0;
  const Compare limited = [&](std::int64_t length) -> std::optional<LengthTrial> {
    return left-- > 0 ? compare(length) : std::nullopt;
  };
  left = 3;  // 64, 128, 256
  const SearchResult early = search(usual, limited);
  CHECK(early.verdict == "above");
  CHECK(early.low == 256);
  left = 10;  // the coarse ones and one between
  const SearchResult late = search(usual, limited);
  CHECK(late.verdict == "found");
  CHECK(late.low == 724);
  CHECK(late.high == 1024);
  left = 0;
  CHECK(search(usual, limited).verdict == "undecided");
}

TEST_CASE("a length that cannot be tried does not end the search of shorter ones", "[crossover]") {
  const Compare compare = exactly(quadratic, line_through(1000));
  const SearchResult found = search(usual, [&](std::int64_t length) -> std::optional<LengthTrial> {
    return length > 4096 ? std::nullopt : compare(length);
  });
  CHECK(found.verdict == "found");
  CHECK(*found.high <= 1.05 * static_cast<double>(*found.low));
}

TEST_CASE("lengths that one side does not support are skipped", "[crossover]") {
  const Compare compare = exactly(quadratic, line_through(1000));
  const SearchResult found = search(usual, [&](std::int64_t length) -> std::optional<LengthTrial> {
    return length < 300 ? LengthTrial{length, Faster::untried, 1} : compare(length);
  });
  CHECK(found.verdict == "found");
  CHECK(*found.low <= 1000);
}

TEST_CASE("the efficiency length of CAB's own sample data is the published one", "[crossover]") {
  // Times of softmax and ABC in milliseconds, as the benchmark's repository has them.
  const auto found = efficiency_length({256, 512, 1024, 2048, 4096, 8192},
                                       {0.472, 0.628, 0.721, 0.981, 3.67, 18.437},
                                       {0.648, 0.59, 0.602, 0.91, 1.006, 1.509});
  REQUIRE(found);
  CHECK(found->length == Approx(1877.3).epsilon(1e-4));
  CHECK(found->r2_exact > 0.99);
  CHECK(found->r2_mechanism > 0.9);
}

TEST_CASE("fits that do not cross, or lack a parabola, have no efficiency length", "[crossover]") {
  const std::vector<double> n{256, 512, 1024, 2048};
  const auto times = [&](const Seconds& seconds) {
    std::vector<double> values;
    for (const double length : n) values.push_back(seconds(length));
    return values;
  };
  const auto made_of = efficiency_length(n, times(quadratic), times(line_through(700)));
  REQUIRE(made_of);
  CHECK(made_of->length == Approx(700).epsilon(1e-6));
  CHECK(made_of->r2_exact == Approx(1));
  const Seconds straight = [](double length) { return 1e-6 * length; };
  CHECK_FALSE(efficiency_length(n, times(straight), times([](double) { return 1e-3; })));
  CHECK_FALSE(efficiency_length(n, times(quadratic), times([](double) { return -1.0; })));
  CHECK_FALSE(efficiency_length({256, 512, 1024}, {1, 2, 4}, {1, 1, 1}));
}
