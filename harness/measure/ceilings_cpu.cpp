#include "harness/measure/ceilings_cpu.hpp"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "harness/measure/cpu_loops.hpp"

namespace attnbench::measure {
namespace {

using Json = nlohmann::json;

std::string first_word(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string word;
  stream >> word;
  return word;
}

/// "32K", "1024K", "2M": bytes; 0 for other text.
std::int64_t bytes_of(const std::string& size) {
  std::int64_t number = 0;
  std::size_t i = 0;
  for (; i < size.size() && size[i] >= '0' && size[i] <= '9'; ++i) {
    number = 10 * number + (size[i] - '0');
  }
  const std::string unit = size.substr(i);
  if (unit == "K") return number << 10;
  if (unit == "M") return number << 20;
  return unit.empty() ? number : 0;
}

double now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

constexpr double least_bytes = 128 << 10;
constexpr double greatest_bytes = 512 << 20;
constexpr double copied_a_trial = 64 << 20;  ///< by all threads; a few milliseconds
constexpr int trials = 6;

Rung rung(int threads, double bytes) {
  const auto half = static_cast<std::size_t>(bytes / 2 / threads);
  const int repeats = std::max(1, static_cast<int>(copied_a_trial * 2 / bytes));
  const auto make = [half, repeats]() -> LoopBody {
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

/// Results go here, so that the loops that made them stay.
void keep(float value) {
  volatile float sink = value;
  static_cast<void>(sink);
}

/// 64-byte aligned numbers, written once so that their pages are there.
class Numbers {
 public:
  explicit Numbers(std::int64_t count)
      : count_(count),
        values_(static_cast<float*>(::operator new (static_cast<std::size_t>(count) * sizeof(float),
                                                    std::align_val_t{64}))) {
    for (std::int64_t i = 0; i < count; ++i)
      values_.get()[i] = 1.0F / static_cast<float>(1 + i % 7);
  }
  float* data() const { return values_.get(); }
  std::int64_t count() const { return count_; }

 private:
  struct Free {
    void operator()(float* values) const { ::operator delete (values, std::align_val_t{64}); }
  };
  std::int64_t count_;
  std::unique_ptr<float, Free> values_;
};

// Registers are not shared, so each thread's own best counts: on a busy machine all threads are
// seldom undisturbed at the same moment. Short bodies find an undisturbed moment sooner.
double multiply_add_rate(int threads) {
  const CpuLoops& loops = cpu_loops();
  const std::int64_t rounds = 200'000;
  const auto body = [&]() -> LoopBody { return [&] { keep(loops.multiply_add(rounds)); }; };
  return static_cast<double>(rounds) * loops.flops_per_round *
         time_team(threads, 50, body).per_second;
}

/// A body that takes 2^x of 2048 numbers in L1 `repeats` times.
LoopBody exponential_body(int repeats) {
  auto from = std::make_shared<Numbers>(2048);
  auto to = std::make_shared<Numbers>(2048);
  return [from, to, repeats] {
    for (int i = 0; i < repeats; ++i) {
      cpu_loops().exponentials(from->data(), to->data(), from->count());
    }
    keep(to->data()[0]);
  };
}

double exponential_rate(int threads) {
  const int repeats = 3'000;
  const auto body = [&] { return exponential_body(repeats); };
  return 2048.0 * repeats * time_team(threads, 50, body).per_second;
}

enum class Level { of_one_core, shared };

/// Bytes per second of reading `bytes` per thread over and over. What cores share must be read by
/// all at once.
double bandwidth(int threads, std::int64_t bytes, Level level) {
  const std::int64_t count = std::max<std::int64_t>(128, bytes / 512 * 128);
  const std::int64_t total = 64 << 20;
  const std::int64_t repeats = std::max<std::int64_t>(1, total / (4 * count));
  const auto body = [&]() -> LoopBody {
    auto numbers = std::make_shared<Numbers>(count);
    return [numbers, repeats] {
      for (std::int64_t i = 0; i < repeats; ++i) {
        keep(cpu_loops().read(numbers->data(), numbers->count()));
      }
    };
  };
  const TeamTimes times = time_team(threads, 10, body);
  const double per_second = level == Level::shared ? threads / times.together : times.per_second;
  return 4.0 * static_cast<double>(count * repeats) * per_second;
}

/// What each core has of its own. A few milliseconds for each rate.
Json rates_of_cores(int threads, const CacheSizes& caches) {
  const double one_thread = multiply_add_rate(1);
  return {{"fma_float32_flops_per_second", threads > 1 ? multiply_add_rate(threads) : one_thread},
          {"fma_float32_one_thread_flops_per_second", one_thread},
          {"exp_float32_per_second", exponential_rate(threads)},
          {"bandwidth_l1_bytes_per_second", bandwidth(threads, caches.l1 / 2, Level::of_one_core)},
          {"bandwidth_l2_bytes_per_second", bandwidth(threads, caches.l2 / 2, Level::of_one_core)}};
}

}  // namespace

Json greater_rates(const Json& one, const Json& other) {
  Json greater = one;
  for (const auto& [name, rate] : other.items()) {
    if (!greater.contains(name) || greater[name] < rate) greater[name] = rate;
  }
  return greater;
}

CacheSizes cache_sizes() {
  CacheSizes sizes;
  const std::filesystem::path folder = "/sys/devices/system/cpu/cpu0/cache";
  for (int index = 0; index < 8; ++index) {
    const std::filesystem::path entry = folder / ("index" + std::to_string(index));
    const std::string level = first_word(entry / "level");
    const std::int64_t bytes = bytes_of(first_word(entry / "size"));
    if (first_word(entry / "type") == "Instruction" || bytes <= 0) continue;
    if (level == "1") sizes.l1 = bytes;
    if (level == "2") sizes.l2 = bytes;
    if (level == "3") sizes.l3 = bytes;
  }
  return sizes;
}

TeamTimes time_team(int threads, int trials, const std::function<LoopBody()>& make_body) {
  constexpr double none = std::numeric_limits<double>::infinity();
  std::barrier gate(threads);
  TeamTimes times{none, 0};
  std::vector<double> own(static_cast<std::size_t>(threads), none);
  const auto member = [&](int index) {
    const LoopBody body = make_body();
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

std::vector<Rung> memory_ladder(int threads, double max_bytes) {
  threads = std::max(1, threads);
  std::vector<Rung> ladder;
  for (double bytes = least_bytes; bytes <= std::min(max_bytes, greatest_bytes); bytes *= 4) {
    ladder.push_back(rung(threads, bytes));
  }
  return ladder;
}

Json cpu_ceilings(int threads) {
  threads = std::max(1, threads);
  const CacheSizes caches = cache_sizes();
  const std::int64_t from_l3 = std::max(2 * caches.l2, caches.l3 / (2 * threads));
  // Four times the last level, but never so much that a small machine runs short.
  const std::int64_t from_dram = std::min<std::int64_t>(4 * caches.l3, 512 << 20) / threads;
  const Json before = rates_of_cores(threads, caches);
  Json ceilings = {
      {"bandwidth_l3_bytes_per_second", bandwidth(threads, from_l3, Level::shared)},
      {"bandwidth_dram_bytes_per_second", bandwidth(threads, from_dram, Level::shared)},
      {"capacity_l1_bytes", caches.l1 * threads},
      {"capacity_l2_bytes", caches.l2 * threads},
      {"capacity_l3_bytes", caches.l3},
      {"threads", threads},
      {"isa", cpu_loops().isa}};
  ceilings.update(greater_rates(before, rates_of_cores(threads, caches)));
  return ceilings;
}

double calibration_seconds(int threads) {
  const CpuLoops& loops = cpu_loops();
  const auto rounds = static_cast<std::int64_t>(1.5e8 / loops.flops_per_round);
  const auto body = [&]() -> LoopBody {
    const LoopBody exponentials = exponential_body(4'000);
    return [&loops, rounds, exponentials] {
      keep(loops.multiply_add(rounds));
      exponentials();
    };
  };
  // Each thread at its own best: starting together takes a free CPU for all of them at once, which
  // says who is busy beside us, not how fast the machine runs.
  const int team = std::max(1, threads);
  return team / time_team(team, 4, body).per_second;
}

}  // namespace attnbench::measure
