#include "attention/kernels/cpu/softmax/softmax_slots.hpp"

#include "attention/kernels/cpu/pool/whole_pool_sums.hpp"
#include "attention/kernels/cpu/pool/whole_pool_weights.hpp"
#include "attention/kernels/cpu/softmax/softmax_few.hpp"

namespace attnbench::kernels {
namespace {

/// Few keys are latents that queries read; few queries are latents that sum keys up.
bool keys_are_slots(const SoftmaxSizes& sizes) { return sizes.key_length <= most_slots; }

/// The pool whose latents are `count` slots.
WholePoolSizes pool_of(const SoftmaxSizes& sizes, std::int64_t count) {
  WholePoolSizes pool;
  pool.batch = sizes.batch;
  pool.heads = sizes.heads;
  pool.length = sizes.length;
  pool.key_length = sizes.key_length;
  pool.latents = count;
  pool.value_dim = sizes.value_dim;
  pool.directions.dim = sizes.head_dim;
  return pool;
}

/// What one worker holds while it works on an item.
template <class R>
struct Scratch : PoolReading<R> {
  R* directions;  // [groups, head_dim, pool_group]: the slots turned, times scale and log2(e)
  R* values;      // [keys, width], where they are slots that cannot be read as they lie
  R* fence;  // [groups, pool_group]: 0, and -infinity past the last slot and where it is hidden
  R* sums;   // of the layout's size, where queries are slots

