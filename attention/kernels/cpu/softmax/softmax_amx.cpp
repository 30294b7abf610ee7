// The forward pass of the tiled softmax on AMX: both products by tiles of bfloat16, sums and
// weights in float. Queries are taken as they lie, keys transposed and values paired once for an
// item; scores and weights of 32 queries stay in the first cache.
//
// At 64 numbers a head the floors of products and exponentials are alike, some 4 cycles for 16
// pairs of tokens each, and neither binds: what lies between tiles and vectors takes most of the
// time.
#include "attention/kernels/cpu/softmax/softmax_amx.hpp"

#include "attention/kernels/cpu/softmax/softmax_amx_tile.hpp"

namespace attnbench::kernels {

#if defined(__x86_64__)

namespace {

using amx::Bits;
using S = Simd<float, 64>;

constexpr std::int64_t block = 32;      // queries taken together: two tiles of rows
constexpr std::int64_t key_tile = 256;  // keys of one tile of the algorithm

struct Scratch {
  std::int64_t dim, value_dim;  // padded
  Bits* q;                      // [rows, dim]
  float *out, *greatest, *sum;  // of the item's queries; the greatest in base 2, as scaled
  float* sums;                  // [rows, 16]: lane by lane
  Bits *keys, *values;          // of one tile, as right sides
  float* scores;                // [block, key_tile]
  Bits* weights;                // [block, key_tile]

  Scratch(Workspace& space, const SoftmaxSizes& sizes, const Cut& cut)
      : dim(rounded(sizes.head_dim, amx::depth)),
        value_dim(rounded(sizes.value_dim, amx::depth)),
        q(space.take<Bits>(cut.room * dim)),
        out(space.take<float>(cut.room * value_dim)),
        greatest(space.take<float>(cut.room)),
        sum(space.take<float>(cut.room)),
        sums(space.take<float>(cut.room * S::lanes)),
        keys(space.take<Bits>(key_tile * dim)),
        values(space.take<Bits>(key_tile * value_dim)),
        scores(space.take<float>(block * key_tile)),
        weights(space.take<Bits>(block * key_tile)) {}
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
    for (int u = 0; u < 4; ++u) most[u] = S::greater(most[u], S::load(scores + k + u * S::lanes));
  }
  for (; k < columns.end; k += S::lanes) most[0] = S::greater(most[0], S::load(scores + k));
  return S::greatest(S::greater(S::greater(most[0], most[1]), S::greater(most[2], most[3])));
}

/// One row of scores, `greatest` being the greatest of them, becomes weights; what was summed
/// before fades.
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
    const amx::Words both = amx::rounded_words(low, high);
    __builtin_memcpy(s.weights + i * key_tile + k, &both, sizeof both);
  }
  total[0] += total[1];
  float* const sums = s.sums + row * S::lanes;
  if (after == before) return S::store(sums, S::load(sums) + total[0]);
  const auto fade = S::exp2_by_scaling(S::all(before - base));
  s.greatest[row] = after;
  S::store(sums, S::load(sums) * fade + total[0]);
  float* const out = s.out + row * s.value_dim;
  for (std::int64_t d = 0; d < s.value_dim; d += S::lanes) {
    S::store(out + d, S::load(out + d) * fade);
  }
}

/// Minus infinity where a query of the block does not see a key.
ATTNBENCH_INLINE void hide(const SoftmaxSizes& sizes, const std::uint8_t* mask, std::int64_t t0,
                           std::int64_t s0, std::int64_t keys, Range columns, float* scores) {
  constexpr float hidden = -std::numeric_limits<float>::infinity();
  const std::int64_t last = std::min(t0 + block, sizes.length) - 1;
  const bool inside =
      sizes.first_key(last) <= s0 + columns.begin && sizes.last_key(t0) >= s0 + columns.end - 1;
  if (inside && mask == nullptr) return;
  for (std::int64_t i = 0; i < block; ++i) {
    float* const row = scores + i * key_tile;
    Range seen = within(seen_keys(sizes, std::min(t0 + i, last), 1), s0, keys);
    if (seen.empty()) seen = {columns.end, columns.end};
    std::fill(row + columns.begin, row + std::max(columns.begin, seen.begin), hidden);
    for (std::int64_t k = seen.begin; mask != nullptr && k < seen.end; ++k) {
      row[k] = mask[s0 + k] != 0 ? row[k] : hidden;
    }
    std::fill(row + std::min(columns.end, seen.end), row + columns.end, hidden);
  }
}

