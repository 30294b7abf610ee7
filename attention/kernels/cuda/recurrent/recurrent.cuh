// What the causal product and the prefix pool share: each token's weights e of its key and w of its
// query, which a family says how to find, and from them
//   M_t = decay_t M_{t-1} + e_t v_t^T,   o_t = w_t M_t,   w_t = p_t / n_t,
// two launches forward: the weights, token by token, and the scan of causal_scan.cuh. A step from a
// carried memory is a kernel of its own. Backward, with g the gradient of o,
//   X_t = M_t g_t,   R_t = w_t g_t^T + decay_{t+1} R_{t+1},   Z_t = R_t v_t,   dv_t = R_t^T e_t
// are three scans, of which the rest is element by element. With a the sums of e:
//   product: gamma = -(w . X) / n,   dphi(q) = X / n + gamma a,   Y = gamma P;
//   pool:    dp = X / a,   delta = w . X,   dq = w (X - a delta),   Y = w dp (or w delta, where p
//            holds the normalisers, whose own part in dk cancels the rest).
// dk comes of Z and of the sum of Y over the token and all later ones.
#pragma once

#include <stdexcept>
#include <string>

#include "attention/kernels/causal_product.hpp"
#include "attention/kernels/cuda/launch.cuh"
#include "attention/kernels/cuda/numbers.cuh"
#include "attention/kernels/cuda/recurrent/causal_scan.cuh"
#include "attention/kernels/prefix_pool.hpp"
#include "attention/kernels/workspace.hpp"

namespace attnbench::kernels::cuda {

constexpr float log2_of_e = 1.44269504088896340736F;
constexpr float ln_of_2 = 0.69314718055994530942F;

/// [heads, length, latents] against [heads, length, value_dim], batch rows counted as heads.
struct RecurrentShape {
  std::int64_t heads = 1, length = 0, latents = 0, value_dim = 0;
  bool empty() const { return heads == 0 || length == 0 || latents == 0 || value_dim == 0; }
};

template <class T>
struct RecurrentArguments {
  Rows<const T> query, key, values;
  Rows<T> out;
  Rows<const float> log_decay;  ///< [batch, heads, length, 1], of a decaying product alone
  const std::uint8_t* mask = nullptr;
  std::int64_t mask_stride = 0;
  int heads = 1;  ///< of a batch row
  int length = 0, latents = 0, value_dim = 0;
  int kind = 0;             ///< ProductFeature or PoolQuery
  bool normalised = false;  ///< results are divided by the sum of their weights
  float scale = 1;          ///< log2(e) included
  float epsilon = 0;
  /// The carry, continued from and advanced in place; null: nothing came before. M [slots, latents,
  /// value_dim]; the sums of e and the maxima [slots, latents], where the family has them.
  float *memory = nullptr, *total = nullptr, *maximum = nullptr;

  __device__ bool seen(std::int64_t b, std::int64_t t) const {
    return mask == nullptr || mask[b * mask_stride + t] != 0;
  }
};

/// What is kept of every token: [batch, heads, length, latents] each, dense, but for `whole`
/// [batch, heads, length]. Forward, the last four are null.
struct TokenArrays {
  float *e = nullptr, *w = nullptr, *decay = nullptr;  ///< decay: null where nothing decays
  float* total = nullptr;                              ///< a
  float* whole = nullptr;                              ///< n
  float* x = nullptr;                                  ///< X, then Y
  float* z = nullptr;
};

// ---- the families ----

/// elu(x) + 1, or x.
struct ProductFamily {
  static constexpr bool decays = false;
  static constexpr bool pools = false;  ///< weights are exponentials against a running maximum
};
/// x, with a decay that each token gives.
struct DecayingProductFamily : ProductFamily {
  static constexpr bool decays = true;
};
struct PoolFamily {
  static constexpr bool decays = true;  ///< as maxima rise
  static constexpr bool pools = true;
};

__device__ inline float warp_sum(float x) {
#pragma unroll
  for (int i = 16; i > 0; i /= 2) x += __shfl_xor_sync(~0u, x, i);
  return x;
}
__device__ inline float warp_greatest(float x) {
#pragma unroll
  for (int i = 16; i > 0; i /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, i));
  return x;
}