  Scratch(Workspace& space, const PoolLayout<R>& n, std::int64_t dim, bool reads)
      : PoolReading<R>(space, n),
        directions(space.take<R>(n.groups * dim * pool_group)),
        values(space.take<R>(reads ? n.latents * n.width : 0)),
        fence(space.take<R>(n.groups * pool_group)),
        sums(space.take<R>(reads ? 0 : n.size())) {}
};

/// Queries in blocks read the keys that are slots.
template <class T, int Bytes>
ATTNBENCH_INLINE void read_item(const ForwardCall<T>& call, const PoolLayout<Compute<T>>& n,
                                const Scratch<Compute<T>>& s, const ForwardItem& item,
                                const std::uint8_t* mask) {
  using R = Compute<T>;
  const auto& [sizes, in, cut, partial, bias] = call;
  const std::int64_t kv = item.h / (sizes.heads / sizes.kv_heads);
  turn_rows<T, Bytes>(n, in.k, mask, {item.b, kv, 0, 0}, sizes.head_dim,
                      static_cast<R>(sizes.scale * log2_of_e), s.logits, s.directions);
  std::fill_n(s.fence, n.groups * pool_group, -std::numeric_limits<R>::infinity());
  for (std::int64_t l = 0; l < n.latents; ++l) {
    if (mask == nullptr || mask[l] != 0) s.fence[l] = 0;
  }
  const R* averages = s.values;
  if (const Operand<R> v = open_rows<T, Bytes>(in.v, mask, {item.b, kv, 0, n.latents},
                                               sizes.value_dim, R{1}, R{0}, s.values, n.width);
      v.stride == n.width) {
    averages = v.data;
  } else {
    for (std::int64_t l = 0; l < n.latents; ++l) {
      std::copy_n(v.data + l * v.stride, n.width, s.values + l * n.width);
    }
  }
  const std::int64_t begin = item.first_query(cut);
  const std::int64_t end = std::min(begin + cut.rows, sizes.length);
  for (std::int64_t t = begin; t < end; t += pool_tokens) {
    const BlockPlace place{item.b, item.h, t, std::min(pool_tokens, end - t)};
    SpreadAhead ahead(place.tokens);
    ahead.add(in.out, item.b, item.h, t, sizes.value_dim);
    if (const std::int64_t next = t + place.tokens; next < end) {
      ahead.add(in.q, item.b, item.h, next, sizes.head_dim);
    }
    ahead.spread(n.groups * 2 * FetchingProduct<R>::tiles(whole_units(place.tokens), n.width));
    const Operand<R> q =
        open_units<T, Bytes>(in.q, nullptr, place, sizes.head_dim, s.logits, n.token_width);
    weigh_queries<R, Bytes>(n, {q, sizes.head_dim, s.directions}, s.fence, place.tokens, s, ahead);
    read_averages<T, Bytes>(n, nullptr, averages, s, in.out, place, ahead);
    if (in.lse == nullptr) continue;
    R* const lse = in.lse + (item.b * sizes.heads + item.h) * sizes.length + t;
    for (std::int64_t i = 0; i < place.tokens; ++i) {
      lse[i] = s.factors[i] == 0 ? std::numeric_limits<R>::infinity()
                                 : (s.tops[i] - std::log2(s.factors[i])) * static_cast<R>(ln_of_2);
    }
  }
}

/// Queries that are slots sum a part of the keys up.
template <class T, int Bytes>
ATTNBENCH_INLINE void sum_item(const ForwardCall<T>& call, const PoolLayout<Compute<T>>& n,
                               const Scratch<Compute<T>>& s, const ForwardItem& item,
                               const std::uint8_t* mask) {
  using R = Compute<T>;
  const auto& [sizes, in, cut, partial, bias] = call;
  const std::int64_t kv = item.h / (sizes.heads / sizes.kv_heads);
  turn_rows<T, Bytes>(n, in.q, nullptr, {item.b, item.h, item.first_query(cut), 0}, sizes.head_dim,
                      static_cast<R>(sizes.scale * log2_of_e), s.logits, s.directions);
  const PoolSums<R> sums = n.sums(s.sums);
  clear(n, sums);
  const Range tiles = tiles_of(sizes, cut, item, pool_tokens);
  const std::int64_t end = std::min(tiles.end * pool_tokens, sizes.key_length);
  for (std::int64_t t = tiles.begin * pool_tokens; t < end; t += pool_tokens) {
    const BlockPlace place{item.b, kv, t, std::min(pool_tokens, end - t)};
    SpreadAhead ahead(place.tokens);
    if (const std::int64_t next = t + place.tokens; next < end) {
      ahead.add(in.k, item.b, kv, next, sizes.head_dim);
      ahead.add(in.v, item.b, kv, next, sizes.value_dim);
    }
    ahead.spread(2 * FetchingProduct<R>::tiles(n.units, n.width));
    const Operand<R> k =
        open_units<T, Bytes>(in.k, mask, place, sizes.head_dim, s.logits, n.token_width);
    const Operand<R> v =
        open_rows<T, Bytes>(in.v, mask, place, sizes.value_dim, R{1}, R{0}, s.rows, n.width);
    for (std::int64_t i = 0; mask != nullptr && i < place.tokens; ++i) {
      s.less[i] = mask[t + i] != 0 ? R{0} : std::numeric_limits<R>::infinity();
    }
    sum_block<R, Bytes>(n, {k, sizes.head_dim, s.directions}, mask == nullptr ? nullptr : s.less, v,
                        place.tokens, sums, s, ahead);
  }
  finish(call, item, {sums.sum, sums.maximum, sums.normaliser, n.width});
}

/// The slots of an item as latents.
template <class R>
PoolLayout<R> layout_of(const SoftmaxSizes& sizes, const Cut& cut, std::int64_t first) {
  return PoolLayout<R>(pool_of(
      sizes, keys_are_slots(sizes) ? sizes.key_length : std::min(cut.rows, sizes.length - first)));
}

/// The first item has as many slots as any.
template <class R>
std::size_t scratch_bytes(const SoftmaxSizes& sizes, const Cut& cut) {
  Workspace count;
  Scratch<R>(count, layout_of<R>(sizes, cut, 0), sizes.head_dim, keys_are_slots(sizes));
  return count.used();
}

template <class T, int Bytes>
ATTNBENCH_INLINE void slots_item(const ForwardCall<T>& call, void* scratch,
                                 const ForwardItem& item) {
  using R = Compute<T>;
  const SoftmaxSizes& sizes = call.sizes;
  const bool reads = keys_are_slots(sizes);
  const auto n = layout_of<R>(sizes, call.cut, item.first_query(call.cut));
  Workspace space(scratch, scratch_bytes<R>(sizes, call.cut));
  const Scratch<R> s(space, n, sizes.head_dim, reads);
  const std::uint8_t* const mask =
      call.in.key_mask == nullptr ? nullptr : call.in.key_mask + item.b * call.in.mask_stride;
  if (reads) {
    read_item<T, Bytes>(call, n, s, item, mask);
  } else {
    sum_item<T, Bytes>(call, n, s, item, mask);
  }
}

template <class T>
void slots_baseline(const ForwardCall<T>& call, void* scratch, const ForwardItem& item) {
  slots_item<T, 16>(call, scratch, item);
}
template <class T>
ATTNBENCH_AVX2 void slots_avx2(const ForwardCall<T>& call, void* scratch, const ForwardItem& item) {
  slots_item<T, 32>(call, scratch, item);
}
template <class T>
ATTNBENCH_AVX512 void slots_avx512(const ForwardCall<T>& call, void* scratch,
                                   const ForwardItem& item) {
  slots_item<T, 64>(call, scratch, item);
}

}  // namespace

bool slots_take(const SoftmaxSizes& sizes) {
  const bool all =
      sizes.first_key(sizes.length - 1) == 0 && sizes.last_key(0) == sizes.key_length - 1;
  return all && sizes.bias_reach < 0 && sizes.length > few_queries && sizes.key_length > 0 &&
         (sizes.length <= most_slots || keys_are_slots(sizes));
}

template <class T>
ForwardEngine<T> softmax_forward_slots(const SoftmaxSizes& sizes) {
  // Those of a short side are one group: more would want their sums in the second cache.
  const Cut cut = cut_of(sizes, pool_tokens, keys_are_slots(sizes) ? 8 : 1);
  return {cut, scratch_bytes<Compute<T>>(sizes, cut),
          pick(slots_baseline<T>, slots_avx2<T>, slots_avx512<T>)};
}

#define ATTNBENCH_INSTANTIATE(T) \
  template ForwardEngine<T> softmax_forward_slots<T>(const SoftmaxSizes&);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)
ATTNBENCH_INSTANTIATE(BFloat16)

}  // namespace attnbench::kernels
