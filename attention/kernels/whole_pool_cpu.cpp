#include "attention/kernels/whole_pool.hpp"

#include "attention/kernels/whole_pool_parts.hpp"

namespace attnbench::kernels {
namespace {

/// The steps of the forward pass, one after the other.
enum class Step { sum, read };

template <class T>
struct Call {
  const WholePoolSizes& sizes;
  const PrefixPoolArguments<T>& in;
  PoolShared<Compute<T>> shared;
};

template <class R>
struct Scratch : PoolScratch<R> {
  R* out;  // [pool_tokens, width]
  R* z;    // [stride]
  Scratch(Workspace& space, const PoolLayout<R>& layout)
      : PoolScratch<R>(space, layout),
        out(space.take<R>(pool_tokens * layout.width)),
        z(space.take<R>(layout.stride)) {}
};

/// One part of one head's queries.
template <class T, int Bytes>
ATTNBENCH_INLINE void read_part(const Call<T>& call, const Scratch<Compute<T>>& s, std::int64_t b,
                                std::int64_t h, std::int64_t k) {
  using R = Compute<T>;
  const auto& n = call.shared.layout;
  const PoolParts& parts = call.shared.queries;
  const PoolSums<R> total = call.shared.total(b * call.sizes.heads + h);
  normalisers_of(n, total, s.z);
  for (std::int64_t t = parts.begin(k); t < parts.end(k); t += pool_tokens) {
    const std::int64_t tokens = std::min(pool_tokens, parts.end(k) - t);
    load_weights<T, Bytes>(call.sizes, call.in, n, s.z, b, h, t, tokens, s.weights);
    multiply<R, Bytes, false>(pool_rows(tokens), n.width, n.latents, {s.weights, n.stride, 1},
                              total.sum, n.width, s.out, n.width);
    put_rows<T, Bytes>(s.out, n.width, tokens, n.value_dim, R{1}, call.in.out, b, h, t);
  }
}

template <class T, int Bytes>
ATTNBENCH_INLINE void item(const Call<T>& call, const Scratch<Compute<T>>& s, Step step,
                           std::int64_t b, std::int64_t h, std::int64_t k) {
  if (step == Step::sum) {
    sum_part<T, Bytes>(call.sizes, call.in, call.shared, s, b, h, k);
  } else {
    read_part<T, Bytes>(call, s, b, h, k);
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
  const PoolShared<R> laid(shared, sizes);
  Scratch<R>(own, laid.layout);
  return {shared.used(), own.used()};
}

}  // namespace

template <class T>
std::size_t whole_pool_forward_bytes(const WholePoolSizes& sizes, int threads) {
  const auto [shared, own] = bytes_of<Compute<T>>(sizes);
  return shared + static_cast<std::size_t>(threads) * own;
}

template <class T>
void whole_pool_forward(const WholePoolSizes& sizes, const PrefixPoolArguments<T>& arguments,
                        ThreadTeam& team, void* workspace, std::size_t workspace_bytes) {
  using R = Compute<T>;
  Workspace space(workspace, workspace_bytes);
  const Call<T> call{sizes, arguments, {space, sizes}};
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
  share(team, heads, [&](int, std::int64_t head) { average(call.shared, head); });
  over(call.shared.queries, Step::read);
}

#define ATTNBENCH_INSTANTIATE(T)                                                            \
  template std::size_t whole_pool_forward_bytes<T>(const WholePoolSizes&, int);             \
  template void whole_pool_forward<T>(const WholePoolSizes&, const PrefixPoolArguments<T>&, \
                                      ThreadTeam&, void*, std::size_t);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)
ATTNBENCH_INSTANTIATE(BFloat16)

}  // namespace attnbench::kernels
