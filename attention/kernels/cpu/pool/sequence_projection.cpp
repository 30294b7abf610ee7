#include "attention/kernels/sequence_projection.hpp"

#include <algorithm>

#include "attention/kernels/cpu/product/block_units.hpp"
#include "attention/kernels/cpu/product/fetching_product.hpp"
#include "attention/kernels/workspace.hpp"

namespace attnbench::kernels {
namespace {

constexpr std::int64_t block = 64;  ///< tokens, and slots, that are taken together

/// How a call is cut: into groups of slots, and each head's tokens into parts, so many whatever
/// the threads that few heads keep many of them busy: the same bits for any number.
template <class R>
struct Cut {
  std::int64_t heads, groups, tokens, parts, width;
  R* sums;  // [heads, groups, parts, block, width]

  Cut(Workspace& space, const SequenceProjectionSizes& sizes)
      : heads(sizes.batch * sizes.heads),
        groups((sizes.slots + block - 1) / block),
        tokens(0),
        parts(1),
        width(padded(sizes.dim, sizeof(R))) {
    const std::int64_t most = std::clamp<std::int64_t>(32 / (heads * groups), 1, 16);
    const std::int64_t blocks = std::max<std::int64_t>(1, (sizes.length + block - 1) / block);
    tokens = (blocks + most - 1) / most * block;
    parts = std::max<std::int64_t>(1, (sizes.length + tokens - 1) / tokens);
    sums = space.take<R>(heads * groups * parts * block * width);
  }
  R* sum(std::int64_t head, std::int64_t g, std::int64_t k) const {
    return sums + ((head * groups + g) * parts + k) * block * width;
  }
};

template <class R>
struct Scratch {
  R *weights, *rows;  // [block, block], [block, width]
  Scratch(Workspace& space, const Cut<R>& cut)
      : weights(space.take<R>(block * block)), rows(space.take<R>(block * cut.width)) {}
};

template <class T>
struct Call {
  const SequenceProjectionSizes& sizes;
  const SequenceProjectionArguments<T>& in;
  Cut<Compute<T>> cut;
};

/// The weights of the tokens from t on.
template <class R>
Rows<const R> weights_from(Rows<const R> weights, std::int64_t t) {
  weights.data += t;
  return weights;
}

/// Part k of one head's tokens into group g of its slots.
template <class T, int Bytes>
ATTNBENCH_INLINE void sum_part(const Call<T>& call, const Scratch<Compute<T>>& s, std::int64_t head,
                               std::int64_t g, std::int64_t k) {
  using R = Compute<T>;
  const auto& [sizes, in, cut] = call;
  const std::int64_t b = head / sizes.heads, h = head % sizes.heads;
  const std::int64_t first = g * block, slots = std::min(block, sizes.slots - first);
  const std::int64_t rows = whole_units(slots);
  const std::uint8_t* mask = in.key_mask == nullptr ? nullptr : in.key_mask + b * in.mask_stride;
  R* const sum = cut.sum(head, g, k);
  std::fill_n(sum, rows * cut.width, R{0});
  const std::int64_t end = std::min(sizes.length, (k + 1) * cut.tokens);
  for (std::int64_t t = k * cut.tokens; t < end; t += block) {
    const std::int64_t tokens = std::min(block, end - t);
    const Operand<R> x = open_rows<T, Bytes>(in.tokens, mask, {b, h, t, tokens}, sizes.dim, R{1},
                                             R{0}, s.rows, cut.width);
    const Operand<R> e = open_units<R, Bytes>(weights_from(in.weights, t), nullptr,
                                              {0, h, first, slots}, tokens, s.weights, block);
    SpreadPrefetch prefetch(tokens);
    if (const std::int64_t next = t + tokens; next < end) {
      prefetch.add(in.tokens, b, h, next, sizes.dim);
      prefetch.add(weights_from(in.weights, next), 0, h, first, block);
    }
    prefetch.spread(FetchingProduct<R>::tiles(rows, cut.width));
    FetchingProduct<R>{rows,      cut.width, tokens,   {e.data, e.stride, 1}, x.data, x.stride, sum,
                       cut.width, sum,       cut.width}
        .template run<Bytes>(prefetch);
  }
}

/// Group g of one head's slots from its parts.
template <class T, int Bytes>
ATTNBENCH_INLINE void combine(const Call<T>& call, std::int64_t head, std::int64_t g) {
  using R = Compute<T>;
  using S = Simd<R, Bytes>;
  const auto& [sizes, in, cut] = call;
  const std::int64_t first = g * block, slots = std::min(block, sizes.slots - first);
  for (std::int64_t l = 0; l < slots; ++l) {
    R* const to = in.out.at(head / sizes.heads, head % sizes.heads, first + l);
    for (std::int64_t d = 0; d < sizes.dim; d += S::lanes) {
      auto total = S::broadcast(0);
      for (std::int64_t k = 0; k < cut.parts; ++k) {
        total += S::load(cut.sum(head, g, k) + l * cut.width + d);
      }
      store_part<R, Bytes>(to + d, total, sizes.dim - d);
    }
  }
}

enum class Step { sum, combine };

template <class T, int Bytes>
ATTNBENCH_INLINE void item(const Call<T>& call, const Scratch<Compute<T>>& s, Step step,
                           std::int64_t head, std::int64_t g, std::int64_t k) {
  if (step == Step::sum) return sum_part<T, Bytes>(call, s, head, g, k);
  combine<T, Bytes>(call, head, g);
}

template <class T>
void item_baseline(const Call<T>& call, const Scratch<Compute<T>>& s, Step step, std::int64_t head,
                   std::int64_t g, std::int64_t k) {
  item<T, baseline_bytes>(call, s, step, head, g, k);
}
template <class T>
ATTNBENCH_AVX2 void item_avx2(const Call<T>& call, const Scratch<Compute<T>>& s, Step step,
                              std::int64_t head, std::int64_t g, std::int64_t k) {
  item<T, avx2_bytes>(call, s, step, head, g, k);
}
template <class T>
ATTNBENCH_AVX512 void item_avx512(const Call<T>& call, const Scratch<Compute<T>>& s, Step step,
                                  std::int64_t head, std::int64_t g, std::int64_t k) {
  item<T, avx512_bytes>(call, s, step, head, g, k);
}

/// The bytes of what is shared, and of what one worker holds.
template <class R>
std::pair<std::size_t, std::size_t> bytes_of(const SequenceProjectionSizes& sizes) {
  Workspace shared, own;
  const Cut<R> cut(shared, sizes);
  Scratch<R>(own, cut);
  return {shared.used(), own.used()};
}

}  // namespace

template <class T>
std::size_t sequence_projection_bytes(const SequenceProjectionSizes& sizes, int threads) {
  const auto [shared, own] = bytes_of<Compute<T>>(sizes);
  return shared + static_cast<std::size_t>(threads) * own;
}

template <class T>
void sequence_projection(const SequenceProjectionSizes& sizes,
                         const SequenceProjectionArguments<T>& arguments, ThreadTeam& team,
                         void* workspace, std::size_t workspace_bytes) {
  using R = Compute<T>;
  Workspace space(workspace, workspace_bytes);
  const Call<T> call{sizes, arguments, {space, sizes}};
  const auto each = static_cast<std::int64_t>(bytes_of<R>(sizes).second);
  std::byte* const scratch = space.take<std::byte>(each * team.size());
  const auto run = pick(item_baseline<T>, item_avx2<T>, item_avx512<T>);
  const auto over = [&](std::int64_t parts, Step step) {
    share(team, call.cut.heads * call.cut.groups * parts, [&](int worker, std::int64_t index) {
      Workspace own(scratch + worker * each, static_cast<std::size_t>(each));
      const Scratch<R> s(own, call.cut);
      const std::int64_t place = index / parts;
      run(call, s, step, place / call.cut.groups, place % call.cut.groups, index % parts);
    });
  };
  over(call.cut.parts, Step::sum);
  over(1, Step::combine);
}

#define ATTNBENCH_INSTANTIATE(T)                                                                  \
  template std::size_t sequence_projection_bytes<T>(const SequenceProjectionSizes&, int);         \
  template void sequence_projection<T>(const SequenceProjectionSizes&,                            \
                                       const SequenceProjectionArguments<T>&, ThreadTeam&, void*, \
                                       std::size_t);
ATTNBENCH_FOR_TYPES(ATTNBENCH_INSTANTIATE)

}  // namespace attnbench::kernels
