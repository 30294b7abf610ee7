// Arrays on the device for the tests of CUDA kernels: written from host vectors, poisoned where
// they are to be written, with a guard behind them.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "attention/kernels/cuda/device.hpp"
#include "attention/kernels/rows.hpp"

/// Leaves a test case, counted as skipped (tests/run.py), where no GPU is at hand.
#define NEEDS_DEVICE()                                                             \
  if (const std::string why = attnbench::kernels::cuda::refusal(); !why.empty()) { \
    WARN("needs a CUDA device: " << why);                                          \
    return;                                                                        \
  }

namespace attnbench::kernels::cuda::test {

template <class T>
class DeviceArray {
 public:
  /// `count` elements of bytes 0xff: a NaN in every floating-point format.
  explicit DeviceArray(std::size_t count)
      : count_(count),
        data_(static_cast<unsigned char*>(allocate(count * sizeof(T) + guard_bytes))) {
    fill(data_, 0xff, count * sizeof(T) + guard_bytes);
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    if (!values.empty()) copy_to_device(data_, values.data(), values.size() * sizeof(T));
  }
  ~DeviceArray() { release(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return reinterpret_cast<T*>(data_); }
  std::size_t bytes() const { return count_ * sizeof(T); }
  /// Waits for the default stream. Throws std::logic_error where something wrote past the end.
  std::vector<T> values() const {
    std::vector<T> out(count_);
    if (count_ > 0) copy_to_host(out.data(), data_, bytes());
    std::vector<unsigned char> guard(guard_bytes);
    copy_to_host(guard.data(), data_ + bytes(), guard_bytes);
    if (std::any_of(guard.begin(), guard.end(), [](unsigned char x) { return x != 0xff; })) {
      throw std::logic_error("a kernel wrote past the end of an array");
    }
    return out;
  }
  /// Dense [batch, heads, length, width].
  template <class U = T>
  Rows<U> rows(std::int64_t heads, std::int64_t length, std::int64_t width) const {
    return {data(), heads * length * width, length * width, width};
  }

 private:
  static constexpr std::size_t guard_bytes = 256;
  std::size_t count_;
  unsigned char* data_;
};

}  // namespace attnbench::kernels::cuda::test
