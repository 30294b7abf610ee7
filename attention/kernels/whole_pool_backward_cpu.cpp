// Gradients of the whole pool. With w_{s,l} = exp(k_{s,l} - z_l), p the weights and g the upstream:
//   dp = g M^T,  dM = p^T g,  dq = p (dp - p.dp),  dv_s = w_s dM,
//   dk_{s,l} = w_{s,l} (v_s . dM_l - M_l . dM_l + sum_t dq_{t,l}),
// the last sum only where z is in the weights.
#include "attention/kernels/whole_pool.hpp"
#include "attention/kernels/whole_pool_parts.hpp"

namespace attnbench::kernels {
namespace {

enum class Step { sum, queries, keys };

/// Of one head: M and dM transposed, and per latent what dk subtracts.
template <class R>
struct Turned {
  R *average, *gradient;  ///< [value_dim, stride]
  R* less;                ///< [stride]
};

template <class R>
struct Shared : PoolShared<R> {
  std::int64_t heads;
  R* slopes;  // [heads, queries.count, units * width + stride]: parts of dM, and of sum dq
  R* turned;  // [heads, 2 value_dim * stride + stride]

  Shared(Workspace& space, const WholePoolSizes& sizes)
      : PoolShared<R>(space, sizes),
        heads(sizes.batch * sizes.heads),
        slopes(space.take<R>(heads * this->queries.count * slope_size())),
        turned(space.take<R>(heads * turned_size())) {}

