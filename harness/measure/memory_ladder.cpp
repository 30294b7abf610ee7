#include "harness/measure/memory_ladder.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "harness/measure/team_times.hpp"

namespace attnbench::measure {
namespace {

constexpr double least_bytes = 128 << 10;
constexpr double greatest_bytes = 512 << 20;
constexpr double copied_a_trial = 64 << 20;  ///< by all threads; a few milliseconds
constexpr int trials = 6;

Rung rung(int threads, double bytes) {
  const auto half = static_cast<std::size_t>(bytes / 2 / threads);
  const int repeats = std::max(1, static_cast<int>(copied_a_trial * 2 / bytes));
  const auto make = [half, repeats]() -> Body {
    auto from = std::make_shared<std::vector<char>>(half, '\1');
    auto to = std::make_shared<std::vector<char>>(half, '\0');
    return [from, to, repeats] {
      for (int i = 0; i < repeats; ++i) {
        std::memcpy(to->data(), from->data(), to->size());
        // Read through a pointer that the compiler cannot see behind, or one copy would do for all.
        const volatile char* last = to->data() + to->size() - 1;
        static_cast<void>(*last);
      }
    };
  };
  const double copied = static_cast<double>(half) * threads * repeats;
  return {bytes, copied / time_team(threads, trials, make).together};
}

/// Seconds per byte, greater the more is touched.
double seconds_per_byte(const std::vector<Rung>& ladder, double bytes) {
  std::vector<Rung> falling = ladder;
  for (std::size_t i = falling.size() - 1; i-- > 0;) {
    falling[i].bytes_per_second =
        std::max(falling[i].bytes_per_second, falling[i + 1].bytes_per_second);
  }
  if (bytes <= falling.front().bytes) return 1 / falling.front().bytes_per_second;
  for (std::size_t i = 1; i < falling.size(); ++i) {
    const Rung& a = falling[i - 1];
    const Rung& b = falling[i];
    if (bytes > b.bytes) continue;
    const double along = std::log(bytes / a.bytes) / std::log(b.bytes / a.bytes);
    return 1 / (a.bytes_per_second * std::pow(b.bytes_per_second / a.bytes_per_second, along));
  }
  return 1 / falling.back().bytes_per_second;
}

}  // namespace

std::vector<Rung> memory_ladder(int threads, double most_bytes) {
  threads = std::max(1, threads);
  std::vector<Rung> ladder;
  for (double bytes = least_bytes; bytes <= std::min(most_bytes, greatest_bytes); bytes *= 4) {
    ladder.push_back(rung(threads, bytes));
  }
  return ladder;
}

double slowdown(const std::vector<Rung>& ladder, double small, double large) {
  if (ladder.empty() || large <= small) return 1;
  return seconds_per_byte(ladder, large) / seconds_per_byte(ladder, small);
}

nlohmann::json to_json(const std::vector<Rung>& ladder) {
  nlohmann::json out = nlohmann::json::array();
  for (const Rung& each : ladder) {
    out.push_back({{"bytes", each.bytes}, {"bytes_per_second", each.bytes_per_second}});
  }
  return out;
}

}  // namespace attnbench::measure
