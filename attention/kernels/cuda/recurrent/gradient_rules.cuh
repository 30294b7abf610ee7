// What the gradients of the recurrent families are element by element, for the kernels by chunks
// (see recurrent_gradients.cuh): all of recurrent_gradient_rows.cuh, at float accumulators of X and
// Z.
#pragma once

#include "attention/kernels/cuda/recurrent/families.cuh"

namespace attnbench::kernels::cuda {

/// What a family's gradients are, element by element.
template <class Family>
struct GradientRules;

template <>
struct GradientRules<ProductFamily> {
  /// Sums over latents that decide n and the mean grad. X stays in `x`; returns what `d_query`
  /// is to be given again. `sum` is that of the keys' weights; `real`: whether there is such a
  /// latent.
  template <class T>
  __device__ static float look(const RecurrentArguments<T>& a, float& x, float sum, float query,
                               float, float, bool, float& whole, float& dot) {
    const bool elu = a.kind == static_cast<int>(ProductFeature::elu_plus_one);
    const float p = elu ? ProductFamily::phi(query) : query;
    whole += p * sum;
    dot += p * x;
    return sum;
  }
  /// From these sums: the factor and grad that `d_query` takes, and what to keep of a token.
  template <class T>
  __device__ static float2 row(const RecurrentArguments<T>& a, float whole, float dot, float,
                               float2& kept) {
    whole += a.epsilon;
    const float by = !a.normalised ? 1.F : whole == 0 ? 0.F : 1 / whole;
    const float mean = a.normalised ? -dot * by : 0.F;
    kept = make_float2(by, mean);
    return make_float2(by, mean * by);
  }
  template <class T>
  __device__ static bool reads_d_query(const RecurrentArguments<T>&) {
    return false;
  }
  template <class T>
  __device__ static bool keeps_rest(const RecurrentArguments<T>&) {
    return false;
  }
  template <class T>
  __device__ static float d_query(const RecurrentArguments<T>& a, float x, float sum, float query,
                                  float2 row) {
    return (x * row.x + row.y * sum) * grad(a, query);
  }
  /// What dLoss/de has of a token beside Z, over its weight: Y.
  template <class T>
  __device__ static float mean(const RecurrentArguments<T>&, float, float, float, float grad) {
    return grad;
  }
  template <class T>
  __device__ static float d_key(const RecurrentArguments<T>& a, float z, float later, float key,
                                float) {
    return (z + later) * grad(a, key);
  }

 private:
  template <class T>
  __device__ static float grad(const RecurrentArguments<T>& a, float x) {
    const bool elu = a.kind == static_cast<int>(ProductFeature::elu_plus_one);
    return !elu || x > 0 ? 1.F : exp2_fast(x * log2_of_e);
  }
};

template <>
struct GradientRules<PoolFamily> {
  template <class T>
  __device__ static float look(const RecurrentArguments<T>& a, float& x, float sum, float query,
                               float top, float maximum, bool real, float& whole, float& dot) {
    const bool logits = a.kind == static_cast<int>(PoolQuery::logits);
    if (!(sum > 0)) {  // nothing to give, but the softmax of logits counts it
      x = 0;
      const float p = logits && real ? exp2_fast(query * a.scale - top) : 0.F;
      whole += p;
      return p;
    }
    x = __fdividef(x, sum);
    float p = query;
    if (logits) {
      p = exp2_fast(query * a.scale - top);
    } else if (a.kind == static_cast<int>(PoolQuery::logits_plus_z)) {
      p = exp2_fast(query * a.scale + maximum - top) * sum;
    }
    whole += p;
    dot += p * x;
    return p;
  }
  template <class T>
  __device__ static float2 row(const RecurrentArguments<T>& a, float whole, float dot, float top,
                               float2& kept) {
    if (a.kind == static_cast<int>(PoolQuery::weights) || !(whole > 0)) {
      kept = make_float2(0, 0);
      return make_float2(0, 0);
    }
    const float by = 1 / whole;
    kept = make_float2(top + __log2f(whole), dot * by);
    return make_float2(by, dot * by);
  }
  /// Whether `mean` needs dLoss/dquery.
  template <class T>
  __device__ static bool reads_d_query(const RecurrentArguments<T>& a) {
    return a.kind != static_cast<int>(PoolQuery::logits_plus_z);
  }
  /// Whether what rounding takes from dLoss/dquery is left in the place of dLoss/dkey until that is
  /// written. Where queries are weights dLoss/dquery is all there is of dLoss/dp, and where one
  /// token outweighs all others, Z and Y all but cancel.
  template <class T>
  __device__ static bool keeps_rest(const RecurrentArguments<T>& a) {
    return a.kind == static_cast<int>(PoolQuery::weights);
  }
  template <class T>
  __device__ static float d_query(const RecurrentArguments<T>& a, float x, float p, float,
                                  float2 row) {
    if (a.kind == static_cast<int>(PoolQuery::weights)) return x;
    return a.scale * ln_of_2 * (p * row.x) * (x - row.y);
  }
  /// dLoss/dp comes back of dLoss/dquery = p (dLoss/dp - grad): no more than that is kept.
  template <class T>
  __device__ static float mean(const RecurrentArguments<T>& a, float query, float d_query,
                               float whole, float grad) {
    const float scale = a.scale * ln_of_2;
    if (a.kind == static_cast<int>(PoolQuery::weights)) return -scale * d_query;
    if (a.kind != static_cast<int>(PoolQuery::logits)) return -scale * grad;
    // Where p is nothing, so is d_query.
    const float over = exp2_fast(fminf(whole - query * a.scale, 126));
    return -(d_query * over + scale * grad);
  }
  template <class T>
  __device__ static float d_key(const RecurrentArguments<T>& a, float z, float later, float key,
                                float maximum) {
    const float base = maximum == -INFINITY ? 0.F : maximum;
    return exp2_fast(key * a.scale - base) * (a.scale * ln_of_2 * z + later);
  }
};

}  // namespace attnbench::kernels::cuda
