#include "harness/measure/memory_ladder.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>

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

}  // namespace

std::vector<Rung> memory_ladder(int threads, double most_bytes) {
  threads = std::max(1, threads);
  std::vector<Rung> ladder;
  for (double bytes = least_bytes; bytes <= std::min(most_bytes, greatest_bytes); bytes *= 4) {
    ladder.push_back(rung(threads, bytes));
  }
  return ladder;
}

}  // namespace attnbench::measure
