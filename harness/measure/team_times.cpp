#include "harness/measure/team_times.hpp"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <limits>
#include <thread>
#include <vector>

namespace attnbench::measure {
namespace {

double now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

}  // namespace

TeamTimes time_team(int threads, int trials, const std::function<Body()>& make_body) {
  constexpr double none = std::numeric_limits<double>::infinity();
  std::barrier gate(threads);
  TeamTimes times{none, 0};
  std::vector<double> own(static_cast<std::size_t>(threads), none);
  const auto member = [&](int index) {
    const Body body = make_body();
    body();
    double& best = own[static_cast<std::size_t>(index)];
    for (int trial = 0; trial < trials; ++trial) {
      gate.arrive_and_wait();
      const double start = now();
      body();
      best = std::min(best, now() - start);
      gate.arrive_and_wait();
      if (index == 0) times.together = std::min(times.together, now() - start);
    }
  };
  std::vector<std::thread> team;
  for (int index = 0; index < threads; ++index) team.emplace_back(member, index);
  for (std::thread& thread : team) thread.join();
  for (const double best : own) times.per_second += 1 / best;
  return times;
}

}  // namespace attnbench::measure