/// A warp's tokens one after another; a lane has the latents l = lane + 32 i, i < Own.
template <class Family, int Own>
struct TokenWeights {
  float total[Own], maximum[Own];  ///< of all tokens so far
  float e[Own], decay[Own], p[Own];

  template <class T>
  __device__ TokenWeights(const RecurrentArguments<T>& a, std::int64_t slot) {
#pragma unroll
    for (int i = 0; i < Own; ++i) {
      const int l = static_cast<int>(threadIdx.x & 31) + 32 * i;
      const std::int64_t at = slot * a.latents + l;
      const bool there = l < a.latents;
      total[i] = there && a.total != nullptr ? a.total[at] : 0.F;
      const bool carried = Family::pools && there && a.maximum != nullptr;
      maximum[i] = carried ? a.maximum[at] * log2_of_e : -INFINITY;
    }
  }
  template <class T>
  __device__ void leave(const RecurrentArguments<T>& a, std::int64_t slot) const {
#pragma unroll
    for (int i = 0; i < Own; ++i) {
      const int l = static_cast<int>(threadIdx.x & 31) + 32 * i;
      const std::int64_t at = slot * a.latents + l;
      if (l < a.latents && a.total != nullptr) a.total[at] = total[i];
      if (Family::pools && l < a.latents && a.maximum != nullptr) {
        a.maximum[at] = maximum[i] * ln_of_2;
      }
    }
  }

  /// Takes in a token: its e (0 where it is hidden), by how much the past decays (`by_token` where
  /// no maxima say it), and p; returns n.
  template <class T>
  __device__ float take(const RecurrentArguments<T>& a, const float* query, const float* key,
                        bool seen, float by_token) {
    float part = 0;
    if constexpr (Family::pools) {
      part = take_pool(a, query, key, seen);
    } else {
      const bool elu = a.kind == static_cast<int>(ProductFeature::elu_plus_one);
      const auto phi = [&](float x) { return !elu ? x : x > 0 ? x + 1 : expf(x); };
#pragma unroll
      for (int i = 0; i < Own; ++i) {
        const int l = static_cast<int>(threadIdx.x & 31) + 32 * i;
        decay[i] = by_token;
        e[i] = seen && l < a.latents ? phi(key[l]) : 0.F;
        p[i] = l < a.latents ? phi(query[l]) : 0.F;
        total[i] += e[i];
        part += p[i] * total[i];
      }
    }
    return a.normalised ? warp_sum(part) + a.epsilon : 1.F;
  }

 private:
  template <class T>
  __device__ float take_pool(const RecurrentArguments<T>& a, const float* query, const float* key,
                             bool seen) {
    const bool is_weight = a.kind == static_cast<int>(PoolQuery::weights);
    const bool plus_z = a.kind == static_cast<int>(PoolQuery::logits_plus_z);
    float most = -INFINITY, part = 0;
#pragma unroll
    for (int i = 0; i < Own; ++i) {
      const int l = static_cast<int>(threadIdx.x & 31) + 32 * i;
      const bool there = l < a.latents;
      const float old = maximum[i];
      const float next = seen && there ? fmaxf(old, key[l] * a.scale) : old;
      // A latent that has seen nothing must not compute infinity minus infinity.
      const float base = next == -INFINITY ? 0.F : next;
      decay[i] = old == -INFINITY ? 1.F : exp2f(old - base);  // 1 where nothing was seen
      e[i] = seen && there ? exp2f(key[l] * a.scale - base) : 0.F;
      maximum[i] = next;
      total[i] = decay[i] * total[i] + e[i];
      p[i] = there ? query[l] : 0.F;
      if (is_weight) continue;
      p[i] = there ? p[i] * a.scale + (plus_z ? next : 0.F) : -INFINITY;
      most = fmaxf(most, p[i]);
    }
    if (!is_weight) {
      most = warp_greatest(most);
      most = most == -INFINITY ? 0.F : most;
    }
#pragma unroll
    for (int i = 0; i < Own; ++i) {
      if (plus_z) {
        p[i] = total[i] > 0 ? exp2f(p[i] - most) : 0.F;
        part += p[i] * total[i];
        continue;
      }
      // A latent that has seen nothing has nothing to give, but the softmax counts it.
      const float by = total[i] > 0 ? total[i] : 1.F;
      p[i] = (is_weight ? p[i] : exp2f(p[i] - most)) / by;
      part += p[i] * by;
    }
    return part;
  }
};

