#include "attention/kernels/whole_pool.hpp"

#include <stdexcept>

#include "attention/kernels/cpu/pool/whole_pool_sums.hpp"
#include "attention/kernels/cpu/pool/whole_pool_weights.hpp"

namespace attnbench::kernels {
namespace {

/// The steps of the forward pass, one after the other.
enum class Step { turn, sum, average, read };

template <class T>
struct Call {
  const WholePoolSizes& sizes;
  const WholePoolArguments<T>& in;
  PoolShared<Compute<T>> shared;
};

/// One part of one head's queries.
template <class T, int Bytes>
ATTNBENCH_INLINE void read_part(const Call<T>& call, const PoolReading<Compute<T>>& s,
                                std::int64_t b, std::int64_t h, std::int64_t k) {
  using R = Compute<T>;
  const auto& sizes = call.sizes;
  const auto& n = call.shared.layout;
  const PoolParts& parts = call.shared.queries;
  const std::int64_t head = b * sizes.heads + h, dim = sizes.directions.dim;
  const R* const averages = call.shared.total(head).sum;
  const R* const shift =
      sizes.query == PoolQuery::logits ? call.shared.fence : call.shared.z_of(head);
  for (std::int64_t t = parts.begin(k); t < parts.end(k); t += pool_tokens) {
    const BlockPlace place{b, h, t, std::min(pool_tokens, parts.end(k) - t)};
    SpreadPrefetch prefetch(place.tokens);
    prefetch.add(call.in.out, b, h, t, n.value_dim);
    if (const std::int64_t next = t + place.tokens; next < parts.end(k)) {
      prefetch.add(call.in.query, b, h, next, dim != 0 ? dim : n.latents);
    }
    prefetch.spread(n.groups * FetchingProduct<R>::tiles(whole_units(place.tokens), n.width));
    if (sizes.query == PoolQuery::weights) {
      const Operand<R> given =
          open_units<T, Bytes>(call.in.query, nullptr, place, n.latents, s.logits, n.stride);
      read_averages<T, Bytes>(n, &given, averages, s, call.in.out, place, prefetch);
      continue;
    }
    const Operand<R> from =
        dim != 0 ? open_units<T, Bytes>(call.in.query, nullptr, place, dim, s.logits, n.token_width)
                 : open_rows<T, Bytes>(call.in.query, nullptr, place, n.latents,
                                       static_cast<R>(sizes.scale * log2_of_e),
                                       -std::numeric_limits<R>::infinity(), s.logits, n.stride);
    weigh_queries<R, Bytes>(n, {from, dim, call.shared.directions_of(sizes, h)}, shift,
                            place.tokens, s, prefetch);
    read_averages<T, Bytes>(n, nullptr, averages, s, call.in.out, place, prefetch);
  }
}

template <class T, int Bytes>
ATTNBENCH_INLINE void item(const Call<T>& call, const PoolReading<Compute<T>>& s, Step step,
                           std::int64_t b, std::int64_t h, std::int64_t k) {
  if (step == Step::turn) {
    using R = Compute<T>;
    const std::int64_t dim = call.sizes.directions.dim;
    turn_rows<R, Bytes>(call.shared.layout, call.in.directions, nullptr, {0, h, 0, 0}, dim,
                        static_cast<R>(call.sizes.scale * log2_of_e), s.logits,
                        call.shared.directions_of(call.sizes, h));
  } else if (step == Step::sum) {
    sum_part<T, Bytes>(call.sizes, call.in, call.shared, s, b, h, k);
  } else if (step == Step::average) {
    average<Compute<T>, Bytes>(call.shared, b * call.sizes.heads + h, k);
  } else {
    read_part<T, Bytes>(call, s, b, h, k);
  }
}

template <class T>
void item_baseline(const Call<T>& call, const PoolReading<Compute<T>>& s, Step step, std::int64_t b,
                   std::int64_t h, std::int64_t k) {
  item<T, baseline_bytes>(call, s, step, b, h, k);
}
template <class T>
ATTNBENCH_AVX2 void item_avx2(const Call<T>& call, const PoolReading<Compute<T>>& s, Step step,
                              std::int64_t b, std::int64_t h, std::int64_t k) {
  item<T, avx2_bytes>(call, s, step, b, h, k);
}
template <class T>
ATTNBENCH_AVX512 void item_avx512(const Call<T>& call, const PoolReading<Compute<T>>& s, Step step,
                                  std::int64_t b, std::int64_t h, std::int64_t k) {
  item<T, avx512_bytes>(call, s, step, b, h, k);
}

/// The bytes of what is shared, and of what one worker holds.
template <class R>
std::pair<std::size_t, std::size_t> bytes_of(const WholePoolSizes& sizes) {
  Workspace shared, own;
  const PoolShared<R> laid(shared, sizes);
  PoolReading<R>(own, laid.layout);
  return {shared.used(), own.used()};
}

}  // namespace

template <class T>
std::size_t whole_pool_forward_bytes(const WholePoolSizes& sizes, int threads) {
  const auto [shared, own] = bytes_of<Compute<T>>(sizes);
  return shared + static_cast<std::size_t>(threads) * own;
}

template <class T>
void whole_pool_forward(const WholePoolSizes& sizes, const WholePoolArguments<T>& arguments,
                        ThreadTeam& team, void* workspace, std::size_t workspace_bytes) {
  using R = Compute<T>;
  if (sizes.directions.dim != 0 && sizes.query == PoolQuery::weights) {
    throw std::logic_error("directions make logits, not weights");
  }
  Workspace space(workspace, workspace_bytes);
  const Call<T> call{sizes, arguments, {space, sizes}};
  const auto each = static_cast<std::int64_t>(bytes_of<R>(sizes).second);
  std::byte* const scratch = space.take<std::byte>(each * team.size());
  const auto run = pick(item_baseline<T>, item_avx2<T>, item_avx512<T>);
  const auto over = [&](std::int64_t heads, std::int64_t parts, Step step) {
    share(team, heads * parts, [&](int worker, std::int64_t index) {
      Workspace own(scratch + worker * each, static_cast<std::size_t>(each));
      const PoolReading<R> s(own, call.shared.layout);
      const std::int64_t head = index / parts;
      run(call, s, step, head / sizes.heads, head % sizes.heads, index % parts);
    });
  };
  const std::int64_t heads = sizes.batch * sizes.heads;
  call.shared.set_fence();
  if (sizes.directions.dim != 0) over(sizes.heads, 1, Step::turn);
  over(heads, call.shared.keys.count, Step::sum);
  over(heads, call.shared.layout.groups, Step::average);
  over(heads, call.shared.queries.count, Step::read);
}

#define ATTNBENCH_INSTANTIATE(T)                                                           \
  template std::size_t whole_pool_forward_bytes<T>(const WholePoolSizes&, int);            \
  template void whole_pool_forward<T>(const WholePoolSizes&, const WholePoolArguments<T>&, \
                                      ThreadTeam&, void*, std::size_t);
ATTNBENCH_FOR_TYPES(ATTNBENCH_INSTANTIATE)

}  // namespace attnbench::kernels
