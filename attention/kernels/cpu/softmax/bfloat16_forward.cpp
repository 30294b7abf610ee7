// The forward pass of the tiled softmax of bfloat16 numbers: both products by pairs, sums and
// weights in float. Queries are taken as they lie, keys transposed and values paired once for an
// item; scores and weights of 32 queries stay in the first cache.
//
// Where the norms of queries and keys keep every score in reach of a fixed point, weights need no
// maximum and are computed beside the tiles' products (bfloat16_units.hpp); elsewhere after
// them, in float, from the greatest score seen so far. Which of both depends on the numbers alone:
// the norms of 32 queries and of a tile of keys, hidden ones among them. So a later token may
// decide how the queries beside it are rounded.
#include "attention/kernels/cpu/softmax/bfloat16.hpp"

#if defined(__x86_64__)
#include "attention/kernels/cpu/softmax/bfloat16_reach.hpp"
#include "attention/kernels/cpu/softmax/bfloat16_units.hpp"
#include "attention/kernels/cpu/softmax/bfloat16_view.hpp"
#endif

namespace attnbench::kernels {

#if defined(__x86_64__)

namespace {

using bfloat16::Behind;
using bfloat16::Bits;
using bfloat16::block;
using bfloat16::hide_scores;
using bfloat16::hide_weights;
using bfloat16::Square;
using bfloat16::View;
using S = Simd<float, 64>;

constexpr std::int64_t key_tile = 256;          // keys of one tile of the algorithm
constexpr std::int64_t most_rows = 16 * block;  // queries of an item, which share packed keys

struct Scratch {
  std::int64_t dim, value_dim;  // padded
  Bits* q;                      // [rows, dim]
  float *out, *greatest, *sum;  // of the item's queries; the greatest in base 2, as scaled
  float* norms;                 // of the queries
  float* sums;                  // [rows, 16]: lane by lane
  Bits *keys, *values;          // of one tile, as right sides
  Bits* ones;                   // a right side: sums up in its first column
  float* scores;                // [block, key_tile], or what units take of it
  Bits* weights;                // [block, key_tile], in another order for units
  float* nowhere;               // [16, 16], for what is not wanted

