// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011). A key and a counter determine them, so that any example of a data set, any
// row and any epoch's order can be made without earlier ones. The numbers are those of ATen's
// at::Philox4_32 for the same seed and subsequence.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <unordered_set>
#include <utility>
#include <vector>

namespace attnbench {

/// Hashes several numbers, in order, into one key: the finaliser of SplitMix64 (Steele et al. 2014)
/// after each.
inline std::uint64_t key_of(std::initializer_list<std::uint64_t> parts) {
  std::uint64_t key = 0x9e3779b97f4a7c15ull;
  for (const std::uint64_t part : parts) {
    key = (key ^ part) + 0x9e3779b97f4a7c15ull;
    key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9ull;
    key = (key ^ (key >> 27)) * 0x94d049bb133111ebull;
    key ^= key >> 31;
  }
  return key;
}

/// The block of four numbers at `counter` of the stream `key`.
inline std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                           std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t second = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(first)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// The numbers of one subject (an example, a row, an order) under one key (a seed, a split).
class Random {
 public:
  Random(std::uint64_t key, std::uint64_t subject)
      : key_{static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)},
        subject_(subject) {}

  /// A number, uniform over all 32-bit numbers.
  std::uint32_t next() {
    if (used_ == block_.size()) {
      block_ =
          philox({static_cast<std::uint32_t>(blocks_), static_cast<std::uint32_t>(blocks_ >> 32),
                  static_cast<std::uint32_t>(subject_), static_cast<std::uint32_t>(subject_ >> 32)},
                 key_);
      ++blocks_;
      used_ = 0;
    }
    return block_[used_++];
  }

  /// A number, uniform in [0, bound), without bias (Lemire 2019). bound: 1 to 2^32 - 1.
  template <std::integral Number>
  Number below(Number bound) {
    const auto range = static_cast<std::uint32_t>(bound);
    std::uint64_t product = std::uint64_t{next()} * range;
    if (static_cast<std::uint32_t>(product) < range) {
      const std::uint32_t least = (0u - range) % range;
      while (static_cast<std::uint32_t>(product) < least) product = std::uint64_t{next()} * range;
    }
    return static_cast<Number>(product >> 32);
  }

  /// A number, uniform in (0, 1), of 53 bits.
  double uniform() {
    const std::uint64_t high = next();
    const std::uint64_t bits = (high << 21) ^ (next() >> 11);
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
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  std::array<std::uint32_t, 2> key_;
  std::uint64_t subject_;
  std::uint64_t blocks_ = 0;
  std::array<std::uint32_t, 4> block_{};
  std::size_t used_ = block_.size();
};

}  // namespace attnbench
