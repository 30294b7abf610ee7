// Calling the torch-free kernels with tensors, on the device that holds them: element types, rows,
// workspaces, and where the work is queued.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

#include "attention/kernels/rows.hpp"
#include "attention/mechanism.hpp"
#include "attention/torch/team.hpp"
#include "attention/torch/cuda.hpp"

namespace attnbench {

/// The CPU's kernels run on LibTorch's threads.
struct OnCpu {
  AtenTeam team;
};

/// A CUDA device's in LibTorch's current stream.
struct OnCuda {
  kernels::cuda::Stream stream;
  /// Makes the tensor's device the current one of this thread: autograd has threads of its own.
  explicit OnCuda(const at::Tensor& tensor);
};

/// Whether our kernels do the problem: the dtypes of its device, and whatever `cuda_refusal` says
/// (empty = nothing) where that is a CUDA device.
Support supported_by_kernels(const Problem& problem,
                             const std::function<std::string()>& cuda_refusal);
/// Bytes of a CUDA kernel's workspace, which depends on the card that `device` names; 0 where there
/// is none to ask.
double known_bytes(const std::string& device, const std::function<std::size_t()>& bytes);

namespace kernel_call {

/// What kernels call an element type.
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

/// Runs `body(element, place)` with a value of the kernels' element type of `x` and the place where
/// x lies: float32, float64 or bfloat16 on the CPU; float32, bfloat16 or float16 on a CUDA device.
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

/// `x`, or a copy whose numbers of one row lie side by side.
inline at::Tensor with_dense_rows(const at::Tensor& x) {
  return x.stride(3) == 1 || x.size(3) == 1 ? x : x.contiguous();
}

/// A [B, H, T, w] tensor with dense rows as the kernels see it.
template <class T>
kernels::Rows<T> kernel_rows(const at::Tensor& x) {
  return {static_cast<T*>(x.data_ptr()), x.stride(0), x.stride(1), x.stride(2)};
}

/// The numbers of what is carried from call to call.
template <class R>
R* kernel_numbers(const at::Tensor& carried) {
  if (!carried.is_contiguous()) throw std::logic_error("what is carried must be dense");
  return carried.data_ptr<R>();
}

/// Memory that a kernel is lent, from LibTorch's allocator on the device of `like`, so that it is
/// counted.
inline at::Tensor kernel_workspace(std::size_t bytes, const at::Tensor& like) {
  return at::empty({static_cast<std::int64_t>(bytes)},
                   like.options().dtype(at::kByte).requires_grad(false));
}

}  // namespace attnbench

// ATTNBENCH_KERNEL(FUNCTION) defines
//   run_FUNCTION<T>(place, like, sizes, arguments…), which calls kernels::FUNCTION or
//     kernels::cuda::FUNCTION, by the place, with a workspace of the size that FUNCTION_bytes<T>
//     tells, on the device of the tensor `like`;
//   predicted_FUNCTION_bytes(problem, sizes), which foretells that size.
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
