// How the forward pass is cut into items, and who combines them.
//
// An item is some panels of queries of one head against a part of the keys: all of them, but where
// there are fewer items than many threads want. How work is cut depends on the sizes alone, so the
// results are the same bits for any number of threads.
#include <cmath>

#include "attention/kernels/softmax.hpp"
#include "attention/kernels/softmax_few.hpp"
#include "attention/kernels/softmax_forward.hpp"

namespace attnbench::kernels {
namespace {

constexpr std::int64_t key_tile = 64;

/// How the work is cut.
struct Cut {
  std::int64_t rows;    ///< queries of one item
  std::int64_t blocks;  ///< of queries, in each head
  std::int64_t parts;   ///< of the keys that a block sees
  bool few;
};

Cut cut_of(const SoftmaxSizes& sizes) {
  constexpr std::int64_t wanted_items = 16;  // of queries, which share the reading of keys
  constexpr std::int64_t wanted_parts = 64;  // where keys must be split, for as many threads
  constexpr std::int64_t least_keys = 512;   // of one part
  const std::int64_t heads = sizes.batch * sizes.heads;
  Cut cut{4 * panel, 0, 1, sizes.length <= few_queries};
  const auto blocks = [&] { return (sizes.length + cut.rows - 1) / cut.rows; };
  while (cut.rows > panel && heads * blocks() < wanted_items) cut.rows /= 2;
  cut.blocks = blocks();
  if (heads * cut.blocks < wanted_items) {
    const std::int64_t reach = std::min(SoftmaxSizes::far, sizes.left) +
                               std::min(SoftmaxSizes::far, sizes.right) + cut.rows;
    const std::int64_t seen = std::min(sizes.key_length, reach);
    cut.parts = std::clamp<std::int64_t>(wanted_parts / (heads * cut.blocks), 1,
                                         std::max<std::int64_t>(1, seen / least_keys));
  }
  return cut;
}

/// What items leave for `combine` where the keys are in parts: [items, rows] each.
template <class R>
struct Partial {
  R *out, *greatest, *sum;

