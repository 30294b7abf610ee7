// The causal product: what linear attention consists of, and what Performer and Luna reuse.
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

/// The feature map phi: the identity, elu(x) + 1, relu(x) + 1e-3 or relu(x). An x of -inf hides its
/// token from all but the first.
enum class Feature { identity, elu_plus_one, relu_plus_floor, relu };

struct Form {
  Feature feature = Feature::identity;
  /// The sum of weights is an additional column of c, all ones: M + 1 columns in the state.
  bool normalised = false;
  double epsilon = 0;

  c10::IValue packed() const;  ///< for an autograd context
  static Form unpacked(const c10::IValue& value);
};

/// The three forms: x, y [B, H, T, F], or F features of narrower tokens, and c [B, H, T, M]
/// to [B, H, T, M] in the dtype of c. If `state` [B, H, F, M or M + 1] is defined they continue
/// from it, advance it in place and record no gradients.

/// All states at once, [B, H, T, F, M] in memory. Gradients by autograd.
at::Tensor materialised(const Operand& x, const Operand& y, const at::Tensor& c, const Form& form,
                        at::Tensor state = {});

/// The form token by token: O(F M) workspace for any T. The gradient keeps only the inputs.
at::Tensor scan(const Operand& x, const Operand& y, const at::Tensor& c, const Form& form,
                at::Tensor state = {});

/// The form by chunks of `chunk` tokens, as matrix products; bounded workspace for any T. The
/// gradient keeps only the inputs.
at::Tensor chunked(const Operand& x, const Operand& y, const at::Tensor& c, const Form& form,
                   std::int64_t chunk, at::Tensor state = {});

/// The state of `fused`, advanced in place: the sums of b_s c_s^T [B, H, F, M] and of b_s [B, H,
/// F], dense, in float32 for 16-bit inputs.
struct Memory {
  at::Tensor sum;
  at::Tensor normaliser;
};

/// The state of a mechanism before its first token, "sum" and "normaliser".
State empty_state(const Problem& problem, std::int64_t batch, std::int64_t features,
                  const at::TensorOptions& tensor);

/// The form with one kernel each forward and backward (attention/kernels/causal_product.hpp):
/// float32, float64 and bfloat16 on the CPU; float32, bfloat16 and float16 on a CUDA device. The
/// gradient keeps only the inputs. Features of narrower tokens and relu are computed before the
/// kernel, for a few tokens at a time forward, for a few heads at a time backward.
at::Tensor fused(const Operand& x, const Operand& y, const at::Tensor& c, const Form& form,
                 const Memory* memory = nullptr);
/// Whether it supports the problem, and the workspace of its forward pass.
Support fused_supports(const Problem& problem, std::int64_t features);
double fused_workspace_bytes(const Problem& problem, std::int64_t features);

// ---- costs, forward, in the causal and the other patterns

struct ProductSizes {
  double heads = 1;     ///< batch times heads
  double queries = 1;   ///< T
  double keys = 1;      ///< T unless the pattern is cross
  double features = 1;  ///< F
  double width = 1;     ///< of the values, without the column of ones
  double bytes = 4;     ///< of one element of the inputs
  bool causal = true;
  /// Bytes of one element in computation: at least float32.
  double wide_bytes() const { return bytes > 4 ? bytes : 4; }
};

ProductSizes sizes_of(const Problem& problem, double features);

Cost materialised_cost(const ProductSizes& sizes);
Cost scan_cost(const ProductSizes& sizes);
Cost chunked_cost(const ProductSizes& sizes, double chunk);
/// The kernel's workspace depends on LibTorch's current number of threads.
Cost fused_cost(const ProductSizes& sizes, const Problem& problem);

// ---- shared by the forms

/// phi, exact for very negative x (elu); and dLoss/dx from phi(x) and dLoss/dphi.
at::Tensor feature_of(const at::Tensor& x, Feature feature);
at::Tensor feature_gradient(const at::Tensor& value, const at::Tensor& gradient, Feature feature);

/// c, with the column of ones if the form has one.
at::Tensor columns_of(const at::Tensor& c, const Form& form);
/// The result from the products with those columns; 0 if no token was visible.
at::Tensor result_of(const at::Tensor& sums, const Form& form);
/// dLoss/dsums from dLoss/dresult.
at::Tensor sums_gradient(const at::Tensor& sums, const at::Tensor& gradient, const Form& form);

}  // namespace attnbench::causal_product
