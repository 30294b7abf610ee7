// The softmax family's entry: which sizes it takes, its workspace, and the choice between its plain
// and its tensor-core kernels.
#include "attention/kernels/cuda/softmax/softmax.hpp"

#include <type_traits>

#include "attention/kernels/cuda/numbers.cuh"
#include "attention/kernels/cuda/softmax/shape.hpp"
#include "attention/kernels/workspace.hpp"

namespace attnbench::kernels::cuda {
namespace {

void require_supported(const SoftmaxSizes& sizes) {
  const std::string why = softmax_refusal(sizes);
  if (!why.empty()) throw std::logic_error("softmax on CUDA: " + why);
}

/// What the gradients' kernels are given, its workspace included.
template <class T>
SoftmaxBackwardCall<T> backward_call(Workspace& space, const SoftmaxSizes& sizes,
                                     const SoftmaxArguments<T>& arguments,
                                     const SoftmaxGradients<T>& gradients) {
  SoftmaxBackwardCall<T> call{arguments, SoftmaxShape(sizes), gradients,
                              static_cast<int>(padded_length(sizes))};
  const std::int64_t rows = sizes.batch * sizes.heads * padded_length(sizes);
  call.lse = space.take<float>(rows);
  call.delta = space.take<float>(rows);
  return call;
}

}  // namespace

std::string softmax_refusal(const SoftmaxSizes& sizes) {
  // Rows are numbered in 31 bits over all heads, and so are tokens' distances.
  constexpr std::int64_t most = std::int64_t{1} << 30;
  if (sizes.batch < 0 || sizes.heads < 1 || sizes.kv_heads < 1 || sizes.length < 0 ||
      sizes.key_length < 0 || sizes.left < 0 || sizes.right < 0) {
    return "a size is negative, or there is no head";
  }
  if (sizes.bias_reach >= 0) return "biases by distance have no CUDA kernel";
  if (sizes.offset < -most || sizes.offset > most) return "the offset is not within 2^30";
  if (sizes.heads % sizes.kv_heads != 0) return "kv_heads does not divide heads";
  if (sizes.head_dim < 1 || sizes.head_dim > 256) return "head_dim is not within 1 and 256";
  if (sizes.value_dim < 1 || sizes.value_dim > 256) return "value_dim is not within 1 and 256";
  const std::int64_t longest = std::max(sizes.length, sizes.key_length);
  if (longest > most) return "a length is above 2^30";
  // Gradients count a head's queries in 128s.
  const std::int64_t length = std::max({padded_length(sizes), longest, std::int64_t{1}});
  if (sizes.heads > most / length || sizes.batch > most / length / sizes.heads) {
    return "batch * heads * length, in full 128s of queries, is above 2^30";
  }
  return {};
}

template <class T>
std::size_t softmax_forward_bytes(const SoftmaxSizes& sizes) {
  require_supported(sizes);
  return 0;
}

template <class T>
void softmax_forward(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments, Stream stream,
                     void*, std::size_t) {
  require_supported(sizes);
  if (sizes.batch == 0 || sizes.length == 0) return;
  const SoftmaxCall<T> call{arguments, SoftmaxShape(sizes)};
  if constexpr (!std::is_same_v<T, float>) {
    if (softmax_forward_mma(call, stream)) return;
  }
  softmax_forward_plain(call, stream);
}

template <class T>
std::size_t softmax_backward_bytes(const SoftmaxSizes& sizes) {
  require_supported(sizes);
  Workspace count;
  backward_call<T>(count, sizes, {}, {});
  return count.used();
}

template <class T>
void softmax_backward(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments,
                      const SoftmaxGradients<T>& gradients, Stream stream, void* workspace,
                      std::size_t workspace_bytes) {
  require_supported(sizes);
  if (sizes.batch == 0) return;
  if (arguments.lse == nullptr && sizes.length > 0) {
    throw std::logic_error("softmax on CUDA: gradients need the lse that the forward pass wrote");
  }
  Workspace space(workspace, workspace_bytes);
  const auto call = backward_call(space, sizes, arguments, gradients);
  // Without queries the keys' gradients are 0, which the pass over keys writes.
  if (sizes.length > 0) softmax_delta(call, stream);
  if constexpr (!std::is_same_v<T, float>) {
    if (softmax_backward_mma(call, stream)) return;
  }
  softmax_backward_plain(call, stream);
}

#define ATTNBENCH_INSTANTIATE(T)                                                                   \
  template std::size_t softmax_forward_bytes<T>(const SoftmaxSizes&);                              \
  template void softmax_forward<T>(const SoftmaxSizes&, const SoftmaxArguments<T>&, Stream, void*, \
                                   std::size_t);                                                   \
  template std::size_t softmax_backward_bytes<T>(const SoftmaxSizes&);                             \
  template void softmax_backward<T>(const SoftmaxSizes&, const SoftmaxArguments<T>&,               \
                                    const SoftmaxGradients<T>&, Stream, void*, std::size_t);
ATTNBENCH_FOR_CUDA_TYPES(ATTNBENCH_INSTANTIATE)

}  // namespace attnbench::kernels::cuda
