#include "attention/kernels/softmax.hpp"
#include "attention/kernels/cpu/softmax/bfloat16.hpp"
#include "attention/kernels/cpu/softmax/few.hpp"
#include "attention/kernels/cpu/softmax/forward.hpp"
#include "attention/kernels/cpu/softmax/items.hpp"
#include "attention/kernels/cpu/softmax/scratch.hpp"
#include "attention/kernels/cpu/softmax/slots.hpp"

namespace attnbench::kernels {
namespace {

/// An item of queries that see a narrow band of keys, panel by panel, each with tiles of its own.
/// So few keys are never in parts.
template <class T, int Bytes>
ATTNBENCH_INLINE void band_item(const ForwardCall<T>& call, const ForwardScratch<Compute<T>>& s,
                                const ForwardItem& item) {
  using R = Compute<T>;
  const SoftmaxSizes& sizes = call.sizes;
  const std::uint8_t* const mask =
      call.in.key_mask == nullptr ? nullptr : call.in.key_mask + item.b * call.in.mask_stride;
  const std::int64_t begin = item.first_query(call.cut);
  const std::int64_t end = std::min(begin + call.cut.rows, sizes.length);
  const Range all = seen_keys(sizes, begin, end - begin);
  const std::int64_t kv = item.h / (sizes.heads / sizes.kv_heads);
  const auto keys_of = [&](Range range) {
    const std::int64_t count = std::max<std::int64_t>(0, range.end - range.begin);
    return tile_of(call, item, s, range.begin, count, rounded(count, row_unit) + row_unit);
  };
  // Where keys lie packed, only a panel at their end has to pack its own.
  const bool lying = lies_packed(call.in.k.at(item.b, kv, 0), call.in.k.row_stride, s.dim) &&
                     lies_packed(call.in.v.at(item.b, kv, 0), call.in.v.row_stride, s.value_dim);
  KeyTile<R> all_keys{};
  if (!lying) all_keys = keys_of(all);
  for (std::int64_t t0 = begin; t0 < end; t0 += panel) {
    const std::int64_t rows = std::min(panel, end - t0);
    pack_transposed<T, Bytes>(call.in.q.at(item.b, item.h, t0), call.in.q.row_stride, rows,
                              sizes.head_dim, static_cast<R>(sizes.scale * log2_of_e), s.q, panel);
    std::fill_n(s.greatest, panel, -std::numeric_limits<R>::infinity());
    std::fill_n(s.sum, panel, R{0});
    const QueryPanel<R> p{t0, rows, s.q, s.out, s.greatest, s.sum};
    const Range seen = seen_keys(sizes, t0, rows);
    const std::int64_t span = std::max<std::int64_t>(0, seen.end - seen.begin);
    const std::int64_t tiles = (span + s.tile - 1) / s.tile;
    const std::int64_t step = tiles == 0 ? 1 : rounded((span + tiles - 1) / tiles, row_unit);
    NextMemory next(std::max<std::int64_t>(1, span / row_unit));
    next.add(call.in.out, item.b, item.h, t0, rows, sizes.value_dim);
    next.add(call.in.q, item.b, item.h, t0 + rows, std::min(panel, end - t0 - rows),
             sizes.head_dim);
    // With the first tile's values alone: the sums of the others have begun.
    MemoryOnTheWay further(rows / 6 * (std::min(step, span) - rows));
    if (lying) {
      const std::int64_t more = std::min(panel, all.end - seen.end);
      further.add(call.in.k, item.b, kv, seen.end, more, sizes.head_dim);
      further.add(call.in.v, item.b, kv, seen.end, more, sizes.value_dim);
    }
    const KeyTile<R> keys = lying ? keys_of(seen) : all_keys;
    for (std::int64_t s0 = seen.begin; s0 < seen.end; s0 += step) {
      KeyTile<R> tile = keys;
      tile.s0 = s0;
      tile.count = std::min(step, seen.end - s0);
      tile.keys += (s0 - keys.s0) * s.dim;
      tile.values += (s0 - keys.s0) * s.value_dim;
      tile.next = &next;
      tile.first_group = (s0 - seen.begin) / row_unit;
      tile.fresh = true;
      tile.further = &further;
      take_tile<R, Bytes>(sizes, mask, call.bias, p, tile, s.value_dim, s.scores, s.decay);
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      finish_row(call, item, t0 + i, s.out + i * s.value_dim, s.greatest[i], s.sum[i]);
    }
  }
}

template <class T, int Bytes>
ATTNBENCH_INLINE void forward_item(const ForwardCall<T>& call, void* scratch,
                                   const ForwardItem& item) {
  using R = Compute<T>;
  const SoftmaxSizes& sizes = call.sizes;
  Workspace space(scratch, forward_scratch_bytes<R>(sizes, call.cut));
  const ForwardScratch<R> s(space, sizes, call.cut);
  const bool few = sizes.length <= few_queries;
  if (narrow(sizes)) return band_item<T, Bytes>(call, s, item);
  const std::int64_t t0 = item.first_query(call.cut);
  const std::int64_t rows = std::min(call.cut.rows, sizes.length - t0);
  const std::uint8_t* const mask =
      call.in.key_mask == nullptr ? nullptr : call.in.key_mask + item.b * call.in.mask_stride;
  const auto factor = static_cast<R>(sizes.scale * log2_of_e);
  const T* const q = call.in.q.at(item.b, item.h, t0);
  if (few) {
    pack(q, call.in.q.row_stride, rows, sizes.head_dim, s.q, s.dim);
    for (std::int64_t i = 0; i < rows * s.dim; ++i) s.q[i] *= factor;
  }
  std::fill_n(s.out, rounded(rows, panel) * s.value_dim, R{0});
  std::fill_n(s.greatest, rounded(rows, panel), -std::numeric_limits<R>::infinity());
  std::fill_n(s.sum, rounded(rows, panel), R{0});

  const std::int64_t groups = (rows + panel - 1) / panel * (key_tile / row_unit);
  const Range tiles = tiles_of(sizes, call.cut, item, key_tile);
  for (std::int64_t s0 = tiles.begin * key_tile; s0 < tiles.end * key_tile; s0 += key_tile) {
    const std::int64_t count = std::min(key_tile, sizes.key_length - s0);
    KeyTile<R> tile = tile_of(call, item, s, s0, count, rounded(count, 16));
    if (few) {
      take_tile_few<R, Bytes>(sizes, mask, call.bias, {t0, rows, s.q, s.out, s.greatest, s.sum},
                              tile, s.value_dim, s.scores, key_tile);
      continue;
    }
    const bool first = s0 == tiles.begin * key_tile;
    const bool last = s0 + key_tile == tiles.end * key_tile;
    // What is needed next is fetched meanwhile, a little with every group of keys of every panel.
    NextMemory next(groups);
    if (!last && tile.keys != s.keys && tile.values != s.values) {
      next.add(tile.keys + key_tile * s.dim, key_tile, s.dim);
      next.add(tile.values + key_tile * s.value_dim, key_tile, s.value_dim);
    }
    if (first) next.add(call.in.q, item.b, item.h, t0 + panel, rows - panel, sizes.head_dim);
    if (last) next.add(call.in.out, item.b, item.h, t0, rows, sizes.value_dim);
    tile.next = &next;
    for (std::int64_t i = 0; i < rows; i += panel) {
      const QueryPanel<R> p{t0 + i,          std::min(panel, rows - i),
                            s.q + i * s.dim, s.out + i * s.value_dim,
                            s.greatest + i,  s.sum + i};
      if (first) {
        pack_transposed<T, Bytes>(q + i * call.in.q.row_stride, call.in.q.row_stride, p.rows,
                                  sizes.head_dim, factor, s.q + i * s.dim, panel);
      }
      tile.first_group = i / panel * (key_tile / row_unit);
      take_tile<R, Bytes>(sizes, mask, call.bias, p, tile, s.value_dim, s.scores, s.decay);
    }
  }
  finish(call, item, {s.out, s.greatest, s.sum, s.value_dim});
}

template <class T>
void forward_baseline(const ForwardCall<T>& call, void* scratch, const ForwardItem& item) {
  forward_item<T, baseline_bytes>(call, scratch, item);
}
template <class T>
ATTNBENCH_AVX2 void forward_avx2(const ForwardCall<T>& call, void* scratch,
                                 const ForwardItem& item) {
  forward_item<T, avx2_bytes>(call, scratch, item);
}
template <class T>
ATTNBENCH_AVX512 void forward_avx512(const ForwardCall<T>& call, void* scratch,
                                     const ForwardItem& item) {
  forward_item<T, avx512_bytes>(call, scratch, item);
}

template <class T>
ForwardEngine<T> engine_of(const SoftmaxSizes& sizes) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    if (bfloat16_takes(sizes) && sizes.length > few_queries) return softmax_forward_bfloat16(sizes);
  }
  if (slots_take(sizes)) return softmax_forward_slots<T>(sizes);
  // A narrow band's keys are shared by neighbouring items: the longer they are, the fewer.
  const Cut cut = cut_of(sizes, panel, narrow(sizes) ? 16 : 4);
  return {cut, forward_scratch_bytes<Compute<T>>(sizes, cut),
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
ATTNBENCH_FOR_TYPES(ATTNBENCH_INSTANTIATE)

}  // namespace attnbench::kernels
