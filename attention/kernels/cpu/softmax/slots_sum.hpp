// Queries that are slots sum keys' values up: the rows of one item are the latents of the whole
// pool, and a part of the keys comes in blocks.
#pragma once

#include "attention/kernels/cpu/pool/whole_pool_sums.hpp"
#include "attention/kernels/cpu/softmax/items.hpp"

namespace attnbench::kernels {

/// `count` slots as the pool's latents.
template <class R>
PoolLayout<R> slots_layout(const SoftmaxSizes& sizes, std::int64_t count) {
  WholePoolSizes pool;
  pool.latents = count;
  pool.value_dim = sizes.value_dim;
  pool.directions.dim = sizes.head_dim;
  return PoolLayout<R>(pool);
}

/// One group of slots for an item: more would want their sums in the second cache.
inline Cut slots_cut(const SoftmaxSizes& sizes) { return cut_of(sizes, pool_group, 1); }

inline std::int64_t slots_of(const SoftmaxSizes& sizes, const Cut& cut, const ForwardItem& item) {
  return std::min(cut.rows, sizes.length - item.first_query(cut));
}

/// What one worker holds while it sums.
template <class R>
struct SlotSums : PoolScratch<R> {
  R* directions;  // [head_dim, pool_group]: the slots transposed, times scale and log2(e)
  R* sums;        // of the layout's size
  R* key_sums;    // [units, token_width], where keys are summed up, too

  SlotSums(Workspace& space, const PoolLayout<R>& n, std::int64_t dim, bool of_keys)
      : PoolScratch<R>(space, n),
        directions(space.take<R>(n.groups * dim * pool_group)),
        sums(space.take<R>(n.size())),
        key_sums(space.take<R>(of_keys ? n.units * n.token_width : 0)) {}
};

/// The bytes of that for any item: the first one has as many slots as any.
template <class R>
std::size_t slot_sums_bytes(const SoftmaxSizes& sizes, const Cut& cut, bool of_keys) {
  Workspace count;
  const auto n = slots_layout<R>(sizes, std::min(cut.rows, sizes.length));
  SlotSums<R>(count, n, sizes.head_dim, of_keys);
  return count.used();
}

/// One item. `of_keys`, if not null, is the same softmax with the keys in place of the values.
template <class T, int Bytes>
ATTNBENCH_INLINE void sum_slots(const ForwardCall<T>& call, const ForwardCall<T>* of_keys,
                                void* scratch, const ForwardItem& item) {
  using R = Compute<T>;
  const auto& [sizes, in, cut, partial, bias] = call;
  const auto n = slots_layout<R>(sizes, slots_of(sizes, cut, item));
  Workspace space(scratch, slot_sums_bytes<R>(sizes, cut, of_keys != nullptr));
  const SlotSums<R> s(space, n, sizes.head_dim, of_keys != nullptr);
  const std::int64_t kv = item.h / (sizes.heads / sizes.kv_heads);
  const std::uint8_t* const mask =
      in.key_mask == nullptr ? nullptr : in.key_mask + item.b * in.mask_stride;
  turn_rows<T, Bytes>(n, in.q, nullptr, {item.b, item.h, item.first_query(cut), 0}, sizes.head_dim,
                      static_cast<R>(sizes.scale * log2_of_e), s.logits, s.directions);
  const PoolSums<R> sums = n.sums(s.sums);
  clear(n, sums);
  if (of_keys != nullptr) std::fill_n(s.key_sums, n.units * n.token_width, R{0});
  const Range tiles = tiles_of(sizes, cut, item, pool_tokens);
  const std::int64_t end = std::min(tiles.end * pool_tokens, sizes.key_length);
  for (std::int64_t t = tiles.begin * pool_tokens; t < end; t += pool_tokens) {
    const BlockPlace place{item.b, kv, t, std::min(pool_tokens, end - t)};
    SpreadPrefetch prefetch(place.tokens);
    if (const std::int64_t next = t + place.tokens; next < end) {
      prefetch.add(in.k, item.b, kv, next, sizes.head_dim);
      prefetch.add(in.v, item.b, kv, next, sizes.value_dim);
    }
    prefetch.spread(2 * FetchingProduct<R>::tiles(n.units, n.width));
    const Operand<R> k =
        open_units<T, Bytes>(in.k, mask, place, sizes.head_dim, s.logits, n.token_width);
    const Operand<R> v =
        open_rows<T, Bytes>(in.v, mask, place, sizes.value_dim, R{1}, R{0}, s.rows, n.width);
    for (std::int64_t i = 0; mask != nullptr && i < place.tokens; ++i) {
      s.less[i] = mask[t + i] != 0 ? R{0} : std::numeric_limits<R>::infinity();
    }
    sum_block<R, Bytes>(n, {k, sizes.head_dim, s.directions}, mask == nullptr ? nullptr : s.less, v,
                        place.tokens, sums, s, prefetch);
    if (of_keys == nullptr) continue;
    // The slots are one group: its weights and what sums shrink by are still there.
    FetchingProduct<R>{n.units,    n.token_width, place.tokens, {s.weights, 1, pool_group},
                       k.data,     k.stride,      s.key_sums,   n.token_width,
                       s.key_sums, n.token_width, s.decay}
        .template run<Bytes>(prefetch);
  }
  finish(call, item, {sums.sum, sums.maximum, sums.normaliser, n.width});
  if (of_keys == nullptr) return;
  finish(*of_keys, item, {s.key_sums, sums.maximum, sums.normaliser, n.token_width});
}

}  // namespace attnbench::kernels
