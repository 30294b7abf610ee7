// How the forward pass of the tiled softmax is cut into items, and how what they leave is combined.
//
// An item is some queries of one head against a part of the keys: all of them, but where there are
// fewer items than many threads want. How work is cut depends on the sizes alone, so the results
// are the same bits for any number of threads.
#pragma once

#include <cmath>

#include "attention/kernels/cpu/softmax/tile.hpp"

namespace attnbench::kernels {

/// How the work is cut.
struct Cut {
  std::int64_t rows;    ///< queries of one item
  std::int64_t blocks;  ///< of queries, in each head
  std::int64_t parts;   ///< of the keys that a block sees
  std::int64_t room;    ///< queries that a worker has memory for, however many items there are
};

/// With items of `unit` queries, or twice as many as often as there are enough of them, up to
/// `most` times.
inline Cut cut_of(const SoftmaxSizes& sizes, std::int64_t unit, std::int64_t most = 4) {
  constexpr std::int64_t wanted_items = 16;  // of queries, which share the reading of keys
  constexpr std::int64_t wanted_parts = 64;  // where keys must be split, for as many threads
  constexpr std::int64_t least_keys = 512;   // of one part
  const std::int64_t heads = sizes.batch * sizes.heads;
  Cut cut{most * unit, 0, 1, std::min(most * unit, rounded(sizes.length, unit))};
  const auto blocks = [&] { return (sizes.length + cut.rows - 1) / cut.rows; };
  while (cut.rows > unit && heads * blocks() < wanted_items) cut.rows /= 2;
  cut.blocks = blocks();
  const std::int64_t items = heads * cut.blocks;
  if (items > 0 && items < wanted_items) {
    const std::int64_t reach = std::min(SoftmaxSizes::far, sizes.left) +
                               std::min(SoftmaxSizes::far, sizes.right) + cut.rows;
    const std::int64_t seen = std::min(sizes.key_length, reach);
    cut.parts = std::clamp<std::int64_t>(wanted_parts / items, 1,
                                         std::max<std::int64_t>(1, seen / least_keys));
  }
  return cut;
}

/// What items leave for `combine` where the keys are in parts: [items, rows] each.
template <class R>
struct PartialSums {
  std::int64_t value_dim;  ///< padded
  R *out, *greatest, *sum;

  PartialSums(Workspace& space, const SoftmaxSizes& sizes, const Cut& cut)
      : value_dim(padded(sizes.value_dim, sizeof(R))) {
    const std::int64_t heads = sizes.batch * sizes.heads;
    const std::int64_t rows = cut.parts == 1 ? 0 : heads * cut.blocks * cut.parts * cut.rows;
    out = space.take<R>(rows * value_dim);
    greatest = space.take<R>(rows);
    sum = space.take<R>(rows);
  }
};

/// What all items of one call share.
template <class T>
struct ForwardCall {
  const SoftmaxSizes& sizes;
  const SoftmaxArguments<T>& in;
  Cut cut;
  PartialSums<Compute<T>> partial;
  const Compute<T>* bias;  ///< a transposed table, or null
};

struct ForwardItem {
  std::int64_t b, h, block, part;

  std::int64_t first_query(const Cut& cut) const { return block * cut.rows; }
};

/// The tiles of `size` keys that an item takes: [begin, end), counted from the first key on, for
/// tiles begin at multiples of their size wherever the item's first key is.
inline Range tiles_of(const SoftmaxSizes& sizes, const Cut& cut, const ForwardItem& item,
                      std::int64_t size) {
  const std::int64_t t0 = item.first_query(cut);
  const Range seen = seen_keys(sizes, t0, std::min(cut.rows, sizes.length - t0));
  const std::int64_t first = seen.begin / size;
  const std::int64_t tiles = seen.empty() ? 0 : (seen.end + size - 1) / size - first;
  return {first + tiles * item.part / cut.parts, first + tiles * (item.part + 1) / cut.parts};
}

/// The logarithm of a query's sum, infinity where it saw no key.
template <class T>
ATTNBENCH_INLINE void write_lse(const ForwardCall<T>& call, const ForwardItem& item, std::int64_t t,
                                Compute<T> greatest, Compute<T> sum) {
  using R = Compute<T>;
  if (call.in.lse == nullptr) return;
  call.in.lse[(item.b * call.sizes.heads + item.h) * call.sizes.length + t] =
      sum == 0 ? std::numeric_limits<R>::infinity()
               : (greatest + std::log2(sum)) * static_cast<R>(ln_of_2);
}

/// Outputs and logarithms of the sums, from what has been summed up.
template <class T>
ATTNBENCH_INLINE void finish_row(const ForwardCall<T>& call, const ForwardItem& item,
                                 std::int64_t t, const Compute<T>* sums, Compute<T> greatest,
                                 Compute<T> sum) {
  using R = Compute<T>;
  const R factor = 1 / sum;
  T* const out = call.in.out.at(item.b, item.h, t);
  if (sum == 0) {
    std::fill_n(out, call.sizes.value_dim, T{});  // nothing has been summed up
  } else {
    for (std::int64_t d = 0; d < call.sizes.value_dim; ++d) narrow(factor * sums[d], out[d]);
  }
  write_lse(call, item, t, greatest, sum);
}

/// Where the partial sums of an item begin, in rows.
template <class T>
std::int64_t partial_row(const ForwardCall<T>& call, const ForwardItem& item) {
  const std::int64_t block = (item.b * call.sizes.heads + item.h) * call.cut.blocks + item.block;
  return (block * call.cut.parts + item.part) * call.cut.rows;
}

/// What an item's queries have summed up: out [rows, value_dim], greatest and sum [rows].
template <class R>
struct QuerySums {
  const R *out, *greatest, *sum;
  std::int64_t value_dim;
};

template <class T>
ATTNBENCH_INLINE void finish(const ForwardCall<T>& call, const ForwardItem& item,
                             const QuerySums<Compute<T>>& sums) {
  const std::int64_t t0 = item.first_query(call.cut);
  const std::int64_t rows = std::min(call.cut.rows, call.sizes.length - t0);
  const std::int64_t row = call.cut.parts == 1 ? 0 : partial_row(call, item);
  for (std::int64_t i = 0; i < rows; ++i) {
    const Compute<T>* const out = sums.out + i * sums.value_dim;
    if (call.cut.parts == 1) {
      finish_row(call, item, t0 + i, out, sums.greatest[i], sums.sum[i]);
      continue;
    }
    std::copy_n(out, call.partial.value_dim, call.partial.out + (row + i) * call.partial.value_dim);
    call.partial.greatest[row + i] = sums.greatest[i];
    call.partial.sum[row + i] = sums.sum[i];
  }
}

/// Adds the parts of one block of queries.
template <class T>
void combine(const ForwardCall<T>& call, const ForwardItem& item) {
  using R = Compute<T>;
  const std::int64_t t0 = item.first_query(call.cut);
  const std::int64_t rows = std::min(call.cut.rows, call.sizes.length - t0);
  const std::int64_t value_dim = call.partial.value_dim;
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

/// A way of computing items: what one worker is lent, and the function.
template <class T>
struct ForwardEngine {
  Cut cut;
  std::size_t scratch_bytes;
  void (*work)(const ForwardCall<T>&, void* scratch, const ForwardItem&);
};

}  // namespace attnbench::kernels
