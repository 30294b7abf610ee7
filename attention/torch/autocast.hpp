// Autocast: products in a narrower type than weights are kept in, by LibTorch's own means. This is
// their compatibility place: 2.4 names the device where 1.13 has a function for each.
#pragma once

#include <optional>

#include "attention/torch/torch.hpp"

#include <c10/core/impl/LocalDispatchKeySet.h>

namespace attnbench {

/// While it lives, this thread's products of float32 tensors on the kind of `device` (the CPU or
/// CUDA) are computed and returned in `type`, a weight being converted once; sums of theirs with
/// float32 come out in float32. Without a type nothing changes. Backward passes go outside: they
/// follow the types of the forward pass by themselves.
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

/// While it lives, this thread's operations take tensors in the types that they have.
class NoAutocast {
 public:
  NoAutocast() : guard_(c10::autocast_dispatch_keyset) {}

 private:
  c10::impl::ExcludeDispatchKeyGuard guard_;
};

/// The type in which a product of `x` comes out now: its own, but for float32 under autocast.
at::ScalarType product_type(const at::Tensor& x);

}  // namespace attnbench