ATTNBENCH_AMX void forward_amx(const ForwardCall<BFloat16>& call, void* scratch,
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
  amx::pack_left(call.in.q.at(item.b, item.h, t0), call.in.q.row_stride, rows, sizes.head_dim, flip,
                 s.q, whole, s.dim);
  std::fill_n(s.out, whole * s.value_dim, 0.0F);
  std::fill_n(s.greatest, whole, -std::numeric_limits<float>::infinity());
  std::fill_n(s.sums, whole * S::lanes, 0.0F);

  const std::int64_t key_blocks = s.dim / amx::depth;
  const std::int64_t value_blocks = s.value_dim / amx::depth;
  amx::configure();
  const Range tiles = tiles_of(sizes, call.cut, item, key_tile);
  for (std::int64_t s0 = tiles.begin * key_tile; s0 < tiles.end * key_tile; s0 += key_tile) {
    const std::int64_t keys = std::min(key_tile, sizes.key_length - s0);
    amx::pack_right_transposed(call.in.k.at(item.b, kv, s0), call.in.k.row_stride, keys,
                               sizes.head_dim, s.keys, key_tile);
    amx::pack_right(call.in.v.at(item.b, kv, s0), call.in.v.row_stride, keys, sizes.value_dim,
                    s.values, key_tile);
    for (std::int64_t i = 0; i < rows; i += block) {
      const Range seen = within(seen_keys(sizes, t0 + i, std::min(block, rows - i)), s0, keys);
      if (seen.empty()) continue;
      const Range columns{seen.begin / block * block, rounded(seen.end, block)};
      for (std::int64_t k = columns.begin; k < columns.end; k += block) {
        const Bits* const right = s.keys + k / amx::rows * key_blocks * amx::tile_numbers;
        amx::multiply_square<false>(key_blocks, s.q + i * s.dim, s.dim, right,
                                    right + key_blocks * amx::tile_numbers, 1, s.scores + k,
                                    key_tile);
      }
      hide(sizes, mask, t0 + i, s0, keys, columns, s.scores);
      float greatest[block];
      for (std::int64_t r = 0; r < block; ++r) {
        greatest[r] = greatest_of(s.scores + r * key_tile, columns);
      }
      for (std::int64_t r = 0; r < block; ++r) {
        take_row(s, r, i + r, columns, factor, greatest[r]);
      }
      for (std::int64_t d = 0; d < value_blocks; ++d) {
        const Bits* const right =
            s.values + (columns.begin / block * value_blocks + d) * 2 * amx::tile_numbers;
        amx::multiply_square<true>((columns.end - columns.begin) / block, s.weights + columns.begin,
                                   key_tile, right, right + amx::tile_numbers, 2 * value_blocks,
                                   s.out + i * s.value_dim + d * amx::depth, s.value_dim);
      }
    }
  }
  amx::release();
  for (std::int64_t i = 0; i < rows; ++i) s.sum[i] = S::sum(S::load(s.sums + i * S::lanes));
  finish(call, item, {s.out, s.greatest, s.sum, s.value_dim});
}

}  // namespace

ForwardEngine<BFloat16> softmax_forward_amx(const SoftmaxSizes& sizes) {
  const Cut cut = cut_of(sizes, 2 * block);
  return {cut, scratch_bytes(sizes, cut), forward_amx};
}

#else

ForwardEngine<BFloat16> softmax_forward_amx(const SoftmaxSizes&) { return {}; }

#endif

}  // namespace attnbench::kernels
