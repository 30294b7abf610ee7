// Device memory of one benchmark: arrays of normal numbers, as many sets of them as rotating needs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/benchmarks/cuda/device_loops.hpp"

namespace attnbench::bench {

/// Owns what it hands out.
class Arrays {
 public:
  template <class T>
  T* uninitialised(std::int64_t count) {
    void* memory = kernels::cuda::allocate(static_cast<std::size_t>(count) * sizeof(T));
    blocks_.emplace_back(memory);
    return static_cast<T*>(memory);
  }
  /// Standard normal, other numbers in every array.
  template <class T>
  T* normal(std::int64_t count) {
    T* data = uninitialised<T>(count);
    fill_normal(data, count, blocks_.size(), {});
    return data;
  }
  template <class T>
  T* zeros(std::int64_t count) {
    T* data = uninitialised<T>(count);
    kernels::cuda::fill(data, 0, static_cast<std::size_t>(count) * sizeof(T));
    return data;
  }

 private:
  struct Release {
    void operator()(void* memory) const { kernels::cuda::release(memory); }
  };
  std::vector<std::unique_ptr<void, Release>> blocks_;
};

/// How many sets of `bytes_a_set` exceed the L2 four times; never more than 256, nor fewer than 2
/// where one set could stay in the L2.
inline int rotating_sets(double bytes_a_set) {
  const double l2 = static_cast<double>(kernels::cuda::card().l2_bytes);
  int sets = 1;
  while (sets < 256 && sets * bytes_a_set < 4 * l2) ++sets;
  return sets;
}

/// Dense [batch, heads, length, width].
template <class T>
kernels::Rows<T> dense(T* data, std::int64_t heads, std::int64_t length, std::int64_t width) {
  return {data, heads * length * width, length * width, width};
}

}  // namespace attnbench::bench