/// What a token multiplies the memory by, where decays are of tokens; else 1.
template <class Family, class T>
__device__ inline float decay_of_token(const RecurrentArguments<T>& a, std::int64_t b,
                                       std::int64_t h, std::int64_t t) {
  if constexpr (Family::decays && !Family::pools) return expf(a.log_decay.at(b, h, t)[0]);
  return 1;
}

/// Calls f with how many of `latents` a lane holds, as a constant.
template <class F>
void with_own(int latents, F&& f) {
  if (latents <= 64) return f(std::integral_constant<int, 2>{});
  if (latents <= 128) return f(std::integral_constant<int, 4>{});
  f(std::integral_constant<int, 16>{});
}

// ---- the weights of every token ----

constexpr int weight_tokens = 8;  ///< loaded at once

/// Grid [slots], one warp each; shared memory of weight_tokens * 2 latents floats.
template <class Family, class T, int Own>
__global__ void __launch_bounds__(32)
    recurrent_weights(const RecurrentArguments<T> a, const TokenArrays to) {
  ATTNBENCH_SHARED(float, floats, 128);
  float* const queries = floats;
  float* const keys = floats + weight_tokens * a.latents;
  const int lane = static_cast<int>(threadIdx.x);
  const std::int64_t slot = blockIdx.x, b = slot / a.heads, h = slot % a.heads;
  TokenWeights<Family, Own> weights(a, slot);
  for (int t0 = 0; t0 < a.length; t0 += weight_tokens) {
    const int rows = min(weight_tokens, a.length - t0);
    __syncwarp();
#pragma unroll 8
    for (int i = lane; i < rows * a.latents; i += 32) {
      const int t = t0 + i / a.latents, l = i % a.latents;
      queries[i] = to_float(a.query.at(b, h, t)[l]);
      keys[i] = to_float(a.key.at(b, h, t)[l]);
    }
    __syncwarp();
    for (int t = t0; t < t0 + rows; ++t) {
      const int begin = (t - t0) * a.latents;
      const float whole = weights.take(a, queries + begin, keys + begin, a.seen(b, t),
                                       decay_of_token<Family>(a, b, h, t));
      const float by = whole == 0 ? 0.F : 1 / whole;
      const std::int64_t row = slot * a.length + t;
      if (lane == 0 && to.whole != nullptr) to.whole[row] = whole;
#pragma unroll
      for (int i = 0; i < Own; ++i) {
        const int l = lane + 32 * i;
        if (l >= a.latents) continue;
        const std::int64_t at = row * a.latents + l;
        to.e[at] = weights.e[i];
        to.w[at] = weights.p[i] * by;
        if (Family::decays) to.decay[at] = weights.decay[i];
        if (to.total == nullptr) continue;
        // As take() has it.
        to.total[at] = Family::pools && !(weights.total[i] > 0) ? 1.F : weights.total[i];
      }
    }
  }
  weights.leave(a, slot);
}

// ---- a step: one token from a carried memory, which is read and written once ----

constexpr int step_threads = 256;  ///< and the most columns of values

