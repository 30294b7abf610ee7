// CP, the causal product, on the CPU: what linear attention, Performer, causal Luna and, with a
// decay, retention and Mamba-2 are made of.
//
//   o_t = sum_{s<=t} (a_t . b_s) c_s,   a = phi(query), b = phi(key), c = value,
// or, normalised, o_t / (sum_{s<=t} a_t . b_s + epsilon). Katharopoulos et al. 2020 (Transformers
// are RNNs), equations 8 to 12. With a decay, whose logarithms g_t are at most 0, the term of s is
// multiplied by exp(sum of g_i, s < i <= t), as in Sun et al. 2023 (RetNet), equation 6. See
// softmax.hpp for the shape of a kernel family.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention/kernels/rows.hpp"
#include "attention/kernels/team.hpp"

namespace attnbench::kernels {

/// phi: nothing, or elu(x) + 1.
enum class ProductFeature { identity, elu_plus_one };

struct CausalProductSizes {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t length = 0;
  std::int64_t features = 0;
  std::int64_t value_dim = 0;
  ProductFeature feature = ProductFeature::identity;
  bool normalised = false;
  double epsilon = 0;
  bool decays = false;  ///< with the feature `identity`, not normalised
  double scale = 1;     ///< what results are multiplied by, on the CPU with a decay; else 1

  std::int64_t memory_rows() const { return features; }
};

template <class T>
struct CausalProductArguments {
  Rows<const T> query;   ///< [batch, heads, length, features]
  Rows<const T> key;     ///< [batch, heads, length, features]
  Rows<const T> values;  ///< [batch, heads, length, value_dim]
  /// [batch, length], rows apart by mask_stride; 0 hides the token. Null = all are real.
  const std::uint8_t* key_mask = nullptr;
  std::int64_t mask_stride = 0;
  /// [batch, heads, length, 1], where `decays`: g, at most 0; may be -inf. A hidden token's counts.
  Rows<const Compute<T>> log_decay;
  /// [batch, heads, length, value_dim], apart from the inputs: results gather there. 0 where
  /// nothing was seen.
  Rows<T> out;
  /// The sums of b_s c_s^T [batch, heads, features, value_dim] and, where the form is normalised,
  /// of b_s [batch, heads, features], dense; continued from and advanced in place. Null: nothing
  /// came before, and nothing is kept.
  Compute<T>* memory = nullptr;
  Compute<T>* total = nullptr;
};

template <class T>
std::size_t causal_product_forward_bytes(const CausalProductSizes& sizes, int threads);
template <class T>
void causal_product_forward(const CausalProductSizes& sizes,
                            const CausalProductArguments<T>& arguments, ThreadTeam& team,
                            void* workspace, std::size_t workspace_bytes);

/// Gradients with respect to query, key and values, from that of `out`. Everything is computed anew
/// from the inputs; a memory is not taken into account. Gradients are written, not added to, apart
/// from the inputs. That of g_t follows from them: with e_t = q_t . dq_t - k_t . dk_t it is the sum
/// of e_s over s >= t.
template <class T>
struct CausalProductGradients {
  Rows<const T> d_out;
  Rows<T> d_query;
  Rows<T> d_key;
  Rows<T> d_values;
};

template <class T>
std::size_t causal_product_backward_bytes(const CausalProductSizes& sizes, int threads);
template <class T>
void causal_product_backward(const CausalProductSizes& sizes,
                             const CausalProductArguments<T>& arguments,
                             const CausalProductGradients<T>& gradients, ThreadTeam& team,
                             void* workspace, std::size_t workspace_bytes);

}  // namespace attnbench::kernels
