#include "attention/torch/autocast.hpp"

#include <ATen/autocast_mode.h>

namespace attnbench {
namespace {

#if ATTNBENCH_TORCH_VERSION >= 204

bool is_enabled(at::DeviceType device) { return at::autocast::is_autocast_enabled(device); }

at::ScalarType type_of(at::DeviceType device) { return at::autocast::get_autocast_dtype(device); }

void set(at::DeviceType device, bool enabled, at::ScalarType type) {
  at::autocast::set_autocast_enabled(device, enabled);
  at::autocast::set_autocast_dtype(device, type);
}

#else

bool is_enabled(at::DeviceType device) {
  return device == at::kCPU ? at::autocast::is_cpu_enabled() : at::autocast::is_enabled();
}

at::ScalarType type_of(at::DeviceType device) {
  return device == at::kCPU ? at::autocast::get_autocast_cpu_dtype()
                            : at::autocast::get_autocast_gpu_dtype();
}

void set(at::DeviceType device, bool enabled, at::ScalarType type) {
  if (device == at::kCPU) {
    at::autocast::set_cpu_enabled(enabled);
    at::autocast::set_autocast_cpu_dtype(type);
  } else {
    at::autocast::set_enabled(enabled);
    at::autocast::set_autocast_gpu_dtype(type);
  }
}

#endif

}  // namespace

AutocastScope::AutocastScope(const at::Device& device, std::optional<at::ScalarType> type) {
  if (!type) return;
  before_ = {device.type(), is_enabled(device.type()), type_of(device.type())};
  at::autocast::increment_nesting();
  set(device.type(), true, *type);
}

AutocastScope::~AutocastScope() {
  if (!before_) return;
  // The cached conversions are of weights that the next step changes.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  set(before_->device, before_->enabled, before_->type);
}

at::ScalarType product_type(const at::Tensor& x) {
  const at::DeviceType device = x.device().type();
  const bool narrowed = x.scalar_type() == at::kFloat && is_enabled(device);
  return narrowed ? type_of(device) : x.scalar_type();
}

}  // namespace attnbench