/// Grid [slots]; shared memory of 3 latents + step_threads floats.
template <class Family, class T, int Own>
__global__ void __launch_bounds__(step_threads) recurrent_step(const RecurrentArguments<T> a) {
  ATTNBENCH_SHARED(float, floats, 128);
  float* const e = floats;
  float* const decay = e + a.latents;
  float* const p = decay + a.latents;
  float* const partial = p + a.latents;  // [rows, value_dim]
  __shared__ float whole;
  const std::int64_t slot = blockIdx.x, b = slot / a.heads, h = slot % a.heads;
  const bool seen = a.seen(b, 0);
  const int lane = static_cast<int>(threadIdx.x & 31);
  const int rows = step_threads / a.value_dim;
  const int row = static_cast<int>(threadIdx.x) / a.value_dim;
  const int d = static_cast<int>(threadIdx.x) % a.value_dim;
  if (threadIdx.x < 32) {
    TokenWeights<Family, Own> weights(a, slot);
    for (int l = lane; l < a.latents; l += 32) {
      p[l] = to_float(a.query.at(b, h, 0)[l]);
      e[l] = to_float(a.key.at(b, h, 0)[l]);
    }
    __syncwarp();
    const float sum = weights.take(a, p, e, seen, decay_of_token<Family>(a, b, h, 0));
    __syncwarp();
#pragma unroll
    for (int i = 0; i < Own; ++i) {
      const int l = lane + 32 * i;
      if (l >= a.latents) continue;
      e[l] = weights.e[i];
      decay[l] = weights.decay[i];
      p[l] = weights.p[i];
    }
    weights.leave(a, slot);
    if (lane == 0) whole = sum;
  }
  __syncthreads();
  float* const memory = a.memory + slot * a.latents * a.value_dim + d;
  const bool works = row < rows;
  const float v = works && seen ? to_float(a.values.at(b, h, 0)[d]) : 0.F;
  float o = 0;
  constexpr int ahead = 8;  // loads under way at once
  for (int l0 = row; works && l0 < a.latents; l0 += ahead * rows) {
    float m[ahead];
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const int l = l0 + i * rows;
      if (l < a.latents) m[i] = memory[static_cast<std::int64_t>(l) * a.value_dim];
    }
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const int l = l0 + i * rows;
      if (l >= a.latents) continue;
      m[i] = decay[l] * m[i] + e[l] * v;
      memory[static_cast<std::int64_t>(l) * a.value_dim] = m[i];
      o += p[l] * m[i];
    }
  }
  if (works) partial[row * a.value_dim + d] = o;
  __syncthreads();
  if (row != 0) return;
  for (int r = 1; r < rows; ++r) o += partial[r * a.value_dim + d];
  from_float(whole == 0 ? 0.F : o / whole, a.out.at(b, h, 0)[d]);
}

// ---- gradients element by element ----

/// elu(x) + 1 has the derivative min(phi, 1).
__device__ inline float elu_grad(float x) { return x > 0 ? 1.F : expf(x); }

/// dLoss/dquery, and Y in the place of X. A warp a token; `rows` = batch * heads * length.
template <class Family, class T>
__global__ void __launch_bounds__(256)
    gradient_queries(const RecurrentArguments<T> a, const TokenArrays arrays, const Rows<T> d_query,
                     std::int64_t rows) {
  const int lane = threadIdx.x & 31;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * 8 + (threadIdx.x >> 5);
  if (row >= rows) return;
  const std::int64_t slot = row / a.length, t = row % a.length;
  const std::int64_t b = slot / a.heads, h = slot % a.heads, begin = row * a.latents;
  float dot = 0;
  for (int l = lane; l < a.latents; l += 32) dot += arrays.w[begin + l] * arrays.x[begin + l];
  dot = warp_sum(dot);
  const float whole = arrays.whole[row], by = whole == 0 ? 0.F : 1 / whole;
  for (int l = lane; l < a.latents; l += 32) {
    const float x = arrays.x[begin + l], w = arrays.w[begin + l], total = arrays.total[begin + l];
    float dq, y;
    if constexpr (Family::pools) {
      const float dp = total > 0 ? x / total : 0.F;
      const bool weights = a.kind == static_cast<int>(PoolQuery::weights);
      const bool inside = a.kind == static_cast<int>(PoolQuery::logits_plus_z);
      dq = weights ? dp : a.scale * ln_of_2 * w * (x - total * dot);
      y = w * (inside ? dot : dp);
    } else {
      const float gamma = a.normalised ? -dot * by : 0.F;
      const bool elu = a.kind == static_cast<int>(ProductFeature::elu_plus_one);
      dq = (x * by + gamma * total) * (elu ? elu_grad(to_float(a.query.at(b, h, t)[l])) : 1.F);
      y = gamma * whole * w;
    }
    arrays.x[begin + l] = y;
    from_float(dq, d_query.at(b, h, t)[l]);
  }
}