  Scratch(Workspace& space, const SoftmaxSizes& sizes, const Cut& cut)
      : dim(rounded(sizes.head_dim, bfloat16::depth)),
        value_dim(rounded(sizes.value_dim, bfloat16::depth)),
        q(space.take<Bits>(cut.room * dim)),
        out(space.take<float>(cut.room * value_dim)),
        greatest(space.take<float>(cut.room)),
        sum(space.take<float>(cut.room)),
        norms(space.take<float>(cut.room)),
        sums(space.take<float>(cut.room * S::lanes)),
        keys(space.take<Bits>(key_tile * dim)),
        values(space.take<Bits>(key_tile * value_dim)),
        ones(space.take<Bits>(bfloat16::tile_numbers)),
        scores(space.take<float>(block * key_tile)),
        weights(space.take<Bits>(block * key_tile)),
        nowhere(space.take<float>(bfloat16::rows * bfloat16::rows)) {}
};

std::size_t scratch_bytes(const SoftmaxSizes& sizes, const Cut& cut) {
  Workspace count;
  Scratch(count, sizes, cut);
  return count.used();
}

/// The greatest score of a row; `columns` are whole blocks.
ATTNBENCH_INLINE float greatest_of(const float* scores, Range columns) {
  // Chains of comparisons that hide each other's latency.
  typename S::Vector most[4];
#pragma GCC unroll 4
  for (int u = 0; u < 4; ++u) most[u] = S::load(scores + columns.begin + u % 2 * S::lanes);
  std::int64_t k = columns.begin;
  for (; k + 4 * S::lanes <= columns.end; k += 4 * S::lanes) {
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) most[u] = S::max(most[u], S::load(scores + k + u * S::lanes));
  }
  for (; k < columns.end; k += S::lanes) most[0] = S::max(most[0], S::load(scores + k));
  return S::greatest(S::max(S::max(most[0], most[1]), S::max(most[2], most[3])));
}

/// One row of scores, `greatest` being the greatest of them, becomes weights; what was summed
/// before decays.
ATTNBENCH_INLINE void take_row(const Scratch& s, std::int64_t i, std::int64_t row, Range columns,
                               float factor, float greatest) {
  const float* const scores = s.scores + i * key_tile;
  const float before = s.greatest[row];
  const float after = std::max(before, greatest * factor);
  // A row that has seen no key yet must not compute infinity minus infinity.
  const float base = std::isinf(after) ? 0.0F : after;
  typename S::Vector total[2] = {};
  for (std::int64_t k = columns.begin; k < columns.end; k += 2 * S::lanes) {
    const auto low = S::exp2_by_scaling<3>(S::load(scores + k) * factor - base);
    const auto high = S::exp2_by_scaling<3>(S::load(scores + k + S::lanes) * factor - base);
    total[0] += low;
    total[1] += high;
    const bfloat16::Words both = bfloat16::rounded_pairs(low, high);
    __builtin_memcpy(s.weights + i * key_tile + k, &both, sizeof both);
  }
  total[0] += total[1];
  float* const sums = s.sums + row * S::lanes;
  if (after == before) return S::store(sums, S::load(sums) + total[0]);
  const auto decay = S::exp2_by_scaling(S::broadcast(before - base));
  s.greatest[row] = after;
  S::store(sums, S::load(sums) * decay + total[0]);
  float* const out = s.out + row * s.value_dim;
  for (std::int64_t d = 0; d < s.value_dim; d += S::lanes) {
    S::store(out + d, S::load(out + d) * decay);
  }
}

/// 32 queries against a tile of keys: all scores, their greatest, then weights and sums.
template <class Products>
ATTNBENCH_INLINE void take_block(Products& products, const Scratch& s, const View& view,
                                 std::int64_t i, const Range& columns, float factor) {
  const std::int64_t key_blocks = s.dim / bfloat16::depth;
  const std::int64_t value_blocks = s.value_dim / bfloat16::depth;
  for (std::int64_t k = columns.begin; k < columns.end; k += block) {
    const Bits* const right = s.keys + k / bfloat16::rows * key_blocks * bfloat16::tile_numbers;
    products.template square<false>(key_blocks, s.q + i * s.dim, s.dim, block, right,
                                    right + key_blocks * bfloat16::tile_numbers, 1,
                                    Square::of(s.scores + k, key_tile));
  }
  products.end();
  hide_scores(view, i, columns, s.scores, key_tile);
  float greatest[block];
  for (std::int64_t r = 0; r < block; ++r) {
    greatest[r] = greatest_of(s.scores + r * key_tile, columns);
  }
  for (std::int64_t r = 0; r < block; ++r) take_row(s, r, i + r, columns, factor, greatest[r]);
  for (std::int64_t d = 0; d < value_blocks; ++d) {
    const Bits* const right =
        s.values + (columns.begin / block * value_blocks + d) * 2 * bfloat16::tile_numbers;
    products.template square<true>((columns.end - columns.begin) / block, s.weights + columns.begin,
                                   key_tile, block, right, right + bfloat16::tile_numbers,
                                   2 * value_blocks,
                                   Square::of(s.out + i * s.value_dim + d * block, s.value_dim));
  }
  products.end();
}

/// Whether no score of 32 queries with keys of such a norm can leave the reach of words, and none
/// that they have met before did. From then on their maximum is 0.
ATTNBENCH_INLINE bool in_reach(const Scratch& s, std::int64_t i, float key_reach) {
  for (std::int64_t r = i; r < i + block; ++r) {
    const bool fresh = s.greatest[r] == -std::numeric_limits<float>::infinity();
    if (!((fresh || s.greatest[r] == 0) && s.norms[r] * key_reach <= bfloat16::PowerTable::reach)) {
      return false;
    }
  }
  std::fill_n(s.greatest + i, block, 0.0F);
  return true;
}

/// As finish, whole vectors at a time. The keys are in one part, and outputs in whole blocks.
ATTNBENCH_INLINE void finish_rows(const ForwardCall<BFloat16>& call, const ForwardItem& item,
                                  const Scratch& s, std::int64_t rows) {
  const std::int64_t t0 = item.first_query(call.cut);
  for (std::int64_t i = 0; i < rows; ++i) {
    const float* const sums = s.out + i * s.value_dim;
    BFloat16* const out = call.in.out.at(item.b, item.h, t0 + i);
    const auto factor = S::broadcast(s.sum[i] == 0 ? 0.0F : 1 / s.sum[i]);
    for (std::int64_t d = 0; d < s.value_dim; d += bfloat16::depth) {
      const bfloat16::Words row = bfloat16::rounded_words(factor * S::load(sums + d),
                                                          factor * S::load(sums + d + S::lanes));
      __builtin_memcpy(static_cast<void*>(out + d), &row, sizeof row);
    }
    write_lse(call, item, t0 + i, s.greatest[i], s.sum[i]);
  }
}

template <class Products>
ATTNBENCH_INLINE void forward_item(const ForwardCall<BFloat16>& call, void* scratch,
                                   const ForwardItem& item) {
  const SoftmaxSizes& sizes = call.sizes;
  Workspace space(scratch, scratch_bytes(sizes, call.cut));
  const Scratch s(space, sizes, call.cut);
  const std::int64_t t0 = item.first_query(call.cut);
  const std::int64_t rows = std::min(call.cut.rows, sizes.length - t0);
  const std::int64_t kv = item.h / (sizes.heads / sizes.kv_heads);
  const std::uint8_t* const mask =
      call.in.key_mask == nullptr ? nullptr : call.in.key_mask + item.b * call.in.mask_stride;
  // Where the scale is negative, the queries are: so the greatest product is the greatest score.
  const Bits flip = sizes.scale < 0 ? 0x8000 : 0;
  const auto factor = static_cast<float>(std::fabs(sizes.scale) * log2_of_e);
  const std::int64_t whole = rounded(rows, block);
  bfloat16::pack_left(call.in.q.at(item.b, item.h, t0), call.in.q.row_stride, rows, sizes.head_dim,
                      flip, s.q, whole, s.dim);
  std::fill_n(s.out, whole * s.value_dim, 0.0F);
  std::fill_n(s.greatest, whole, -std::numeric_limits<float>::infinity());
  std::fill_n(s.sums, whole * S::lanes, 0.0F);

  bfloat16::norms_of(s.q, whole, s.dim, s.norms);
  std::fill_n(s.ones, bfloat16::tile_numbers, Bits{0});
  for (std::int64_t r = 0; r < bfloat16::rows; ++r) {
    std::fill_n(s.ones + r * bfloat16::depth, 2, bfloat16::one);
  }

  static const bfloat16::PowerTable table;
  static const Behind behind;
  const bfloat16::Powers powers(table, factor);
  const bfloat16::UnitSides sides{s.dim, s.value_dim, s.q, s.keys, s.values, s.ones, s.out, s.sums};
  const bfloat16::UnitScratch unit_scratch{s.scores, s.weights};
  Products products(s.nowhere);
  const Range tiles = tiles_of(sizes, call.cut, item, key_tile);
  for (std::int64_t s0 = tiles.begin * key_tile; s0 < tiles.end * key_tile; s0 += key_tile) {
    const std::int64_t keys = std::min(key_tile, sizes.key_length - s0);
    bfloat16::GreatestSquare square;
    bfloat16::pack_right_transposed(call.in.k.at(item.b, kv, s0), call.in.k.row_stride, keys,
                                    sizes.head_dim, s.keys, key_tile, square);
    bfloat16::pack_right<bfloat16::rows>(call.in.v.at(item.b, kv, s0), call.in.v.row_stride, keys,
                                         sizes.value_dim, s.values, key_tile);
    const View view{sizes, mask == nullptr ? nullptr : mask + s0, t0, s0, keys};
    // A little more than the product of the norms, for they are rounded.
    const float key_reach = 1.001F * factor * std::sqrt(square.greatest());
    bfloat16::Unit units[most_rows / block];
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < rows; i += block) {
      const Range columns = view.columns_of(i);
      if (columns.empty()) continue;
      if (in_reach(s, i, key_reach)) {
        units[count++] = {i, columns, !view.inside(i, columns)};
      } else {
        take_block(products, s, view, i, columns, factor);
      }
    }
    bfloat16::take_units(products, units, count, sides, unit_scratch, powers,
                         [&](const bfloat16::Unit& unit, Bits* weights) ATTNBENCH_INLINE_LAMBDA {
                           hide_weights(view, behind, unit, weights);
                         });
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    s.sum[i] = S::sum(S::load(s.sums + i * S::lanes));
    // A query that saw no key here must not hold up those that saw small scores in other parts.
    if (s.sum[i] == 0) s.greatest[i] = -std::numeric_limits<float>::infinity();
  }
  if (call.cut.parts == 1 && sizes.value_dim == s.value_dim) {
    finish_rows(call, item, s, rows);
  } else {
    finish(call, item, {s.out, s.greatest, s.sum, s.value_dim});
  }
}

ATTNBENCH_AVX512_BF16 void forward_amx(const ForwardCall<BFloat16>& call, void* scratch,
                                       const ForwardItem& item) {
  forward_item<bfloat16::TileProducts>(call, scratch, item);
}
ATTNBENCH_AVX512_BF16 void forward_vectors(const ForwardCall<BFloat16>& call, void* scratch,
                                           const ForwardItem& item) {
  forward_item<bfloat16::VectorProducts>(call, scratch, item);
}

}  // namespace

ForwardEngine<BFloat16> softmax_forward_bfloat16(const SoftmaxSizes& sizes) {
  const Cut cut = cut_of(sizes, 2 * block, most_rows / (2 * block));
  return {cut, scratch_bytes(sizes, cut), best_isa() == Isa::amx ? forward_amx : forward_vectors};
}

#else

ForwardEngine<BFloat16> softmax_forward_bfloat16(const SoftmaxSizes&) { return {}; }

#endif

}  // namespace attnbench::kernels
