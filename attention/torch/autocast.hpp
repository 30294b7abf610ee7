// Autocast: products in a narrower dtype than that of the weights, by LibTorch's own autocast. It
// hides a difference between versions: 2.4 takes the device as an argument, 1.13 has a function for
// each.
#pragma once

#include <optional>

#include "attention/torch/torch.hpp"

#include <c10/core/impl/LocalDispatchKeySet.h>

namespace attnbench {

/// While it exists, this thread's products of float32 tensors on devices like `device` (the CPU or
/// CUDA) are computed and returned in `type`, with each weight converted once; their sums with
/// float32 are float32. Without a type nothing changes. Run backward passes outside of it: they use
/// the dtypes of the forward pass.
class AutocastScope {
 public:
  AutocastScope(const at::Device& device, std::optional<at::ScalarType> type);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  struct Setting {
    at::DeviceType device;
    bool enabled;
    at::ScalarType type;
  };
  std::optional<Setting> before_;
};

/// Disables autocast in this thread while it exists.
class NoAutocast {
 public:
  NoAutocast() : guard_(c10::autocast_dispatch_keyset) {}

 private:
  c10::impl::ExcludeDispatchKeyGuard guard_;
};

/// The dtype of a product of `x`: its own, except for float32 under autocast.
at::ScalarType product_type(const at::Tensor& x);

}  // namespace attnbench
