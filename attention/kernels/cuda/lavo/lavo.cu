#include "attention/kernels/cuda/lavo/lavo.hpp"

#include <stdexcept>
#include <type_traits>

#include "attention/kernels/cuda/lavo/calls.hpp"
#include "attention/kernels/cuda/lavo/layout.hpp"
#include "attention/kernels/cuda/lavo/space.cuh"
#include "attention/kernels/cuda/numbers.cuh"

namespace attnbench::kernels::cuda {
namespace {

void require_supported(const LavoSizes& sizes) {
  const std::string why = lavo_refusal(sizes);
  if (!why.empty()) throw std::logic_error("running memory on CUDA: " + why);
}

/// Four blocks a multiprocessor, whose shared memory says how much is computed at once.
template <class T>
MemoryPlan plan_here(const LavoSizes& sizes, bool gradient) {
  const bool tensor = !gradient && !std::is_same_v<T, float>;
  int width = tensor ? memory_tensor_width(sizes) : 0;
  if (width == 128 && MemoryTensorLayout<128>::bytes > card().shared_bytes) width = 0;
  const int tile = memory_tile(static_cast<int>(sizes.bases), static_cast<int>(sizes.head_dim),
                               gradient, card().shared_bytes);
  return plan_memory(sizes, 4 * card().multiprocessors, gradient, width, tile);
}

bool nothing_to_read(const LavoSizes& sizes) {
  return sizes.batch == 0 || sizes.heads == 0 || sizes.length == 0;
}

}  // namespace

std::string lavo_refusal(const LavoSizes& sizes) {
  constexpr std::int64_t most = std::int64_t{1} << 30;  // tokens are numbered in 31 bits
  if (sizes.batch < 0 || sizes.heads < 0 || sizes.length < 0 || sizes.memory_length < 0 ||
      sizes.phase < 0) {
    return "a size is negative";
  }
  if (sizes.bases < 1 || sizes.bases > most_memory_bases) {
    return "the bases are not 1 to 256";
  }
  if (sizes.head_dim < 1 || sizes.head_dim > most_memory_dim) {
    return "head_dim is not within 1 and 256";
  }
  if (sizes.order == MemoryOrder::windows && sizes.window < 1) return "a window holds no token";
  const bool own = sizes.averaged || sizes.order != MemoryOrder::all;
  if (own && sizes.memory_length != sizes.length) return "there are not as many tokens as queries";
  const std::int64_t length = std::max({sizes.length, sizes.memory_length, std::int64_t{1}});
  if (length >= most || sizes.batch * sizes.heads > most) {
    return "batch * heads or the length is above 2^30";
  }
  return {};
}

template <class T>
std::size_t lavo_forward_bytes(const LavoSizes& sizes) {
  require_supported(sizes);
  if (nothing_to_read(sizes)) return 0;
  Workspace count;
  MemorySpace(count, sizes, plan_here<T>(sizes, false));
  return count.used();
}

template <class T>
void lavo_forward(const LavoSizes& sizes, const LavoArguments<T>& arguments, Stream stream,
                  void* workspace, std::size_t workspace_bytes) {
  require_supported(sizes);
  if (nothing_to_read(sizes)) return;
  memory_forward(sizes, arguments, plan_here<T>(sizes, false), stream, workspace, workspace_bytes);
}

template <class T>
std::size_t lavo_backward_bytes(const LavoSizes& sizes) {
  require_supported(sizes);
  const MemoryPlan plan = plan_here<T>(sizes, true);
  Workspace count;
  MemorySpace(count, sizes, plan);
  memory_gradient_space<T>(count, sizes, plan);
  return count.used();
}

template <class T>
void lavo_backward(const LavoSizes& sizes, const LavoArguments<T>& arguments,
                   const LavoGradients<T>& gradients, Stream stream, void* workspace,
                   std::size_t workspace_bytes) {
  require_supported(sizes);
  if (sizes.heads == 0) return;
  memory_backward(sizes, arguments, gradients, plan_here<T>(sizes, true), stream, workspace,
                  workspace_bytes);
}

#define ATTNBENCH_INSTANTIATE(T)                                                          \
  template std::size_t lavo_forward_bytes<T>(const LavoSizes&);                           \
  template void lavo_forward<T>(const LavoSizes&, const LavoArguments<T>&, Stream, void*, \
                                std::size_t);                                             \
  template std::size_t lavo_backward_bytes<T>(const LavoSizes&);                          \
  template void lavo_backward<T>(const LavoSizes&, const LavoArguments<T>&,               \
                                 const LavoGradients<T>&, Stream, void*, std::size_t);
ATTNBENCH_FOR_CUDA_TYPES(ATTNBENCH_INSTANTIATE)

}  // namespace attnbench::kernels::cuda
