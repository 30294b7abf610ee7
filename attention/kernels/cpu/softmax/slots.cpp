#include "attention/kernels/cpu/softmax/slots.hpp"

#include "attention/kernels/cpu/pool/whole_pool_weights.hpp"
#include "attention/kernels/cpu/softmax/few.hpp"
#include "attention/kernels/cpu/softmax/slots_sum.hpp"

namespace attnbench::kernels {
namespace {

/// Few keys are latents that queries read; few queries are latents that sum keys up.
bool keys_are_slots(const SoftmaxSizes& sizes) { return sizes.key_length <= most_slots; }

/// What one worker holds while it reads.
template <class R>
struct SlotReading : PoolReading<R> {
  R* directions;  // [groups, head_dim, pool_group]: the slots transposed, times scale and log2(e)
  R* values;      // [keys, width], where they cannot be read as they lie
  R* fence;  // [groups, pool_group]: 0, and -infinity past the last slot and where it is hidden

  SlotReading(Workspace& space, const PoolLayout<R>& n, std::int64_t dim)
      : PoolReading<R>(space, n),
        directions(space.take<R>(n.groups * dim * pool_group)),
        values(space.take<R>(n.latents * n.width)),
        fence(space.take<R>(n.groups * pool_group)) {}
};

template <class R>
std::size_t reading_bytes(const SoftmaxSizes& sizes) {
  Workspace count;
  SlotReading<R>(count, slots_layout<R>(sizes, sizes.key_length), sizes.head_dim);
  return count.used();
}

/// Queries in blocks read the keys that are slots.
template <class T, int Bytes>
ATTNBENCH_INLINE void read_slots(const ForwardCall<T>& call, void* scratch,
                                 const ForwardItem& item) {
  using R = Compute<T>;
  const auto& [sizes, in, cut, partial, bias] = call;
  const auto n = slots_layout<R>(sizes, sizes.key_length);
  Workspace space(scratch, reading_bytes<R>(sizes));
  const SlotReading<R> s(space, n, sizes.head_dim);
  const std::uint8_t* const mask =
      in.key_mask == nullptr ? nullptr : in.key_mask + item.b * in.mask_stride;
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
    SpreadPrefetch prefetch(place.tokens);
    prefetch.add(in.out, item.b, item.h, t, sizes.value_dim);
    if (const std::int64_t next = t + place.tokens; next < end) {
      prefetch.add(in.q, item.b, item.h, next, sizes.head_dim);
    }
    prefetch.spread(n.groups * 2 * FetchingProduct<R>::tiles(whole_units(place.tokens), n.width));
    const Operand<R> q =
        open_units<T, Bytes>(in.q, nullptr, place, sizes.head_dim, s.logits, n.token_width);
    weigh_queries<R, Bytes>(n, {q, sizes.head_dim, s.directions}, s.fence, place.tokens, s,
                            prefetch);
    read_averages<T, Bytes>(n, nullptr, averages, s, in.out, place, prefetch);
    if (in.lse == nullptr) continue;
    R* const lse = in.lse + (item.b * sizes.heads + item.h) * sizes.length + t;
    for (std::int64_t i = 0; i < place.tokens; ++i) {
      lse[i] = s.factors[i] == 0 ? std::numeric_limits<R>::infinity()
                                 : (s.tops[i] - std::log2(s.factors[i])) * static_cast<R>(ln_of_2);
    }
  }
}

template <class T, int Bytes>
ATTNBENCH_INLINE void slots_item(const ForwardCall<T>& call, void* scratch,
                                 const ForwardItem& item) {
  if (keys_are_slots(call.sizes)) {
    read_slots<T, Bytes>(call, scratch, item);
  } else {
    sum_slots<T, Bytes>(call, nullptr, scratch, item);
  }
}

template <class T>
void slots_baseline(const ForwardCall<T>& call, void* scratch, const ForwardItem& item) {
  slots_item<T, baseline_bytes>(call, scratch, item);
}
template <class T>
ATTNBENCH_AVX2 void slots_avx2(const ForwardCall<T>& call, void* scratch, const ForwardItem& item) {
  slots_item<T, avx2_bytes>(call, scratch, item);
}
template <class T>
ATTNBENCH_AVX512 void slots_avx512(const ForwardCall<T>& call, void* scratch,
                                   const ForwardItem& item) {
  slots_item<T, avx512_bytes>(call, scratch, item);
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
  using R = Compute<T>;
  const bool reads = keys_are_slots(sizes);
  const Cut cut = reads ? cut_of(sizes, pool_tokens, 8) : slots_cut(sizes);
  return {cut, reads ? reading_bytes<R>(sizes) : slot_sums_bytes<R>(sizes, cut, false),
          pick(slots_baseline<T>, slots_avx2<T>, slots_avx512<T>)};
}

#define ATTNBENCH_INSTANTIATE(T) \
  template ForwardEngine<T> softmax_forward_slots<T>(const SoftmaxSizes&);
ATTNBENCH_FOR_TYPES(ATTNBENCH_INSTANTIATE)

}  // namespace attnbench::kernels
