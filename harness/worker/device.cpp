#include "harness/worker/device.hpp"

#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "attention/kernels/cpu/simd/simd.hpp"
#include "attention/torch/cuda.hpp"
#include "harness/measure/device.hpp"

namespace attnbench::worker {
namespace {

/// LibTorch 1.13 has oneDNN multiply bfloat16 on every aarch64 with instructions for it. Debian's
/// oneDNN, built without Arm's library of kernels, refuses: products throw.
void leave_out_failing_onednn() {
  if (kernels::best_isa() != kernels::Isa::neon) return;
  const at::Tensor ones = at::ones({32, 32}, at::kBFloat16);
  try {
    at::matmul(ones, ones);
  } catch (const std::exception&) {
    at::globalContext().setUserEnabledMkldnn(false);
  }
}

}  // namespace

void setup_device(const std::string& device, std::int64_t limit_bytes) {
  const measure::Device& kind = measure::usable_device(device);
  const int index = measure::device_index(device);
  kind.select(index);
  leave_out_failing_onednn();
  if (is_cuda(device)) {
    load_torch_cuda();  // it takes the limit
    limit_device_memory(limit_bytes, kind.card(index).value("memory_bytes", std::int64_t{0}));
  }
  use_device(device);
}

DeviceMeter::DeviceMeter(std::string device, std::int64_t limit_bytes)
    : device_(std::move(device)), limit_bytes_(limit_bytes) {}

std::int64_t DeviceMeter::live_bytes() const { return device_memory(device_).live; }

std::int64_t DeviceMeter::peak_bytes() const { return device_memory(device_).peak; }

void DeviceMeter::reset_peak() { reset_peak_memory(device_); }

tasks::Json DeviceMeter::to_json() const {
  const DeviceMemory memory = device_memory(device_);
  tasks::Json out = {{"tensor_peak_bytes", memory.peak},
                     {"reserved_peak_bytes", memory.peak_reserved}};
#ifdef ATTNBENCH_CUDA_KERNELS
  out["used_bytes"] = kernels::cuda::used_memory();
#endif
  return out;
}

#ifdef ATTNBENCH_CUDA_KERNELS

namespace cuda = kernels::cuda;

std::function<void()> recorded(const std::string& device, const std::function<void()>& body,
                               const std::function<void()>& before, std::string& why) {
  const auto prepare = [&before] {
    if (before) before();
  };
  try {
    synchronize(device);
    const SideStream side(device);
    const cuda::Stream stream = current_stream(at::Device(device));
    // Whatever is made once (handles, workspaces, cached blocks) is made before the recording.
    for (int i = 0; i < 2; ++i) {
      prepare();
      body();
    }
    prepare();
    cuda::synchronize(stream);
    const auto graph = std::make_shared<const cuda::Graph>(stream, body);
    prepare();
    graph->launch(stream);
    cuda::synchronize(stream);
    return [graph] { graph->launch({}); };
  } catch (const std::exception& error) {
    const std::string message = error.what();
    why = message.substr(0, message.find('\n'));
    return {};
  }
}

#else

std::function<void()> recorded(const std::string&, const std::function<void()>&,
                               const std::function<void()>&, std::string& why) {
  why = "this program was built without the CUDA toolkit";
  return {};
}

#endif

}  // namespace attnbench::worker
