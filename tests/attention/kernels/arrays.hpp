// Arrays for the tests of kernels: memory with a guard, rows of a vector, distances to a
// definition.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "attention/kernels/rows.hpp"
#include "tests/support/thread_team.hpp"

namespace attnbench::kernels::test {

using attnbench::test::StdTeam;

/// 64-byte aligned memory with a guard behind it.
class Block {
 public:
  explicit Block(std::size_t bytes) : bytes_(bytes), storage_(bytes + 128, std::byte{0x5a}) {}
  void* data() {
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
    return storage_.data() + (64 - address % 64) % 64;
  }
  bool intact() {
    const auto* guard = static_cast<std::byte*>(data()) + bytes_;
    return guard[0] == std::byte{0x5a} && guard[31] == std::byte{0x5a};
  }

 private:
  std::size_t bytes_;
  std::vector<std::byte> storage_;
};

template <class T>
Rows<T> rows_of(std::vector<std::remove_const_t<T>>& data, std::int64_t heads, std::int64_t length,
                std::int64_t width) {
  return {data.data(), heads * length * width, length * width, width};
}

template <class T>
T stored(double x) {
  T value;
  narrow(static_cast<Compute<T>>(x), value);
  return value;
}

template <class T>
double relative_rms(const std::vector<T>& found, const std::vector<double>& expected) {
  double difference = 0, size = 1e-300;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double d = double{widen(found[i])} - expected[i];
    difference += d * d;
    size += expected[i] * expected[i];
  }
  return std::sqrt(difference / size);
}

}  // namespace attnbench::kernels::test