/// dLoss/dkey. A thread a latent of a head, from the last token to the first; `latents` of all.
template <class Family, class T>
__global__ void __launch_bounds__(128)
    gradient_keys(const RecurrentArguments<T> a, const TokenArrays arrays, const Rows<T> d_key,
                  std::int64_t latents) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= latents) return;
  const std::int64_t slot = i / a.latents, l = i % a.latents;
  const std::int64_t b = slot / a.heads, h = slot % a.heads;
  float later = 0, decay = 0;
  for (int t = a.length - 1; t >= 0; --t) {
    const std::int64_t at = (slot * a.length + t) * a.latents + l;
    float dk;
    if constexpr (Family::pools) {
      later = arrays.x[at] + decay * later;
      decay = arrays.decay[at];
      dk = a.scale * ln_of_2 * arrays.e[at] * (arrays.z[at] - later);
    } else {
      later += arrays.x[at];
      const bool elu = a.kind == static_cast<int>(ProductFeature::elu_plus_one);
      dk = (arrays.z[at] + later) * (elu ? elu_grad(to_float(a.key.at(b, h, t)[l])) : 1.F);
    }
    from_float(a.seen(b, t) ? dk : 0.F, d_key.at(b, h, t)[l]);
  }
}

// ---- launch ----

/// Why a size cannot be done; empty where it can.
inline std::string recurrent_refusal(const RecurrentShape& shape, const char* latents) {
  if (shape.heads < 0 || shape.length < 0 || shape.latents < 0 || shape.value_dim < 0) {
    return "a size is negative";
  }
  if (shape.latents > most_scan_inner) {
    return std::string("at most ") + std::to_string(most_scan_inner) + " " + latents +
           " a head on CUDA, not " + std::to_string(shape.latents);
  }
  if (shape.length > std::int64_t{1} << 30 || shape.heads >= std::int64_t{1} << 24 ||
      shape.value_dim > 4096) {
    return "more tokens (2^30), heads (2^24) or columns of values (4096) than a grid has room for";
  }
  return {};
}
/// The same of gradients.
inline std::string recurrent_backward_refusal(const RecurrentShape& shape, const char* latents) {
  const std::string why = recurrent_refusal(shape, latents);
  if (!why.empty() || shape.value_dim <= most_scan_inner) return why;
  return "gradients of at most " + std::to_string(most_scan_inner) +
         " columns of values on CUDA, not " + std::to_string(shape.value_dim);
}
inline void require(const std::string& refusal) {
  if (!refusal.empty()) throw std::logic_error(refusal);
}

template <class Family>
TokenArrays token_arrays(Workspace& space, const RecurrentShape& shape, bool backward) {
  const std::int64_t rows = shape.heads * shape.length, numbers = rows * shape.latents;
  TokenArrays arrays;
  arrays.e = space.take<float>(numbers);
  arrays.w = space.take<float>(numbers);
  if (Family::decays) arrays.decay = space.take<float>(numbers);
  if (!backward) return arrays;
  arrays.total = space.take<float>(numbers);
  arrays.whole = space.take<float>(rows);
  arrays.x = space.take<float>(numbers);
  arrays.z = space.take<float>(numbers);
  return arrays;
}

template <class Family>
std::size_t recurrent_bytes(const RecurrentShape& shape, bool backward) {
  Workspace count;
  token_arrays<Family>(count, shape, backward);
  return count.used();
}

template <class T>
void set_sizes(RecurrentArguments<T>& a, const RecurrentShape& shape) {
  a.length = static_cast<int>(shape.length);
  a.latents = static_cast<int>(shape.latents);
  a.value_dim = static_cast<int>(shape.value_dim);
}

template <class Family, class T>
void launch_weights(const RecurrentArguments<T>& a, const TokenArrays& arrays, std::int64_t slots,
                    Stream stream) {
  with_own(a.latents, [&](auto own) {
    launch(recurrent_weights<Family, T, own()>, dim3(static_cast<unsigned>(slots)), dim3(32),
           sizeof(float) * 2 * weight_tokens * static_cast<std::size_t>(a.latents), stream, a,
           arrays);
  });
}

