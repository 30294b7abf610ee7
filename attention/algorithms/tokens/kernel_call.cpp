#include "attention/algorithms/tokens/kernel_call.hpp"

#include "attention/entry_parts.hpp"
#ifdef ATTNBENCH_CUDA_KERNELS
#include "attention/kernels/cuda/cards.hpp"
#endif

namespace attnbench {

#ifdef ATTNBENCH_CUDA_KERNELS

OnCuda::OnCuda(const at::Tensor& tensor) : stream(current_stream(tensor.device())) {
  kernels::cuda::select(tensor.get_device());
}

Support supported_by_kernels(const Problem& problem,
                             const std::function<std::string()>& cuda_refusal) {
  if (!is_cuda(problem.device)) return on_cpu_kernels(problem);
  if (problem.dtype == Dtype::float64) return Support::no("float64 has no CUDA kernel");
  const kernels::cuda::Regarding card(device_number(problem.device));
  const std::string reason = cuda_refusal();
  return reason.empty() ? Support{} : Support::no("the CUDA kernel does not support it: " + reason);
}

double known_bytes(const std::string& device, const std::function<std::size_t()>& bytes) {
  try {
    const kernels::cuda::Regarding card(device_number(device));
    return static_cast<double>(bytes());
  } catch (const kernels::cuda::Error&) {
    return 0;
  }
}

#else

Support supported_by_kernels(const Problem& problem, const std::function<std::string()>&) {
  if (!is_cuda(problem.device)) return on_cpu_kernels(problem);
  return Support::no(
      "this program was built without CUDA kernels; the launcher builds them for a "
      "command with --device cuda, where a CUDA toolkit is found");
}

#endif

}  // namespace attnbench
