// What one worker of the tiled softmax's forward pass holds, and keys and values as it takes them:
// where they lie, or packed.
#pragma once

#include "attention/kernels/cpu/softmax/forward.hpp"
#include "attention/kernels/cpu/softmax/items.hpp"

namespace attnbench::kernels {

constexpr std::int64_t key_tile = 64;
constexpr std::int64_t band_tile = 192;  // where queries see a narrow band of keys

/// Whether a panel sees so few keys that it takes them all before the next one begins.
inline bool narrow(const SoftmaxSizes& sizes) {
  return sizes.left + sizes.right + panel <= 2 * band_tile && sizes.length > few_queries;
}

/// While it works on an item.
template <class R>
struct ForwardScratch {
  std::int64_t tile, room;  // keys of one tile, and that are packed at once
  std::int64_t queries;     // that are held at once
  std::int64_t dim, value_dim;
  R *q, *out, *greatest, *sum;  // of the item's queries
  R *keys, *values;             // where they cannot be used as they lie
  R *scores, *decay;            // of one panel

  ForwardScratch(Workspace& space, const SoftmaxSizes& sizes, const Cut& cut)
      : tile(narrow(sizes) ? band_tile : key_tile),
        room(narrow(sizes) ? cut.room + 2 * band_tile : key_tile),
        queries(narrow(sizes) ? panel : cut.room),
        dim(padded(sizes.head_dim, sizeof(R))),
        value_dim(padded(sizes.value_dim, sizeof(R))),
        q(space.take<R>(queries * dim)),
        out(space.take<R>(queries * value_dim)),
        greatest(space.take<R>(queries)),
        sum(space.take<R>(queries)),
        keys(space.take<R>(room * dim)),
        values(space.take<R>(room * value_dim)),
        scores(space.take<R>(tile * panel)),
        decay(space.take<R>(panel)) {}
};

template <class R>
std::size_t forward_scratch_bytes(const SoftmaxSizes& sizes, const Cut& cut) {
  Workspace count;
  ForwardScratch<R>(count, sizes, cut);
  return count.used();
}

/// `tokens` rows from `from` on, followed by whatever up to `whole` rows: as they lie, where so
/// many are there, or packed into `scratch`.
template <class T>
ATTNBENCH_INLINE const Compute<T>* rows_in_vectors(const T* from, std::int64_t row_stride,
                                                   std::int64_t tokens, std::int64_t whole,
                                                   std::int64_t there, std::int64_t width,
                                                   Compute<T>* scratch, std::int64_t stride) {
  if constexpr (std::is_same_v<T, Compute<T>>) {
    if (whole <= there && lies_packed(from, row_stride, width)) return from;
  }
  pack(from, row_stride, tokens, width, scratch, stride);
  std::fill_n(scratch + tokens * stride, (whole - tokens) * stride, Compute<T>{0});
  return scratch;
}

/// Keys and values of `count` tokens from s0 on, followed by whatever up to `whole` rows.
template <class T>
ATTNBENCH_INLINE KeyTile<Compute<T>> tile_of(const ForwardCall<T>& call, const ForwardItem& item,
                                             const ForwardScratch<Compute<T>>& s, std::int64_t s0,
                                             std::int64_t count, std::int64_t whole) {
  const SoftmaxSizes& sizes = call.sizes;
  const std::int64_t kv = item.h / (sizes.heads / sizes.kv_heads);
  const std::int64_t there = sizes.key_length - s0;
  return {s0,
          count,
          rows_in_vectors(call.in.k.at(item.b, kv, s0), call.in.k.row_stride, count, whole, there,
                          sizes.head_dim, s.keys, s.dim),
          rows_in_vectors(call.in.v.at(item.b, kv, s0), call.in.v.row_stride, count, whole, there,
                          sizes.value_dim, s.values, s.value_dim),
          s.dim,
          s.value_dim};
}

}  // namespace attnbench::kernels
