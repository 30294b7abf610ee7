#include "reports/figures/ticks.hpp"

#include <algorithm>

#include "tests/support/catch.hpp"

using namespace attnbench;
using Json = nlohmann::json;

TEST_CASE("a logarithmic axis has some ticks wherever it lies, and few", "[reports]") {
  for (const double low : {1e-6, 0.013, 0.9, 1.0, 12.0, 97.0, 4.1e5}) {
    for (const double factor : {1.03, 1.2, 1.9, 2.1, 4.0, 6.0, 11.0, 90.0, 1e4, 1e6}) {
      INFO(low << " times " << factor);
      std::vector<double> ticks;  // those that the axis shows
      for (const double tick : reports::decade_ticks({low, low * factor})) {
        if (tick >= low && tick <= low * factor) ticks.push_back(tick);
      }
      CHECK(ticks.size() >= 2);
      CHECK(ticks.size() <= 9);
      CHECK(std::is_sorted(ticks.begin(), ticks.end()));
    }
  }
}

TEST_CASE("lengths far apart have their doubles between them", "[reports]") {
  CHECK(reports::without_gaps({256, 1024, 8192, 12288}) ==
        std::set<double>{256, 1024, 2048, 4096, 8192, 12288});
  CHECK(reports::without_gaps({256, 1024, 4096}) == std::set<double>{256, 1024, 4096});
  CHECK(reports::without_gaps({}).empty());
  CHECK(reports::without_gaps({0, 100}) == std::set<double>{0, 100});  // no logarithm has a 0
  CHECK(reports::powers_of_two({9, 70}) == Json({8, 16, 32, 64, 128}));
  CHECK(reports::powers_of_two({0.6}) == Json({0.5, 1}));
}
