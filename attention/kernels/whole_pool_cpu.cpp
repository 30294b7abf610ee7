#include "attention/kernels/whole_pool.hpp"

#include <stdexcept>

#include "attention/kernels/whole_pool_sums.hpp"
#include "attention/kernels/whole_pool_weights.hpp"

namespace attnbench::kernels {
namespace {

/// The steps of the forward pass, one after the other.
enum class Step { sum, average, read };

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
  const auto& n = call.shared.layout;
  const PoolParts& parts = call.shared.queries;
  const PoolSums<R> total = call.shared.total(b * call.sizes.heads + h);
  const bool weighed = call.sizes.query == PoolQuery::weights;
  for (std::int64_t t = parts.begin(k); t < parts.end(k); t += pool_tokens) {
    const BlockPlace place{b, h, t, std::min(pool_tokens, parts.end(k) - t)};
    const std::int64_t rows = whole_units(place.tokens);
    SpreadAhead ahead(place.tokens);
    ahead.add(call.in.out, b, h, t, n.value_dim);
    if (const std::int64_t next = t + place.tokens; next < parts.end(k)) {
      ahead.add(call.in.query, b, h, next,
                call.sizes.directions.dim != 0 ? call.sizes.directions.dim : n.latents);
    }
    ahead.spread(n.groups * FetchingProduct<R>::tiles(rows, n.width));
    Operand<R> given{};
    if (weighed) {
      given = open_units<T, Bytes>(call.in.query, nullptr, place, n.latents, s.logits, n.stride);
    } else {
      weigh_queries<T, Bytes>(call.sizes, call.in.query, call.shared, s, place, ahead);
    }
    // The last product may write to where the results belong.
    R* to = s.out;
    std::int64_t to_stride = n.width;
    if constexpr (std::is_same_v<T, R>) {
      if (rows == place.tokens && n.width == n.value_dim) {
        to = call.in.out.at(b, h, t);
        to_stride = call.in.out.row_stride;
      }
    }
    for (std::int64_t g = 0; g < n.groups; ++g) {
      const Left<R> weights =
          weighed ? Left<R>{given.data + g * pool_group, given.stride, 1}
                  : Left<R>{s.weights + g * pool_tokens * pool_group, pool_group, 1};
      const bool last = g == n.groups - 1;
      FetchingProduct<R>{rows,
                         n.width,
                         n.latents_in(g),
                         weights,
                         total.sum + g * pool_group * n.width,
                         n.width,
                         g == 0 ? nullptr : s.out,
                         n.width,
                         last ? to : s.out,
                         last ? to_stride : n.width,
                         nullptr,
                         last && !weighed ? s.factors : nullptr}
          .template run<Bytes>(ahead);
    }
    if (to == s.out) {
      put_rows<T, Bytes>(s.out, n.width, n.value_dim, R{1}, call.in.out, place);
    }
  }
}

template <class T, int Bytes>
ATTNBENCH_INLINE void item(const Call<T>& call, const PoolReading<Compute<T>>& s, Step step,
                           std::int64_t b, std::int64_t h, std::int64_t k) {
  if (step == Step::sum) {
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
  item<T, 16>(call, s, step, b, h, k);
}
template <class T>
ATTNBENCH_AVX2 void item_avx2(const Call<T>& call, const PoolReading<Compute<T>>& s, Step step,
                              std::int64_t b, std::int64_t h, std::int64_t k) {
  item<T, 32>(call, s, step, b, h, k);
}
template <class T>
ATTNBENCH_AVX512 void item_avx512(const Call<T>& call, const PoolReading<Compute<T>>& s, Step step,
                                  std::int64_t b, std::int64_t h, std::int64_t k) {
  item<T, 64>(call, s, step, b, h, k);
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
  const std::int64_t heads = sizes.batch * sizes.heads;
  const auto over = [&](std::int64_t parts, Step step) {
    share(team, heads * parts, [&](int worker, std::int64_t index) {
      Workspace own(scratch + worker * each, static_cast<std::size_t>(each));
      const PoolReading<R> s(own, call.shared.layout);
      const std::int64_t head = index / parts;
      run(call, s, step, head / sizes.heads, head % sizes.heads, index % parts);
    });
  };
  call.shared.prepare(sizes, arguments.directions);
  over(call.shared.keys.count, Step::sum);
  over(call.shared.layout.groups, Step::average);
  over(call.shared.queries.count, Step::read);
}

#define ATTNBENCH_INSTANTIATE(T)                                                           \
  template std::size_t whole_pool_forward_bytes<T>(const WholePoolSizes&, int);            \
  template void whole_pool_forward<T>(const WholePoolSizes&, const WholePoolArguments<T>&, \
                                      ThreadTeam&, void*, std::size_t);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)
ATTNBENCH_INSTANTIATE(BFloat16)

}  // namespace attnbench::kernels
