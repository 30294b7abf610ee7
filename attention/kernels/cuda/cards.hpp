// What else is asked of cards by who measures on them; apart from device.hpp, which every kernel
// sees.
#pragma once

#include <string>

#include "attention/kernels/cuda/device.hpp"

namespace attnbench::kernels::cuda {

/// The card of device `index`, which does not become the current one; asked once a device. Throws
/// Error where there is none.
const Card& card(int index);

/// While it lives, card() speaks of device number `index` in this thread, so that work is planned
/// for it without making it the current one, which would begin to use it. Nothing may be queued
/// meanwhile.
class Regarding {
 public:
  static constexpr int none = -1;

  explicit Regarding(int index) : before_(regarded_) { regarded_ = index; }
  ~Regarding() { regarded_ = before_; }
  Regarding(const Regarding&) = delete;
  Regarding& operator=(const Regarding&) = delete;

  /// The innermost one's of this thread, or `none`.
  static int number() { return regarded_; }

 private:
  static inline thread_local int regarded_ = none;
  int before_;
};

/// Where device number `index` is, such as "0000:1a:00.0": by that other libraries know it,
/// whatever numbers they give. Throws Error where there is none.
std::string pci_address(int index);

/// The newest CUDA that the driver knows, such as "13.0"; empty where there is no driver.
std::string driver_cuda();

}  // namespace attnbench::kernels::cuda