/// What all scans of a call share.
template <class Inner, class Outer, class Out, class T>
CausalScan<Inner, Outer, Out> scan_of(const RecurrentArguments<T>& a, const TokenArrays& arrays,
                                      int inner, int outer) {
  CausalScan<Inner, Outer, Out> scan;
  scan.decay = arrays.decay;
  scan.mask = a.mask;
  scan.mask_stride = a.mask_stride;
  scan.heads = a.heads;
  scan.length = a.length;
  scan.inner = inner;
  scan.outer = outer;
  return scan;
}

/// An array of every token.
template <class T, class Number>
Rows<Number> dense_rows(const RecurrentArguments<T>& a, Number* data) {
  const std::int64_t head = std::int64_t{a.length} * a.latents;
  return {data, a.heads * head, head, a.latents};
}

/// `a` holds all but the sizes. Throws std::logic_error for too small a workspace.
template <class Family, class T>
void recurrent_forward(RecurrentArguments<T> a, const RecurrentShape& shape, Stream stream,
                       void* workspace, std::size_t bytes) {
  if (shape.empty()) return;
  set_sizes(a, shape);
  if (a.memory != nullptr && shape.length == 1 && shape.value_dim <= step_threads) {
    return with_own(a.latents, [&](auto own) {
      launch(recurrent_step<Family, T, own()>, dim3(static_cast<unsigned>(shape.heads)),
             dim3(step_threads),
             sizeof(float) * static_cast<std::size_t>(3 * a.latents + step_threads), stream, a);
    });
  }
  Workspace space(workspace, bytes);
  const TokenArrays arrays = token_arrays<Family>(space, shape, false);
  launch_weights<Family>(a, arrays, shape.heads, stream);
  auto scan = scan_of<float, T, T>(a, arrays, a.latents, a.value_dim);
  scan.read = dense_rows<T, const float>(a, arrays.w);
  scan.left = dense_rows<T, const float>(a, arrays.e);
  scan.right = a.values;
  scan.hides_right = scan.decay_inner = true;
  scan.out = a.out;
  scan.memory = a.memory;
  causal_scan(scan, shape.heads, stream);
}

template <class T>
struct RecurrentGradients {
  Rows<const T> d_out;
  Rows<T> d_query, d_key, d_values;
};

/// The same. Results and carry are not looked at.
template <class Family, class T>
void recurrent_backward(RecurrentArguments<T> a, const RecurrentGradients<T>& gradients,
                        const RecurrentShape& shape, Stream stream, void* workspace,
                        std::size_t bytes) {
  if (shape.empty()) return;
  set_sizes(a, shape);
  Workspace space(workspace, bytes);
  const TokenArrays arrays = token_arrays<Family>(space, shape, true);
  launch_weights<Family>(a, arrays, shape.heads, stream);

  auto x = scan_of<T, float, float>(a, arrays, a.value_dim, a.latents);
  x.read = gradients.d_out;
  x.left = a.values;
  x.hides_left = true;
  x.right = dense_rows<T, const float>(a, arrays.e);
  x.out = dense_rows<T, float>(a, arrays.x);
  causal_scan(x, shape.heads, stream);

  auto z = scan_of<T, float, float>(a, arrays, a.value_dim, a.latents);
  z.reverse = true;
  z.read = a.values;
  z.hides_read = true;
  z.left = gradients.d_out;
  z.right = dense_rows<T, const float>(a, arrays.w);
  z.out = dense_rows<T, float>(a, arrays.z);
  causal_scan(z, shape.heads, stream);

  auto v = scan_of<float, T, T>(a, arrays, a.latents, a.value_dim);
  v.reverse = v.decay_inner = true;
  v.read = dense_rows<T, const float>(a, arrays.e);
  v.left = dense_rows<T, const float>(a, arrays.w);
  v.right = gradients.d_out;
  v.out = gradients.d_values;
  causal_scan(v, shape.heads, stream);

  const std::int64_t rows = shape.heads * shape.length, latents = shape.heads * shape.latents;
  launch(gradient_queries<Family, T>, dim3(static_cast<unsigned>((rows + 7) / 8)), dim3(256), 0,
         stream, a, arrays, gradients.d_query, rows);
  launch(gradient_keys<Family, T>, dim3(static_cast<unsigned>((latents + 127) / 128)), dim3(128), 0,
         stream, a, arrays, gradients.d_key, latents);
}

}  // namespace attnbench::kernels::cuda
