// Arrays for the tests of kernels: memory with a guard, random numbers as they are stored, rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <thread>
#include <type_traits>
#include <vector>

#include "attention/kernels/rows.hpp"
#include "attention/kernels/team.hpp"
#include "tests/support/catch.hpp"

/// Loops of a definition over pointers: the sanitizers' build optimises and does not instrument
/// them, since its subject are the kernels.
#if defined(__GNUC__) && !defined(__clang__)
#define ATTNBENCH_PLAIN_LOOPS \
  [[gnu::optimize("O3"), gnu::no_sanitize_address, gnu::no_sanitize_undefined]]
#else
#define ATTNBENCH_PLAIN_LOOPS
#endif

namespace attnbench::kernels::test {

/// A team of std::threads, for a program without LibTorch.
class StdTeam : public ThreadTeam {
 public:
  explicit StdTeam(int size) : size_(size) {}
  int size() const override { return size_; }
  void run(const std::function<void(int)>& body) override {
    std::vector<std::thread> threads;
    for (int worker = 1; worker < size_; ++worker) threads.emplace_back(body, worker);
    body(0);
    for (auto& thread : threads) thread.join();
  }

 private:
  int size_;
};

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

/// Normal numbers of that standard deviation, as they are stored.
template <class T>
std::vector<T> drawn(std::mt19937& engine, std::int64_t count, double deviation) {
  std::normal_distribution<double> normal(0, deviation);
  std::vector<T> x(static_cast<std::size_t>(count));
  for (T& each : x) each = stored<T>(normal(engine));
  return x;
}

/// One token in four is hidden.
inline std::vector<std::uint8_t> drawn_mask(std::mt19937& engine, std::int64_t count) {
  std::vector<std::uint8_t> mask;
  for (std::int64_t i = 0; i < count; ++i) mask.push_back(engine() % 4 != 0);
  return mask;
}

template <class T>
std::vector<double> in_double(const std::vector<T>& x) {
  std::vector<double> y;
  for (const T& each : x) y.push_back(widen(each));
  return y;
}

/// Calls with a team and a workspace behind which nothing may be written.
template <class Call>
void on_workspace(int threads, std::size_t bytes, const Call& call) {
  StdTeam team(threads);
  Block block(bytes);
  call(team, block.data(), bytes);
  REQUIRE(block.intact());
}

}  // namespace attnbench::kernels::test
