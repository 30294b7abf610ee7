// Calls of kernels on one thread, whose instructions counts.cpp lets valgrind count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "attention/kernels/rows.hpp"
#include "tests/benchmarks/aligned.hpp"

namespace attnbench::counts {

using namespace attnbench::kernels;
using attnbench::bench::Block;
using attnbench::bench::block_of;

constexpr std::int64_t heads = 2, latents = 32, dim = 64;

/// Tokens that a call takes and, where the ratio of the plugin `slowed` is asked for, those of a
/// second call in percent of them.
struct Tokens {
  std::int64_t length = 0;
  std::int64_t percent_more = 0;
};

/// The kernel's call, once to touch its memory and once counted.
void count(const std::function<void()>& call);

struct Case {
  std::string kernel;                 ///< "softmax.float32.forward"
  std::vector<std::int64_t> lengths;  ///< that are listed
  std::function<void(const Tokens&)> call;
};

/// 512 fills every kernel's blocks, 200 leaves a rest in each.
inline const std::vector<std::int64_t> two_lengths{200, 512};

std::vector<Case> softmax_cases();
std::vector<Case> recurrent_cases();
std::vector<Case> pool_cases();

/// [1, heads, rows, width], numbers of variance 1 around 0 that are the same in every run.
template <class T>
struct Array {
  std::int64_t rows, width;
  Block<T> room;

  Array(std::int64_t count, std::int64_t columns)
      : rows(count), width(columns), room(block_of<T>(heads * count * columns)) {
    std::mt19937 engine(1);
    // Not std::normal_distribution, whose numbers are the library's own choice; valgrind makes a
    // better one slow.
    for (std::int64_t i = 0; i < size(); ++i) {
      const double uniform = static_cast<double>(engine()) / 4294967296.0;
      narrow(static_cast<float>(3.4 * (uniform - 0.5)), (*this)[i]);
    }
  }
  std::int64_t size() const { return heads * rows * width; }
  T& operator[](std::int64_t i) { return room[static_cast<std::size_t>(i)]; }
  operator Rows<const T>() const { return {room.get(), size(), rows * width, width}; }
  operator Rows<T>() const { return {room.get(), size(), rows * width, width}; }
};

inline Block<std::byte> space_of(std::size_t bytes) {
  return block_of<std::byte>(static_cast<std::int64_t>(bytes));
}

}  // namespace attnbench::counts
