// Gradients of the whole pool. With w_{s,l} = exp(k_{s,l} - z_l), p the weights and g the upstream:
//   dp = g M^T,  dM = p^T g,  dq = p (dp - p.dp),  dv_s = w_s dM,
//   dk_{s,l} = w_{s,l} (v_s . dM_l - M_l . dM_l + sum_t dq_{t,l}),
// the last sum only where z is in the weights.
#include <stdexcept>

#include "attention/kernels/cpu/pool/whole_pool_gradient.hpp"
#include "attention/kernels/cpu/pool/whole_pool_sums.hpp"
#include "attention/kernels/whole_pool.hpp"

namespace attnbench::kernels {
namespace {

enum class Step { sum, average, queries, keys };

template <class T>
struct Call {
  const WholePoolSizes& sizes;
  const WholePoolArguments<T>& in;
  const PrefixPoolGradients<T>& out;
  PoolGradientShared<Compute<T>> shared;
};

/// M transposed, once it is there.
template <class T>
void prepare_head(const Call<T>& call, std::int64_t head) {
  const auto& n = call.shared.layout;
  const auto transposed = call.shared.transposed_of(head);
  const auto* const sum = call.shared.total(head).sum;
  for (std::int64_t d = 0; d < n.value_dim; ++d) {
    for (std::int64_t l = 0; l < n.stride; ++l) {
      transposed.average[d * n.stride + l] = l < n.latents ? sum[l * n.width + d] : 0;
    }
  }
}

template <class T, int Bytes>
ATTNBENCH_INLINE void query_part(const Call<T>& call, const PoolGradientScratch<Compute<T>>& s,
                                 std::int64_t b, std::int64_t h, std::int64_t k) {
  using R = Compute<T>;
  using S = Simd<R, Bytes>;
  const auto& sizes = call.sizes;
  const auto& n = call.shared.layout;
  const PoolParts& parts = call.shared.queries;
  const std::int64_t head = b * sizes.heads + h;
  const bool logits = sizes.query != PoolQuery::weights;
  const R scale = logits ? static_cast<R>(sizes.scale) : R{1};
  const auto transposed = call.shared.transposed_of(head);
  R* const grad = call.shared.grad(head, k);
  R* const through_z = grad + n.units * n.width;
  std::fill_n(grad, call.shared.grad_size(), R{0});
  for (std::int64_t t = parts.begin(k); t < parts.end(k); t += pool_tokens) {
    const std::int64_t tokens = std::min(pool_tokens, parts.end(k) - t);
    const BlockPlace place{b, h, t, tokens};
    load_weights<T, Bytes>(sizes, call.in.query, call.shared.z_of(head), n.stride, place,
                           s.weights);
    const Operand<R> upstream =
        open_units<T, Bytes>(call.out.d_out, nullptr, place, n.value_dim, s.rows, n.width);
    multiply<R, Bytes, false>(whole_units(tokens), n.stride, n.value_dim,
                              {upstream.data, upstream.stride, 1}, transposed.average, n.stride,
                              s.grads, n.stride);
    multiply<R, Bytes, true>(n.units, n.width, tokens, {s.weights, 1, n.stride}, upstream.data,
                             upstream.stride, grad, n.width);
    for (std::int64_t i = 0; i < tokens; ++i) {
      R* const row = s.grads + i * n.stride;
      if (logits) through_softmax<R, Bytes>(row, s.weights + i * n.stride, n.stride);
      for (std::int64_t l = 0; l < n.stride; l += S::lanes) {
        S::store(through_z + l, S::load(through_z + l) + S::load(row + l));
      }
    }
    put_rows<T, Bytes>(s.grads, n.stride, n.latents, scale, call.out.d_query, place);
  }
}

/// dM of one head, its rows' products with M, and it transposed.
template <class T>
void finish_queries(const Call<T>& call, std::int64_t head) {
  using R = Compute<T>;
  const auto& n = call.shared.layout;
  const auto transposed = call.shared.transposed_of(head);
  const bool through_z = call.sizes.query == PoolQuery::logits_plus_z;
  R* const whole = call.shared.grad(head, 0);
  for (std::int64_t k = 1; k < call.shared.queries.count; ++k) {
    const R* const part = call.shared.grad(head, k);
    for (std::int64_t i = 0; i < call.shared.grad_size(); ++i) whole[i] += part[i];
  }
  for (std::int64_t l = 0; l < n.stride; ++l) {
    R less = 0;
    for (std::int64_t d = 0; d < n.value_dim; ++d) {
      const R grad = l < n.latents ? whole[l * n.width + d] : R{0};
      transposed.gradient[d * n.stride + l] = grad;
      less += grad * transposed.average[d * n.stride + l];
    }
    transposed.less[l] = through_z ? less - whole[n.units * n.width + l] : less;
  }
}

template <class T, int Bytes>
ATTNBENCH_INLINE void key_part(const Call<T>& call, const PoolGradientScratch<Compute<T>>& s,
                               std::int64_t b, std::int64_t h, std::int64_t k) {
  using R = Compute<T>;
  using S = Simd<R, Bytes>;
  const auto& sizes = call.sizes;
  const auto& n = call.shared.layout;
  const PoolParts& parts = call.shared.keys;
  const std::int64_t head = b * sizes.heads + h;
  const auto transposed = call.shared.transposed_of(head);
  const R* const d_average = call.shared.grad(head, 0);
  const std::uint8_t* mask =
      call.in.key_mask == nullptr ? nullptr : call.in.key_mask + b * call.in.mask_stride;
  for (std::int64_t l = 0; l < n.stride; ++l) {
    const R z = call.shared.z_of(head)[l];
    s.z[l] = std::isinf(z) ? R{0} : z;  // no token has a weight there
  }
  for (std::int64_t t = parts.begin(k); t < parts.end(k); t += pool_tokens) {
    const std::int64_t tokens = std::min(pool_tokens, parts.end(k) - t);
    const std::int64_t rows = whole_units(tokens);
    const BlockPlace place{b, h, t, tokens};
    const Operand<R> scores = open_rows<T, Bytes>(
        call.in.scores, mask, place, n.latents, static_cast<R>(sizes.scale * log2_of_e),
        -std::numeric_limits<R>::infinity(), s.logits, n.stride);
    const Operand<R> values =
        open_units<T, Bytes>(call.in.values, mask, place, n.value_dim, s.rows, n.width);
    multiply<R, Bytes, false>(rows, n.stride, n.value_dim, {values.data, values.stride, 1},
                              transposed.gradient, n.stride, s.grads, n.stride);
    std::fill_n(s.weights + tokens * n.stride, (rows - tokens) * n.stride, R{0});
    for (std::int64_t i = 0; i < tokens; ++i) {
      for (std::int64_t l = 0; l < n.stride; l += S::lanes) {
        const std::int64_t at = i * n.stride + l;
        const auto score = scores.factor * S::load(scores.data + i * scores.stride + l);
        const auto weight = S::exp2(score - S::load(s.z + l));
        S::store(s.weights + at, weight);
        S::store(s.grads + at, weight * (S::load(s.grads + at) - S::load(transposed.less + l)));
      }
    }
    multiply<R, Bytes, false>(rows, n.width, n.latents, {s.weights, n.stride, 1}, d_average,
                              n.width, s.back, n.width);
    put_rows<T, Bytes>(s.grads, n.stride, n.latents, static_cast<R>(sizes.scale), call.out.d_scores,
                       place);
    put_rows<T, Bytes>(s.back, n.width, n.value_dim, R{1}, call.out.d_values, place);
  }
}

template <class T, int Bytes>
ATTNBENCH_INLINE void item(const Call<T>& call, const PoolGradientScratch<Compute<T>>& s, Step step,
                           std::int64_t b, std::int64_t h, std::int64_t k) {
  if (step == Step::sum) {
    sum_part<T, Bytes>(call.sizes, call.in, call.shared, s, b, h, k);
  } else if (step == Step::average) {
    average<Compute<T>, Bytes>(call.shared, b * call.sizes.heads + h, k);
  } else if (step == Step::queries) {
    query_part<T, Bytes>(call, s, b, h, k);
  } else {
    key_part<T, Bytes>(call, s, b, h, k);
  }
}

template <class T>
void item_baseline(const Call<T>& call, const PoolGradientScratch<Compute<T>>& s, Step step,
                   std::int64_t b, std::int64_t h, std::int64_t k) {
  item<T, baseline_bytes>(call, s, step, b, h, k);
}
template <class T>
ATTNBENCH_AVX2 void item_avx2(const Call<T>& call, const PoolGradientScratch<Compute<T>>& s,
                              Step step, std::int64_t b, std::int64_t h, std::int64_t k) {
  item<T, avx2_bytes>(call, s, step, b, h, k);
}
template <class T>
ATTNBENCH_AVX512 void item_avx512(const Call<T>& call, const PoolGradientScratch<Compute<T>>& s,
                                  Step step, std::int64_t b, std::int64_t h, std::int64_t k) {
  item<T, avx512_bytes>(call, s, step, b, h, k);
}

/// The bytes of what is shared, and of what one worker holds.
template <class R>
std::pair<std::size_t, std::size_t> bytes_of(const WholePoolSizes& sizes) {
  Workspace shared, own;
  const PoolGradientShared<R> laid(shared, sizes);
  PoolGradientScratch<R>(own, laid.layout);
  return {shared.used(), own.used()};
}

}  // namespace

template <class T>
std::size_t whole_pool_backward_bytes(const WholePoolSizes& sizes, int threads) {
  const auto [shared, own] = bytes_of<Compute<T>>(sizes);
  return shared + static_cast<std::size_t>(threads) * own;
}

template <class T>
void whole_pool_backward(const WholePoolSizes& sizes, const WholePoolArguments<T>& arguments,
                         const PrefixPoolGradients<T>& gradients, ThreadTeam& team, void* workspace,
                         std::size_t workspace_bytes) {
  using R = Compute<T>;
  if (sizes.directions.dim != 0) throw std::logic_error("no gradient goes through directions");
  Workspace space(workspace, workspace_bytes);
  const Call<T> call{sizes, arguments, gradients, {space, sizes}};
  const auto each = static_cast<std::int64_t>(bytes_of<R>(sizes).second);
  std::byte* const scratch = space.take<std::byte>(each * team.size());
  const auto run = pick(item_baseline<T>, item_avx2<T>, item_avx512<T>);
  const std::int64_t heads = sizes.batch * sizes.heads;
  const auto over = [&](std::int64_t parts, Step step) {
    share(team, heads * parts, [&](int worker, std::int64_t index) {
      Workspace own(scratch + worker * each, static_cast<std::size_t>(each));
      const PoolGradientScratch<R> s(own, call.shared.layout);
      const std::int64_t head = index / parts;
      run(call, s, step, head / sizes.heads, head % sizes.heads, index % parts);
    });
  };
  call.shared.set_fence();
  over(call.shared.keys.count, Step::sum);
  over(call.shared.layout.groups, Step::average);
  share(team, heads, [&](int, std::int64_t head) { prepare_head(call, head); });
  over(call.shared.queries.count, Step::queries);
  share(team, heads, [&](int, std::int64_t head) { finish_queries(call, head); });
  over(call.shared.keys.count, Step::keys);
}

#define ATTNBENCH_INSTANTIATE(T)                                                            \
  template std::size_t whole_pool_backward_bytes<T>(const WholePoolSizes&, int);            \
  template void whole_pool_backward<T>(const WholePoolSizes&, const WholePoolArguments<T>&, \
                                       const PrefixPoolGradients<T>&, ThreadTeam&, void*,   \
                                       std::size_t);
ATTNBENCH_FOR_TYPES(ATTNBENCH_INSTANTIATE)

}  // namespace attnbench::kernels
