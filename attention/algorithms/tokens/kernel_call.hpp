// Calls of the torch-free kernels with tensors, on the tensors' device: element types, rows,
// workspaces and streams.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

#include "attention/kernels/rows.hpp"
#include "attention/mechanism.hpp"
#include "attention/torch/cuda.hpp"
#include "attention/torch/execution.hpp"

namespace attnbench {

/// CPU kernels run on LibTorch's threads.
struct OnCpu {
  AtenTeam team;
};

/// CUDA kernels run in LibTorch's current stream.
struct OnCuda {
  kernels::cuda::Stream stream;
  /// Makes the tensor's device current in this thread: autograd uses its own threads.
  explicit OnCuda(const at::Tensor& tensor);
};

/// Whether the kernels support the problem: its dtype on its device and, on a CUDA device, the
/// result of `cuda_refusal` (empty = supported).
Support supported_by_kernels(const Problem& problem,
                             const std::function<std::string()>& cuda_refusal);
/// Bytes of a CUDA kernel's workspace, which depends on the card `device`; 0 if there is no such
/// card.
double known_bytes(const std::string& device, const std::function<std::size_t()>& bytes);

namespace kernel_call {

/// The kernels' element type of a LibTorch type.
template <class T>
struct Element {
  using type = T;
};
template <>
struct Element<at::BFloat16> {
  using type = kernels::BFloat16;
};
template <>
struct Element<at::Half> {
  using type = kernels::Half;
};

}  // namespace kernel_call

/// Runs `body(element, place)` on the CPU with a value of the kernels' element type of `x`:
/// float32, float64 or bfloat16.
template <class Body>
void on_cpu_only(const at::Tensor& x, const Body& body) {
  if (!x.is_cpu()) throw std::logic_error("this kernel is for the CPU only");
  OnCpu place;
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, x.scalar_type(), "kernel", [&] {
    body(typename kernel_call::Element<scalar_t>::type{}, place);
  });
}

/// Runs `body(element, place)` with a value of the kernels' element type of `x` and the place of
/// its device: float32, float64 or bfloat16 on the CPU; float32, bfloat16 or float16 on a CUDA
/// device.
template <class Body>
void on_kernels(const at::Tensor& x, const Body& body) {
#ifdef ATTNBENCH_CUDA_KERNELS
  if (x.is_cuda()) {
    OnCuda place(x);
    const auto type = x.scalar_type();
    if (type == at::kFloat) return body(float{}, place);
    if (type == at::kBFloat16) return body(kernels::BFloat16{}, place);
    if (type == at::kHalf) return body(kernels::Half{}, place);
    throw std::logic_error("no CUDA kernel has this element type");
  }
#endif
  if (!x.is_cpu()) throw std::logic_error("this build has no kernel for the tensor's device");
  on_cpu_only(x, body);
}

/// `x`, or a copy whose rows are contiguous.
inline at::Tensor with_dense_rows(const at::Tensor& x) {
  return x.stride(3) == 1 || x.size(3) == 1 ? x : x.contiguous();
}

/// A [B, H, T, w] tensor with dense rows as a kernel argument.
template <class T>
kernels::Rows<T> kernel_rows(const at::Tensor& x) {
  return {static_cast<T*>(x.data_ptr()), x.stride(0), x.stride(1), x.stride(2)};
}

/// The data of a dense state tensor.
template <class R>
R* kernel_numbers(const at::Tensor& carried) {
  if (!carried.is_contiguous()) throw std::logic_error("a state tensor must be dense");
  return carried.data_ptr<R>();
}

/// A kernel's workspace from LibTorch's allocator, on the device of `like`, so that it is counted.
inline at::Tensor kernel_workspace(std::size_t bytes, const at::Tensor& like) {
  return at::empty({static_cast<std::int64_t>(bytes)},
                   like.options().dtype(at::kByte).requires_grad(false));
}

}  // namespace attnbench

// ATTNBENCH_KERNEL(FUNCTION) defines
//   run_FUNCTION<T>(place, like, sizes, arguments…), which calls kernels::FUNCTION or
//     kernels::cuda::FUNCTION, according to the place, with a workspace of FUNCTION_bytes<T> on the
//     device of the tensor `like`;
//   predicted_FUNCTION_bytes(problem, sizes), which predicts that size.
#define ATTNBENCH_CPU_KERNEL(FUNCTION)                                                    \
  template <class Sizes>                                                                  \
  double predicted_cpu_##FUNCTION##_bytes(const Problem& problem, const Sizes& sizes) {   \
    const int threads = AtenTeam().size();                                                \
    const auto bytes = problem.dtype == Dtype::float64                                    \
                           ? kernels::FUNCTION##_bytes<double>(sizes, threads)            \
                       : bytes_of(problem.dtype) == 2                                     \
                           ? kernels::FUNCTION##_bytes<kernels::BFloat16>(sizes, threads) \
                           : kernels::FUNCTION##_bytes<float>(sizes, threads);            \
    return static_cast<double>(bytes);                                                    \
  }                                                                                       \
  template <class T, class Sizes, class... Arguments>                                     \
  void run_##FUNCTION(OnCpu& place, const at::Tensor& like, const Sizes& sizes,           \
                      const Arguments&... arguments) {                                    \
    const std::size_t bytes = kernels::FUNCTION##_bytes<T>(sizes, place.team.size());     \
    const at::Tensor workspace = kernel_workspace(bytes, like);                           \
    kernels::FUNCTION<T>(sizes, arguments..., place.team, workspace.data_ptr(), bytes);   \
  }
#define ATTNBENCH_CUDA_KERNEL(FUNCTION)                                                         \
  template <class T, class Sizes, class... Arguments>                                           \
  void run_##FUNCTION(OnCuda& place, const at::Tensor& like, const Sizes& sizes,                \
                      const Arguments&... arguments) {                                          \
    const std::size_t bytes = kernels::cuda::FUNCTION##_bytes<T>(sizes);                        \
    const at::Tensor workspace = kernel_workspace(bytes, like);                                 \
    kernels::cuda::FUNCTION<T>(sizes, arguments..., place.stream, workspace.data_ptr(), bytes); \
  }
#ifdef ATTNBENCH_CUDA_KERNELS
#define ATTNBENCH_KERNEL(FUNCTION)                                                         \
  ATTNBENCH_CPU_KERNEL(FUNCTION)                                                           \
  ATTNBENCH_CUDA_KERNEL(FUNCTION)                                                          \
  template <class Sizes>                                                                   \
  double predicted_##FUNCTION##_bytes(const Problem& problem, const Sizes& sizes) {        \
    if (!is_cuda(problem.device)) return predicted_cpu_##FUNCTION##_bytes(problem, sizes); \
    return known_bytes(problem.device, [&] {                                               \
      return bytes_of(problem.dtype) == 2                                                  \
                 ? kernels::cuda::FUNCTION##_bytes<kernels::BFloat16>(sizes)               \
                 : kernels::cuda::FUNCTION##_bytes<float>(sizes);                          \
    });                                                                                    \
  }
#else
#define ATTNBENCH_KERNEL(FUNCTION)                                                  \
  ATTNBENCH_CPU_KERNEL(FUNCTION)                                                    \
  template <class Sizes>                                                            \
  double predicted_##FUNCTION##_bytes(const Problem& problem, const Sizes& sizes) { \
    return predicted_cpu_##FUNCTION##_bytes(problem, sizes);                        \
  }
#endif