  Partial(Workspace& space, const Cut& cut, std::int64_t heads, std::int64_t value_dim) {
    const std::int64_t rows = cut.parts == 1 ? 0 : heads * cut.blocks * cut.parts * cut.rows;
    out = space.take<R>(rows * value_dim);
    greatest = space.take<R>(rows);
    sum = space.take<R>(rows);
  }
};

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
        q(space.take<R>(cut.rows * dim)),
        out(space.take<R>(cut.rows * value_dim)),
        greatest(space.take<R>(cut.rows)),
        sum(space.take<R>(cut.rows)),
        keys(space.take<R>(key_tile * dim)),
        values(space.take<R>(key_tile * value_dim)),
        scores(space.take<R>(key_tile * panel)),
        fade(space.take<R>(panel)) {}
};

template <class T>
struct Call {
  const SoftmaxSizes& sizes;
  const SoftmaxArguments<T>& in;
  Cut cut;
  Partial<Compute<T>> partial;
  const Compute<T>* bias;  // a turned table, or null
};

struct Item {
  std::int64_t b, h, block, part;
};

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

/// Outputs and logarithms of the sums, from what has been summed up.
template <class T>
ATTNBENCH_INLINE void finish_row(const Call<T>& call, const Item& item, std::int64_t t,
                                 const Compute<T>* sums, Compute<T> greatest, Compute<T> sum) {
  using R = Compute<T>;
  const bool blind = sum == 0;
  const R factor = blind ? R{0} : 1 / sum;
  T* const out = call.in.out.at(item.b, item.h, t);
  for (std::int64_t d = 0; d < call.sizes.value_dim; ++d) narrow(factor * sums[d], out[d]);
  if (call.in.lse == nullptr) return;
  call.in.lse[(item.b * call.sizes.heads + item.h) * call.sizes.length + t] =
      blind ? std::numeric_limits<R>::infinity()
            : (greatest + std::log2(sum)) * static_cast<R>(ln_of_2);
}

/// Where the partial sums of an item begin, in rows.
template <class T>
std::int64_t partial_row(const Call<T>& call, const Item& item) {
  const std::int64_t block = (item.b * call.sizes.heads + item.h) * call.cut.blocks + item.block;
  return (block * call.cut.parts + item.part) * call.cut.rows;
}

template <class T>
ATTNBENCH_INLINE void finish(const Call<T>& call, const Item& item, const Scratch<Compute<T>>& s,
                             std::int64_t t0, std::int64_t rows) {
  if (call.cut.parts == 1) {
    for (std::int64_t i = 0; i < rows; ++i) {
      finish_row(call, item, t0 + i, s.out + i * s.value_dim, s.greatest[i], s.sum[i]);
    }
    return;
  }
  const std::int64_t row = partial_row(call, item);
  std::copy_n(s.out, rows * s.value_dim, call.partial.out + row * s.value_dim);
  std::copy_n(s.greatest, rows, call.partial.greatest + row);
  std::copy_n(s.sum, rows, call.partial.sum + row);
}

/// Adds the parts of one block of queries.
template <class T>
void combine(const Call<T>& call, const Item& item) {
  using R = Compute<T>;
  const std::int64_t t0 = item.block * call.cut.rows;
  const std::int64_t rows = std::min(call.cut.rows, call.sizes.length - t0);
  const std::int64_t value_dim = padded(call.sizes.value_dim, sizeof(R));
  const std::int64_t first = partial_row(call, item);
  for (std::int64_t i = 0; i < rows; ++i) {
    R greatest = -std::numeric_limits<R>::infinity();
    for (std::int64_t part = 0; part < call.cut.parts; ++part) {
      greatest = std::max(greatest, call.partial.greatest[first + part * call.cut.rows + i]);
    }
    R* const total = call.partial.out + (first + i) * value_dim;
    R sum = 0;
    for (std::int64_t part = 0; part < call.cut.parts; ++part) {
      const std::int64_t row = first + part * call.cut.rows + i;
      const R seen = call.partial.sum[row];
      const R factor = seen == 0 ? R{0} : std::exp2(call.partial.greatest[row] - greatest);
      const R* const out = call.partial.out + row * value_dim;
      sum += factor * seen;
      for (std::int64_t d = 0; d < value_dim; ++d) {
        total[d] = (part == 0 ? R{0} : total[d]) + factor * out[d];
      }
    }
    finish_row(call, item, t0 + i, total, greatest, sum);
  }
}

template <class T, int Bytes>
ATTNBENCH_INLINE void forward_item(const Call<T>& call, const Scratch<Compute<T>>& s,
                                   const Item& item) {
  using R = Compute<T>;
  const SoftmaxSizes& sizes = call.sizes;
  const std::int64_t t0 = item.block * call.cut.rows;
  const std::int64_t rows = std::min(call.cut.rows, sizes.length - t0);
  const std::int64_t kv = item.h / (sizes.heads / sizes.kv_heads);
  const std::uint8_t* const mask =
      call.in.key_mask == nullptr ? nullptr : call.in.key_mask + item.b * call.in.mask_stride;
  const auto factor = static_cast<R>(sizes.scale * log2_of_e);
  const T* const q = call.in.q.at(item.b, item.h, t0);
  if (call.cut.few) {
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

  // Tiles begin at multiples of their size, wherever the first key is.
  const Range seen = seen_keys(sizes, t0, rows);
  const std::int64_t first = seen.begin / key_tile;
  const std::int64_t tiles = seen.empty() ? 0 : (seen.end + key_tile - 1) / key_tile - first;
  const std::int64_t begin = first + tiles * item.part / call.cut.parts;
  const std::int64_t end = first + tiles * (item.part + 1) / call.cut.parts;
  for (std::int64_t s0 = begin * key_tile; s0 < end * key_tile; s0 += key_tile) {
    const std::int64_t keys = std::min(key_tile, sizes.key_length - s0);
    const KeyTile<R> tile{s0,
                          keys,
                          rows_in_vectors(call.in.k.at(item.b, kv, s0), call.in.k.row_stride, keys,
                                          sizes.head_dim, s.keys, s.dim),
                          rows_in_vectors(call.in.v.at(item.b, kv, s0), call.in.v.row_stride, keys,
                                          sizes.value_dim, s.values, s.value_dim),
                          s.dim,
                          s.value_dim};
    for (std::int64_t i = 0; i < rows; i += panel) {
      const QueryPanel<R> p{t0 + i,          std::min(panel, rows - i),
                            s.q + i * s.dim, s.out + i * s.value_dim,
                            s.greatest + i,  s.sum + i};
      if (call.cut.few) {
        take_tile_few<R, Bytes>(sizes, mask, call.bias, p, tile, s.value_dim, s.scores, key_tile);
      } else {
        take_tile<R, Bytes>(sizes, mask, call.bias, p, tile, s.value_dim, s.scores, s.fade);
      }
    }
  }
  finish(call, item, s, t0, rows);
}

template <class T>
void forward_baseline(const Call<T>& call, const Scratch<Compute<T>>& s, const Item& item) {
  forward_item<T, 16>(call, s, item);
}
template <class T>
ATTNBENCH_AVX2 void forward_avx2(const Call<T>& call, const Scratch<Compute<T>>& s,
                                 const Item& item) {
  forward_item<T, 32>(call, s, item);
}
template <class T>
ATTNBENCH_AVX512 void forward_avx512(const Call<T>& call, const Scratch<Compute<T>>& s,
                                     const Item& item) {
  forward_item<T, 64>(call, s, item);
}

template <class R>
std::size_t scratch_bytes(const SoftmaxSizes& sizes, const Cut& cut) {
  Workspace count;
  Scratch<R>(count, sizes, cut);
  return count.used();
}

}  // namespace

template <class T>
std::size_t softmax_forward_bytes(const SoftmaxSizes& sizes, int threads) {
  using R = Compute<T>;
  const Cut cut = cut_of(sizes);
  Workspace count;
  Partial<R>(count, cut, sizes.batch * sizes.heads, padded(sizes.value_dim, sizeof(R)));
  count.take<R>(BiasRange(sizes).size());
  return count.used() + static_cast<std::size_t>(threads) * scratch_bytes<R>(sizes, cut);
}

template <class T>
void softmax_forward(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments,
                     ThreadTeam& team, void* workspace, std::size_t workspace_bytes) {
  using R = Compute<T>;
  if (sizes.length == 0) return;
  Workspace space(workspace, workspace_bytes);
  const Cut cut = cut_of(sizes);
  const std::int64_t heads = sizes.batch * sizes.heads;
  const Partial<R> partial(space, cut, heads, padded(sizes.value_dim, sizeof(R)));
  const BiasRange range(sizes);
  R* const table = space.take<R>(range.size());
  const Call<T> call{sizes, arguments, cut, partial,
                     bias_table(range, arguments.bias, true, table)};
  const auto each = static_cast<std::int64_t>(scratch_bytes<R>(sizes, cut));
  std::byte* const scratch = space.take<std::byte>(each * team.size());
  const auto work = pick(forward_baseline<T>, forward_avx2<T>, forward_avx512<T>);
  const auto item_of = [&](std::int64_t index, std::int64_t parts) {
    // The last queries see the most keys: they go first.
    const std::int64_t head = index / parts % heads;
    return Item{head / sizes.heads, head % sizes.heads, cut.blocks - 1 - index / parts / heads,
                index % parts};
  };
  share(team, cut.blocks * heads * cut.parts, [&](int worker, std::int64_t index) {
    Workspace own(scratch + worker * each, static_cast<std::size_t>(each));
    work(call, Scratch<R>(own, sizes, cut), item_of(index, cut.parts));
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