  std::int64_t slope_size() const {
    return this->layout.units * this->layout.width + this->layout.stride;
  }
  std::int64_t turned_size() const {
    return (2 * this->layout.value_dim + 1) * this->layout.stride;
  }
  R* slope(std::int64_t head, std::int64_t k) const {
    return slopes + (head * this->queries.count + k) * slope_size();
  }
  Turned<R> turned_of(std::int64_t head) const {
    R* const at = turned + head * turned_size();
    const std::int64_t size = this->layout.value_dim * this->layout.stride;
    return {at, at + size, at + 2 * size};
  }
};

template <class T>
struct Call {
  const WholePoolSizes& sizes;
  const PrefixPoolArguments<T>& in;
  const PrefixPoolGradients<T>& out;
  Shared<Compute<T>> shared;
};

template <class R>
struct Scratch : PoolScratch<R> {
  R* slopes;  // [pool_tokens, stride]
  R* back;    // [pool_tokens, width]
  R* z;       // [stride]
  Scratch(Workspace& space, const PoolLayout<R>& layout)
      : PoolScratch<R>(space, layout),
        slopes(space.take<R>(pool_tokens * layout.stride)),
        back(space.take<R>(pool_tokens * layout.width)),
        z(space.take<R>(layout.stride)) {}
};

/// M transposed, once all parts are summed.
template <class T>
void prepare_head(const Call<T>& call, std::int64_t head) {
  average(call.shared, head);
  const auto& n = call.shared.layout;
  const auto turned = call.shared.turned_of(head);
  const auto* const sum = call.shared.total(head).sum;
  for (std::int64_t d = 0; d < n.value_dim; ++d) {
    for (std::int64_t l = 0; l < n.stride; ++l) {
      turned.average[d * n.stride + l] = l < n.latents ? sum[l * n.width + d] : 0;
    }
  }
}

/// One row's dp becomes dq, without the scale.
template <class R, int Bytes>
ATTNBENCH_INLINE void through_softmax(R* dp, const R* p, std::int64_t stride) {
  using S = Simd<R, Bytes>;
  auto total = S::all(0);
  for (std::int64_t l = 0; l < stride; l += S::lanes) total += S::load(p + l) * S::load(dp + l);
  const R delta = S::sum(total);
  for (std::int64_t l = 0; l < stride; l += S::lanes) {
    S::store(dp + l, S::load(p + l) * (S::load(dp + l) - delta));
  }
}

template <class T, int Bytes>
ATTNBENCH_INLINE void query_part(const Call<T>& call, const Scratch<Compute<T>>& s, std::int64_t b,
                                 std::int64_t h, std::int64_t k) {
  using R = Compute<T>;
  using S = Simd<R, Bytes>;
  const auto& sizes = call.sizes;
  const auto& n = call.shared.layout;
  const PoolParts& parts = call.shared.queries;
  const std::int64_t head = b * sizes.heads + h;
  const bool logits = sizes.query != PoolQuery::weights;
  const R scale = logits ? static_cast<R>(sizes.scale) : R{1};
  const auto turned = call.shared.turned_of(head);
  R* const slope = call.shared.slope(head, k);
  R* const through_z = slope + n.units * n.width;
  std::fill_n(slope, call.shared.slope_size(), R{0});
  normalisers_of(n, call.shared.total(head), s.z);
  for (std::int64_t t = parts.begin(k); t < parts.end(k); t += pool_tokens) {
    const std::int64_t tokens = std::min(pool_tokens, parts.end(k) - t);
    load_weights<T, Bytes>(sizes, call.in, n, s.z, b, h, t, tokens, s.weights);
    load_rows<T, Bytes>(call.out.d_out, nullptr, b, h, t, tokens, n.value_dim, s.rows, n.width);
    multiply<R, Bytes, false>(pool_rows(tokens), n.stride, n.value_dim, {s.rows, n.width, 1},
                              turned.average, n.stride, s.slopes, n.stride);
    multiply<R, Bytes, true>(n.units, n.width, tokens, {s.weights, 1, n.stride}, s.rows, n.width,
                             slope, n.width);
    for (std::int64_t i = 0; i < tokens; ++i) {
      R* const row = s.slopes + i * n.stride;
      if (logits) through_softmax<R, Bytes>(row, s.weights + i * n.stride, n.stride);
      for (std::int64_t l = 0; l < n.stride; l += S::lanes) {
        S::store(through_z + l, S::load(through_z + l) + S::load(row + l));
      }
    }
    put_rows<T, Bytes>(s.slopes, n.stride, tokens, n.latents, scale, call.out.d_query, b, h, t);
  }
}

/// dM of one head, its rows' products with M, and it transposed.
template <class T>
void finish_queries(const Call<T>& call, std::int64_t head) {
  using R = Compute<T>;
  const auto& n = call.shared.layout;
  const auto turned = call.shared.turned_of(head);
  const bool through_z = call.sizes.query == PoolQuery::logits_and_normaliser;
  R* const whole = call.shared.slope(head, 0);
  for (std::int64_t k = 1; k < call.shared.queries.count; ++k) {
    const R* const part = call.shared.slope(head, k);
    for (std::int64_t i = 0; i < call.shared.slope_size(); ++i) whole[i] += part[i];
  }
  for (std::int64_t l = 0; l < n.stride; ++l) {
    R less = 0;
    for (std::int64_t d = 0; d < n.value_dim; ++d) {
      const R slope = l < n.latents ? whole[l * n.width + d] : R{0};
      turned.gradient[d * n.stride + l] = slope;
      less += slope * turned.average[d * n.stride + l];
    }
    turned.less[l] = through_z ? less - whole[n.units * n.width + l] : less;
  }
}

template <class T, int Bytes>
ATTNBENCH_INLINE void key_part(const Call<T>& call, const Scratch<Compute<T>>& s, std::int64_t b,
                               std::int64_t h, std::int64_t k) {
  using R = Compute<T>;
  using S = Simd<R, Bytes>;
  const auto& sizes = call.sizes;
  const auto& n = call.shared.layout;
  const PoolParts& parts = call.shared.keys;
  const std::int64_t head = b * sizes.heads + h;
  const auto turned = call.shared.turned_of(head);
  const R* const d_average = call.shared.slope(head, 0);
  const std::uint8_t* mask =
      call.in.key_mask == nullptr ? nullptr : call.in.key_mask + b * call.in.mask_stride;
  normalisers_of(n, call.shared.total(head), s.z);
  for (std::int64_t l = 0; l < n.stride; ++l) {
    if (std::isinf(s.z[l])) s.z[l] = 0;  // no token has a weight there
  }
  for (std::int64_t t = parts.begin(k); t < parts.end(k); t += pool_tokens) {
    const std::int64_t tokens = std::min(pool_tokens, parts.end(k) - t);
    const std::int64_t rows = pool_rows(tokens);
    load_scores<T, Bytes>(sizes, call.in, mask, b, h, t, tokens, n.stride, s.weights);
    std::fill_n(s.weights + tokens * n.stride, (rows - tokens) * n.stride,
                -std::numeric_limits<R>::infinity());
    load_rows<T, Bytes>(call.in.values, mask, b, h, t, tokens, n.value_dim, s.rows, n.width);
    multiply<R, Bytes, false>(rows, n.stride, n.value_dim, {s.rows, n.width, 1}, turned.gradient,
                              n.stride, s.slopes, n.stride);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t l = 0; l < n.stride; l += S::lanes) {
        const std::int64_t at = i * n.stride + l;
        const auto weight = S::exp2(S::load(s.weights + at) - S::load(s.z + l));
        S::store(s.weights + at, weight);
        S::store(s.slopes + at, weight * (S::load(s.slopes + at) - S::load(turned.less + l)));
      }
    }
    multiply<R, Bytes, false>(rows, n.width, n.latents, {s.weights, n.stride, 1}, d_average,
                              n.width, s.back, n.width);
    put_rows<T, Bytes>(s.slopes, n.stride, tokens, n.latents, static_cast<R>(sizes.scale),
                       call.out.d_scores, b, h, t);
    put_rows<T, Bytes>(s.back, n.width, tokens, n.value_dim, R{1}, call.out.d_values, b, h, t);
  }
}

