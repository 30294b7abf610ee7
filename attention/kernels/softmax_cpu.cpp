#include "attention/kernels/softmax.hpp"
#include "attention/kernels/softmax_amx.hpp"
#include "attention/kernels/softmax_few.hpp"
#include "attention/kernels/softmax_forward.hpp"
#include "attention/kernels/softmax_items.hpp"
#include "attention/kernels/softmax_slots.hpp"

namespace attnbench::kernels {
namespace {

constexpr std::int64_t key_tile = 64;

/// What one worker holds while it works on an item.
template <class R>
struct Scratch {
  std::int64_t dim, value_dim;
  R *q, *out, *greatest, *sum;  // of the item's queries
  R *keys, *values;             // of one tile, where they cannot be used as they lie
  R *scores, *fade;             // of one panel

  Scratch(Workspace& space, const SoftmaxSizes& sizes, const Cut& cut)
      : dim(padded(sizes.head_dim, sizeof(R))),
        value_dim(padded(sizes.value_dim, sizeof(R))),
        q(space.take<R>(cut.room * dim)),
        out(space.take<R>(cut.room * value_dim)),
        greatest(space.take<R>(cut.room)),
        sum(space.take<R>(cut.room)),
        keys(space.take<R>(key_tile * dim)),
        values(space.take<R>(key_tile * value_dim)),
        scores(space.take<R>(key_tile * panel)),
        fade(space.take<R>(panel)) {}
};

template <class R>
std::size_t scratch_bytes(const SoftmaxSizes& sizes, const Cut& cut) {
  Workspace count;
  Scratch<R>(count, sizes, cut);
  return count.used();
}

/// `tokens` rows from `from` on, as they lie or packed into `scratch`, with zeros up to whole
/// vectors of tokens.
template <class T>
ATTNBENCH_INLINE const Compute<T>* rows_in_vectors(const T* from, std::int64_t row_stride,
                                                   std::int64_t tokens, std::int64_t width,
                                                   Compute<T>* scratch, std::int64_t stride) {
  if constexpr (std::is_same_v<T, Compute<T>>) {
    if (tokens == key_tile && lies_packed(from, row_stride, width)) return from;
  }
  pack(from, row_stride, tokens, width, scratch, stride);
  std::fill_n(scratch + tokens * stride, (rounded(tokens, 16) - tokens) * stride, Compute<T>{0});
  return scratch;
}

template <class T, int Bytes>
ATTNBENCH_INLINE void forward_item(const ForwardCall<T>& call, void* scratch,
                                   const ForwardItem& item) {
  using R = Compute<T>;
  const SoftmaxSizes& sizes = call.sizes;
  Workspace space(scratch, scratch_bytes<R>(sizes, call.cut));
  const Scratch<R> s(space, sizes, call.cut);
  const std::int64_t t0 = item.first_query(call.cut);
  const std::int64_t rows = std::min(call.cut.rows, sizes.length - t0);
  const std::int64_t kv = item.h / (sizes.heads / sizes.kv_heads);
  const std::uint8_t* const mask =
      call.in.key_mask == nullptr ? nullptr : call.in.key_mask + item.b * call.in.mask_stride;
  const auto factor = static_cast<R>(sizes.scale * log2_of_e);
  const bool few = sizes.length <= few_queries;
  const T* const q = call.in.q.at(item.b, item.h, t0);
  if (few) {
    pack(q, call.in.q.row_stride, rows, sizes.head_dim, s.q, s.dim);
    for (std::int64_t i = 0; i < rows * s.dim; ++i) s.q[i] *= factor;
  } else {
    for (std::int64_t i = 0; i < rows; i += panel) {
      pack_transposed<T, Bytes>(q + i * call.in.q.row_stride, call.in.q.row_stride,
                                std::min(panel, rows - i), sizes.head_dim, factor, s.q + i * s.dim,
                                panel);
    }
  }
  std::fill_n(s.out, rounded(rows, panel) * s.value_dim, R{0});
  std::fill_n(s.greatest, rounded(rows, panel), -std::numeric_limits<R>::infinity());
  std::fill_n(s.sum, rounded(rows, panel), R{0});

  // The next tile is fetched meanwhile, a little with every group of keys of every panel.
  const std::int64_t groups = (rows + panel - 1) / panel * (key_tile / row_unit);
  const std::int64_t fetched = (key_tile + groups - 1) / groups;
  const Range tiles = tiles_of(sizes, call.cut, item, key_tile);
  for (std::int64_t s0 = tiles.begin * key_tile; s0 < tiles.end * key_tile; s0 += key_tile) {
    const std::int64_t keys = std::min(key_tile, sizes.key_length - s0);
    const T* const k = call.in.k.at(item.b, kv, s0);
    const T* const v = call.in.v.at(item.b, kv, s0);
    const R* const key_rows =
        rows_in_vectors(k, call.in.k.row_stride, keys, sizes.head_dim, s.keys, s.dim);
    const R* const value_rows =
        rows_in_vectors(v, call.in.v.row_stride, keys, sizes.value_dim, s.values, s.value_dim);
    const bool fetches =
        key_rows != s.keys && value_rows != s.values && s0 + key_tile < tiles.end * key_tile;
    const KeyTile<R> tile{
        s0, keys, key_rows, value_rows, s.dim, s.value_dim, fetches ? fetched : 0};
    for (std::int64_t i = 0; i < rows; i += panel) {
      const QueryPanel<R> p{t0 + i,          std::min(panel, rows - i), i / panel,
                            s.q + i * s.dim, s.out + i * s.value_dim,   s.greatest + i,
                            s.sum + i};
      if (few) {
        take_tile_few<R, Bytes>(sizes, mask, call.bias, p, tile, s.value_dim, s.scores, key_tile);
      } else {
        take_tile<R, Bytes>(sizes, mask, call.bias, p, tile, s.value_dim, s.scores, s.fade);
      }
    }
  }
  finish(call, item, {s.out, s.greatest, s.sum, s.value_dim});
}

template <class T>
void forward_baseline(const ForwardCall<T>& call, void* scratch, const ForwardItem& item) {
  forward_item<T, 16>(call, scratch, item);
}
template <class T>
ATTNBENCH_AVX2 void forward_avx2(const ForwardCall<T>& call, void* scratch,
                                 const ForwardItem& item) {
  forward_item<T, 32>(call, scratch, item);
}
template <class T>
ATTNBENCH_AVX512 void forward_avx512(const ForwardCall<T>& call, void* scratch,
                                     const ForwardItem& item) {
  forward_item<T, 64>(call, scratch, item);
}

template <class T>
ForwardEngine<T> engine_of(const SoftmaxSizes& sizes) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    if (amx_takes(sizes) && sizes.length > few_queries) return softmax_forward_amx(sizes);
  }
  if (slots_take(sizes)) return softmax_forward_slots<T>(sizes);
  const Cut cut = cut_of(sizes, panel);
  return {cut, scratch_bytes<Compute<T>>(sizes, cut),
          pick(forward_baseline<T>, forward_avx2<T>, forward_avx512<T>)};
}

}  // namespace

