// The softmax family's choice of kernels, and its workspace.
#include "attention/kernels/cuda/softmax/softmax.hpp"

#include <algorithm>
#include <type_traits>

#include "attention/kernels/cuda/numbers.cuh"
#include "attention/kernels/cuda/softmax/bias.hpp"
#include "attention/kernels/cuda/softmax/call.hpp"
#include "attention/kernels/cuda/softmax/forward_sm90.hpp"
#include "attention/kernels/workspace.hpp"

namespace attnbench::kernels::cuda {
namespace {

template <class T>
void require_supported(const SoftmaxSizes& sizes, bool gradients) {
  std::string why = softmax_refusal(sizes);
  if (sizes.bias_reach >= 0 && !std::is_same_v<T, float>) {
    if (gradients) {
      why = "gradients with biases by distance are computed in float32 alone";
    } else if (!softmax_biased_in_16_bits(sizes)) {
      why = "biases by distance are for at most 128 columns in 16 bits";
    }
  }
  if (!why.empty()) throw std::logic_error("softmax on CUDA: " + why);
}

bool empty(const SoftmaxSizes& sizes) { return sizes.batch == 0 || sizes.length == 0; }

/// Which forward kernel, and how it splits the keys.
template <class T>
struct Forward {
  bool few = false;
  SoftmaxSplit split;

  Forward(const SoftmaxSizes& sizes, const Card& card) {
    if constexpr (std::is_same_v<T, float>) {
      const int rows = sizes.heads / sizes.kv_heads * sizes.length <= 32 ? 16 : 64;
      split = split_keys(sizes, rows, card.multiprocessors, 256);
    } else {
      few = sizes.bias_reach < 0 && takes_split(sizes, card);
      if (few) split = split_keys(sizes, 16, card.multiprocessors, 256);
    }
  }
  SoftmaxPartial partial(Workspace& space, const SoftmaxSizes& sizes) const {
    if (split.parts == 1) return {};
    const std::int64_t rows = split.parts * sizes.batch * sizes.heads * sizes.length;
    SoftmaxPartial partial;
    partial.out = space.take<float>(rows * sizes.value_dim);
    partial.lse = space.take<float>(rows);
    return partial;
  }
};

/// What the gradients' kernels read, with its workspace.
template <class T>
struct Backward {
  SoftmaxBackwardCall<T> call;
  float* bias_parts;

  Backward(Workspace& space, const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments,
           const SoftmaxGradients<T>& gradients)
      : call{arguments, gradients, SoftmaxShape(sizes), static_cast<int>(padded_length(sizes))} {
    const std::int64_t rows = sizes.batch * sizes.heads * padded_length(sizes);
    call.lse = space.take<float>(rows);
    call.delta = space.take<float>(rows);
    bias_parts = space.take<float>(softmax_bias_numbers(sizes));
  }
};

}  // namespace

bool softmax_biased_in_16_bits(const SoftmaxSizes& sizes) { return tile_width(sizes) <= 128; }

std::string softmax_refusal(const SoftmaxSizes& sizes) {
  // Rows are numbered in 31 bits over all heads, and so are tokens' distances.
  constexpr std::int64_t most = std::int64_t{1} << 30;
  if (sizes.batch < 0 || sizes.heads < 1 || sizes.kv_heads < 1 || sizes.length < 0 ||
      sizes.key_length < 0 || sizes.left < 0 || sizes.right < 0) {
    return "a size is negative, or there is no head";
  }
  if (sizes.bias_reach >= 0 && std::max(sizes.left, sizes.right) > sizes.bias_reach) {
    return "the band goes farther than the biases";
  }
  if (sizes.bias_reach > most / 2) return "the biases are more than 2^30";
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
  require_supported<T>(sizes, false);
  if (empty(sizes)) return 0;
  Workspace count;
  const Forward<T> plan(sizes, card());
  plan.partial(count, sizes);
  return count.used();
}

template <class T>
void softmax_forward(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments, Stream stream,
                     void* workspace, std::size_t workspace_bytes) {
  require_supported<T>(sizes, false);
  if (empty(sizes)) return;
  const Forward<T> plan(sizes, card());
  Workspace space(workspace, workspace_bytes);
  const SoftmaxPartial partial = plan.partial(space, sizes);
  if constexpr (std::is_same_v<T, float>) {
    softmax_forward_float(sizes, arguments, plan.split, partial, stream);
  } else if (sizes.bias_reach >= 0) {
    softmax_biased_sm80(sizes, arguments, stream);
  } else if (plan.few) {
    softmax_forward_split_sm80(sizes, arguments, plan.split, partial, stream);
  } else if (softmax_sm90_refusal(sizes, arguments).empty()) {
    softmax_sm90_forward(sizes, arguments, stream);
  } else {
    softmax_forward_sm80(sizes, arguments, stream);
  }
  if (plan.split.parts > 1) softmax_combine(sizes, arguments, plan.split, partial, stream);
}

template <class T>
std::size_t softmax_backward_bytes(const SoftmaxSizes& sizes) {
  require_supported<T>(sizes, true);
  Workspace count;
  Backward<T>(count, sizes, {}, {});
  return count.used();
}

template <class T>
void softmax_backward(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments,
                      const SoftmaxGradients<T>& gradients, Stream stream, void* workspace,
                      std::size_t workspace_bytes) {
  require_supported<T>(sizes, true);
  if (sizes.batch == 0) return;
  if (arguments.lse == nullptr && sizes.length > 0) {
    throw std::logic_error("softmax on CUDA: gradients need the lse that the forward pass wrote");
  }
  // Without queries the keys' gradients are 0, which the passes over keys write.
  Workspace space(workspace, workspace_bytes);
  const Backward<T> backward(space, sizes, arguments, gradients);
  if (sizes.length > 0) softmax_delta(backward.call, stream);
  if constexpr (std::is_same_v<T, float>) {
    if (sizes.bias_reach < 0) return softmax_backward_float(sizes, backward.call, stream);
    softmax_backward_biased(sizes, backward.call, backward.bias_parts, stream);
  } else {
    if (sizes.key_length > 0) softmax_backward_keys_sm80(sizes, backward.call, stream);
    if (sizes.length > 0) softmax_backward_queries_sm80(sizes, backward.call, stream);
  }
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
