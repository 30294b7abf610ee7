#include "attention/kernels/cuda/softmax/forward_sm90.hpp"

#include <cmath>
#include <stdexcept>

#include "attention/kernels/cuda/softmax/sm90_kernel.cuh"

namespace attnbench::kernels::cuda {
namespace {

// NOTES.md says why these.
template <class T>
using Narrow = sm90::SoftmaxShape<T, 64, 3, 128, 6, true>;
template <class T>
using Wide = sm90::SoftmaxShape<T, 128, 2, 128, 5, true>;
/// For many keys that every query sees: fewer steps. At an edge it would compute more in vain.
template <class T>
using WideFull = sm90::SoftmaxShape<T, 128, 2, 176, 4, true>;
template <class T>
using Widest = sm90::SoftmaxShape<T, 256, 2, 80, 4, false>;

}  // namespace

template <class T>
std::string softmax_sm90_refusal(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& a) {
  if (sizes.head_dim != sizes.value_dim) return "head_dim differs from value_dim";
  if (sizes.head_dim != 64 && sizes.head_dim != 128 && sizes.head_dim != 256) {
    return "head_dim is none of 64, 128, 256";
  }
  if (a.key_mask != nullptr) return "there is a key mask";
  if (!(std::isfinite(sizes.scale) && sizes.scale > 0)) return "the scale is not positive";
  if (sizes.batch < 0 || sizes.heads < 1 || sizes.kv_heads < 1 || sizes.length < 0 ||
      sizes.heads % sizes.kv_heads != 0) {
    return "the sizes are not those of an attention problem";
  }
  if (sizes.key_length < 1) return "there are no keys";
  if (sizes.length > SoftmaxTiles::limit || sizes.key_length > SoftmaxTiles::limit ||
      sizes.batch > 65535 || sizes.heads > 65535 ||
      sizes.batch * sizes.heads * ((sizes.length + 63) / 64) > SoftmaxTiles::limit) {
    return "the sizes are too large";
  }
  for (const std::string& why :
       {sm90::tensor_refusal("q", a.q, sizes.batch, sizes.heads, sizes.length),
        sm90::tensor_refusal("k", a.k, sizes.batch, sizes.kv_heads, sizes.key_length),
        sm90::tensor_refusal("v", a.v, sizes.batch, sizes.kv_heads, sizes.key_length),
        sm90::tensor_refusal("out", a.out, sizes.batch, sizes.heads, sizes.length)}) {
    if (!why.empty()) return why;
  }
  if (std::string why = refusal(); !why.empty()) return why;
  if (!card().hopper()) return card().name + " is no Hopper card";
  return {};
}

template <class T>
void softmax_sm90_forward(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments,
                          Stream stream) {
  const std::string why = softmax_sm90_refusal(sizes, arguments);
  if (!why.empty()) throw std::logic_error("softmax_sm90_forward: " + why);
  const bool sees_all =
      sizes.first_key(sizes.length - 1) == 0 && sizes.last_key(0) == sizes.key_length - 1;
  if (sizes.head_dim == 64) {
    sm90::softmax_launch<Narrow<T>>(sizes, arguments, stream);
  } else if (sizes.head_dim == 128 && sees_all && sizes.key_length >= 2048) {
    sm90::softmax_launch<WideFull<T>>(sizes, arguments, stream);
  } else if (sizes.head_dim == 128) {
    sm90::softmax_launch<Wide<T>>(sizes, arguments, stream);
  } else {
    sm90::softmax_launch<Widest<T>>(sizes, arguments, stream);
  }
}

#define ATTNBENCH_INSTANTIATE(T)                                                              \
  template std::string softmax_sm90_refusal(const SoftmaxSizes&, const SoftmaxArguments<T>&); \
  template void softmax_sm90_forward(const SoftmaxSizes&, const SoftmaxArguments<T>&, Stream);
ATTNBENCH_INSTANTIATE(BFloat16)
ATTNBENCH_INSTANTIATE(Half)

}  // namespace attnbench::kernels::cuda
