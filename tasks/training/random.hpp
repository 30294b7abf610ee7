// Counter-based random numbers (Philox4x32-10, Salmon et al. 2011): a key and a counter determine
// them, so that any example of a data set and any epoch's order can be made without earlier ones.
#pragma once

#include <ATen/core/PhiloxRNGEngine.h>

#include <cstdint>
#include <initializer_list>
#include <unordered_set>
#include <utility>
#include <vector>

namespace attnbench::tasks::training {

/// Hashes several numbers, in order, into one key.
inline std::uint64_t key_of(std::initializer_list<std::uint64_t> parts) {
  std::uint64_t key = 0x9e3779b97f4a7c15ull;
  for (const std::uint64_t part : parts) {
    // The finaliser of SplitMix64 (Steele et al. 2014).
    key = (key ^ part) + 0x9e3779b97f4a7c15ull;
    key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9ull;
    key = (key ^ (key >> 27)) * 0x94d049bb133111ebull;
    key ^= key >> 31;
  }
  return key;
}

class Random {
 public:
  Random(std::uint64_t key, std::uint64_t counter) : engine_(key, counter) {}

  /// Uniform in [0, bound), without bias (Lemire 2019). bound: 1 to 2^32 - 1.
  std::int64_t below(std::int64_t bound) {
    const auto range = static_cast<std::uint32_t>(bound);
    std::uint64_t product = std::uint64_t{engine_()} * range;
    if (static_cast<std::uint32_t>(product) < range) {
      const std::uint32_t least = (0u - range) % range;
      while (static_cast<std::uint32_t>(product) < least) {
        product = std::uint64_t{engine_()} * range;
      }
    }
    return static_cast<std::int64_t>(product >> 32);
  }

  /// Uniform in (0, 1), 53 bits.
  double uniform() {
    const std::uint64_t high = engine_();
    const std::uint64_t bits = (high << 21) ^ (engine_() >> 11);
    return (static_cast<double>(bits) + 0.5) * 0x1p-53;
  }

  /// `count` different numbers of [first, last), in the order drawn, by rejection: for a count well
  /// below the range.
  std::vector<std::int64_t> distinct(std::int64_t first, std::int64_t last, std::int64_t count) {
    std::vector<std::int64_t> drawn;
    std::unordered_set<std::int64_t> taken;
    while (static_cast<std::int64_t>(drawn.size()) < count) {
      const std::int64_t number = first + below(last - first);
      if (taken.insert(number).second) drawn.push_back(number);
    }
    return drawn;
  }

  template <class Item>
  void shuffle(std::vector<Item>& items) {
    for (std::size_t i = items.size(); i > 1; --i) {
      const auto other = static_cast<std::size_t>(below(static_cast<std::int64_t>(i)));
      std::swap(items[i - 1], items[other]);
    }
  }

 private:
  at::Philox4_32 engine_;
};

}  // namespace attnbench::tasks::training