template <class T, int Bytes>
ATTNBENCH_INLINE void item(const Call<T>& call, const Scratch<Compute<T>>& s, Step step,
                           std::int64_t b, std::int64_t h, std::int64_t k) {
  if (step == Step::sum) {
    sum_part<T, Bytes>(call.sizes, call.in, call.shared, s, b, h, k);
  } else if (step == Step::queries) {
    query_part<T, Bytes>(call, s, b, h, k);
  } else {
    key_part<T, Bytes>(call, s, b, h, k);
  }
}

template <class T>
void item_baseline(const Call<T>& call, const Scratch<Compute<T>>& s, Step step, std::int64_t b,
                   std::int64_t h, std::int64_t k) {
  item<T, 16>(call, s, step, b, h, k);
}
template <class T>
ATTNBENCH_AVX2 void item_avx2(const Call<T>& call, const Scratch<Compute<T>>& s, Step step,
                              std::int64_t b, std::int64_t h, std::int64_t k) {
  item<T, 32>(call, s, step, b, h, k);
}
template <class T>
ATTNBENCH_AVX512 void item_avx512(const Call<T>& call, const Scratch<Compute<T>>& s, Step step,
                                  std::int64_t b, std::int64_t h, std::int64_t k) {
  item<T, 64>(call, s, step, b, h, k);
}

/// The bytes of what is shared, and of what one worker holds.
template <class R>
std::pair<std::size_t, std::size_t> bytes_of(const WholePoolSizes& sizes) {
  Workspace shared, own;
  const Shared<R> laid(shared, sizes);
  Scratch<R>(own, laid.layout);
  return {shared.used(), own.used()};
}

}  // namespace

template <class T>
std::size_t whole_pool_backward_bytes(const WholePoolSizes& sizes, int threads) {
  const auto [shared, own] = bytes_of<Compute<T>>(sizes);
  return shared + static_cast<std::size_t>(threads) * own;
}

template <class T>
void whole_pool_backward(const WholePoolSizes& sizes, const PrefixPoolArguments<T>& arguments,
                         const PrefixPoolGradients<T>& gradients, ThreadTeam& team, void* workspace,
                         std::size_t workspace_bytes) {
  using R = Compute<T>;
  Workspace space(workspace, workspace_bytes);
  const Call<T> call{sizes, arguments, gradients, {space, sizes}};
  const auto each = static_cast<std::int64_t>(bytes_of<R>(sizes).second);
  std::byte* const scratch = space.take<std::byte>(each * team.size());
  const auto run = pick(item_baseline<T>, item_avx2<T>, item_avx512<T>);
  const std::int64_t heads = sizes.batch * sizes.heads;
  const auto over = [&](const PoolParts& parts, Step step) {
    share(team, heads * parts.count, [&](int worker, std::int64_t index) {
      Workspace own(scratch + worker * each, static_cast<std::size_t>(each));
      const Scratch<R> s(own, call.shared.layout);
      const std::int64_t head = index / parts.count;
      run(call, s, step, head / sizes.heads, head % sizes.heads, index % parts.count);
    });
  };
  over(call.shared.keys, Step::sum);
  share(team, heads, [&](int, std::int64_t head) { prepare_head(call, head); });
  over(call.shared.queries, Step::queries);
  share(team, heads, [&](int, std::int64_t head) { finish_queries(call, head); });
  over(call.shared.keys, Step::keys);
}

#define ATTNBENCH_INSTANTIATE(T)                                                             \
  template std::size_t whole_pool_backward_bytes<T>(const WholePoolSizes&, int);             \
  template void whole_pool_backward<T>(const WholePoolSizes&, const PrefixPoolArguments<T>&, \
                                       const PrefixPoolGradients<T>&, ThreadTeam&, void*,    \
                                       std::size_t);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)
ATTNBENCH_INSTANTIATE(BFloat16)

}  // namespace attnbench::kernels