template <class T>
std::size_t softmax_forward_bytes(const SoftmaxSizes& sizes, int threads) {
  const ForwardEngine<T> engine = engine_of<T>(sizes);
  Workspace count;
  PartialSums<Compute<T>>(count, sizes, engine.cut);
  count.take<Compute<T>>(BiasRange(sizes).size());
  return count.used() + static_cast<std::size_t>(threads) * engine.scratch_bytes;
}

template <class T>
void softmax_forward(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments,
                     ThreadTeam& team, void* workspace, std::size_t workspace_bytes) {
  if (sizes.length == 0) return;
  const ForwardEngine<T> engine = engine_of<T>(sizes);
  const Cut& cut = engine.cut;
  Workspace space(workspace, workspace_bytes);
  const PartialSums<Compute<T>> partial(space, sizes, cut);
  const BiasRange range(sizes);
  auto* const table = space.take<Compute<T>>(range.size());
  const ForwardCall<T> call{sizes, arguments, cut, partial,
                            bias_table(range, arguments.bias, true, table)};
  const auto each = static_cast<std::int64_t>(engine.scratch_bytes);
  std::byte* const scratch = space.take<std::byte>(each * team.size());
  const std::int64_t heads = sizes.batch * sizes.heads;
  const auto item_of = [&](std::int64_t index, std::int64_t parts) {
    // The last queries see the most keys: they go first.
    const std::int64_t head = index / parts % heads;
    return ForwardItem{head / sizes.heads, head % sizes.heads,
                       cut.blocks - 1 - index / parts / heads, index % parts};
  };
  share(team, cut.blocks * heads * cut.parts, [&](int worker, std::int64_t index) {
    engine.work(call, scratch + worker * each, item_of(index, cut.parts));
  });
  if (cut.parts == 1) return;
  share(team, cut.blocks * heads,
        [&](int, std::int64_t index) { combine(call, item_of(index, 1)); });
}

#define ATTNBENCH_INSTANTIATE(T)                                                                 \
  template std::size_t softmax_forward_bytes<T>(const SoftmaxSizes&, int);                       \
  template void softmax_forward<T>(const SoftmaxSizes&, const SoftmaxArguments<T>&, ThreadTeam&, \
                                   void*, std::size_t);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)
ATTNBENCH_INSTANTIATE(BFloat16)

}  // namespace attnbench::kernels
