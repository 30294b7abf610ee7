#include "tasks/call/memory.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace attnbench::tasks::call {
namespace {

std::int64_t bytes_of(const at::Tensor& tensor) {
  return static_cast<std::int64_t>(tensor.nbytes());
}

Json forward_only(const MeteredPass& pass, MemoryMeter& meter) {
  const at::NoGradGuard no_grad;
  const std::int64_t before = meter.live_bytes();
  meter.reset_peak();
  const at::Tensor output = pass.forward();
  const std::int64_t peak = meter.peak_bytes();
  return {{"output_bytes", bytes_of(output)},
          {"workspace_bytes", std::max<std::int64_t>(0, peak - before - bytes_of(output))},
          {"peak_bytes", peak}};
}

}  // namespace

Json metered(const MeteredPass& pass, MemoryMeter& meter) {
  Json memory;
  if (pass.pass == Pass::forward) {
    memory = forward_only(pass, meter);
    memory["input_bytes"] = pass.input_bytes;
    return memory;
  }
  const at::AutoGradMode with_grad(true);
  pass.clear_gradients();
  const std::int64_t before = meter.live_bytes();
  meter.reset_peak();
  at::Tensor output = pass.forward();
  const std::int64_t output_bytes = bytes_of(output);
  const std::int64_t saved = std::max<std::int64_t>(0, meter.live_bytes() - before - output_bytes);
  std::int64_t peak = meter.peak_bytes();
  if (pass.pass == Pass::backward) meter.reset_peak();
  output.backward(pass.upstream);
  peak = pass.pass == Pass::backward ? meter.peak_bytes() : std::max(peak, meter.peak_bytes());
  output.reset();
  const std::int64_t gradients = std::max<std::int64_t>(0, meter.live_bytes() - before);
  pass.clear_gradients();
  const std::int64_t beyond = peak - before - output_bytes - saved - gradients;
  return {{"input_bytes", pass.input_bytes},
          {"output_bytes", output_bytes},
          {"saved_bytes", saved},
          {"gradient_bytes", gradients},
          {"workspace_bytes", std::max<std::int64_t>(0, beyond)},
          {"peak_bytes", peak}};
}

}  // namespace attnbench::tasks::call
