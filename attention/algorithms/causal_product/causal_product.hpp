// CP, the causal product: what linear attention is made of, and what Performer, Luna and the
// decaying linear forms reuse.
//
//   O_t = sum_{s<=t} (a_t . b_s) c_s,   a = phi(x), b = phi(y) [B, H, T, F],  c [B, H, T, M],
// with the state S_t = sum_{s<=t} b_s c_s^T; or, normalised, O_t / (sum_{s<=t} a_t . b_s +
// epsilon). Katharopoulos et al. 2020 (Transformers are RNNs), eq. 8-15. 16-bit inputs are computed
// in float32.
#pragma once

#include <cstdint>

#include "attention/algorithms/tokens/operand.hpp"
#include "attention/mechanism.hpp"

namespace attnbench::causal_product {

/// phi: nothing, elu(x) + 1 or relu(x) + 1e-3, under both of which an x of -inf hides its token.
enum class Feature { identity, elu_plus_one, relu_plus_floor };

struct Form {
  Feature feature = Feature::identity;
  /// The sum of weights is carried as one more column of c, all ones; M + 1 columns in the state.
  bool normalised = false;
  double epsilon = 0;
};

/// The three forms: x, y [B, H, T, F], or F random features of narrower tokens, and c [B, H, T, M]
/// to [B, H, T, M] in the dtype of c. A
/// `state` [B, H, F, M or M + 1], where defined, is continued from and advanced in place; nothing
/// is then recorded for gradients.

/// Every state at once, [B, H, T, F, M] in memory. Gradients by autograd.
at::Tensor materialised(const Operand& x, const Operand& y, const at::Tensor& c, const Form& form,
                        at::Tensor state = {});

/// Token by token: O(F M) workspace whatever T is. Its gradient keeps the inputs alone.
at::Tensor scan(const Operand& x, const Operand& y, const at::Tensor& c, const Form& form,
                at::Tensor state = {});

/// By chunks of `chunk` tokens, as matrix products; workspace bounded whatever T is. Its gradient
/// keeps the inputs alone.
at::Tensor chunked(const Operand& x, const Operand& y, const at::Tensor& c, const Form& form,
                   std::int64_t chunk, at::Tensor state = {});

/// What `fused` continues from and advances in place: the sums of b_s c_s^T [B, H, F, M] and of b_s
/// [B, H, F], dense, in float32 where the inputs have 16 bits.
struct Memory {
  at::Tensor sum;
  at::Tensor normaliser;
};

/// In one kernel, forward and backward (attention/kernels/causal_product.hpp): float32, float64 and
/// bfloat16 on the CPU; float32, bfloat16 and float16 on a CUDA device. Its gradient keeps the
/// inputs alone; what the kernel is not to make itself (random features, relu) is made for a few
/// tokens at a time, backward for a few heads.
at::Tensor fused(const Operand& x, const Operand& y, const at::Tensor& c, const Form& form,
                 const Memory* memory = nullptr);
/// Whether it does the problem, and the workspace of its forward pass.
Support fused_supports(const Problem& problem, std::int64_t features);
double fused_workspace_bytes(const Problem& problem, std::int64_t features);

// ---- what the forms share

/// phi, exact for very negative x (where it is elu); and dLoss/dx from phi(x) and dLoss/dphi.
at::Tensor feature_of(const at::Tensor& x, Feature feature);
at::Tensor feature_gradient(const at::Tensor& value, const at::Tensor& gradient, Feature feature);

/// c, with the column of ones where the form has one.
at::Tensor columns_of(const at::Tensor& c, const Form& form);
/// The result from the products with those columns; 0 where nothing was seen.
at::Tensor result_of(const at::Tensor& sums, const Form& form);
/// dLoss/dsums from dLoss/dresult.
at::Tensor sums_gradient(const at::Tensor& sums, const at::Tensor& gradient, const Form& form);

}  // namespace attnbench::causal_product
