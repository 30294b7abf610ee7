// The backward pass of the tiled softmax of bfloat16 numbers. Scores are computed as keys times
// queries, so that weights and gradients of scores are left sides as they are for dk and dv, and
// right sides once neighbouring keys are paired for dq, which is summed transposed.
#include "attention/kernels/cpu/softmax/bfloat16.hpp"

#if defined(__x86_64__)
#include "attention/kernels/cpu/softmax/bfloat16_units.hpp"
#endif

namespace attnbench::kernels {

#if defined(__x86_64__)

namespace {

using bfloat16::Bits;
using S = Simd<float, 64>;

using bfloat16::block;
using bfloat16::Square;

constexpr std::int64_t query_tile = 128;  // divides run_length
constexpr std::int64_t key_tile = 256;
static_assert(run_length % query_tile == 0);

struct Scratch {
  std::int64_t dim, value_dim;            // padded
  Bits *keys, *values, *keys_transposed;  // left sides of one tile
  float *dk, *dv;                         // [key_tile, dim] and [.., value_dim]
  Bits *q_transposed, *d_out_transposed, *q_pairs, *d_out_pairs;  // right sides of one tile
  float *lse, *delta;                                             // [query_tile]
  float *scores, *d_weights;                                      // [block, block]: used at once
  Bits *weights, *d_scores;                                       // left sides: [block, query_tile]
  Bits* d_scores_pairs;                                           // right: [key_tile, query_tile]
  float* nowhere;  // [16, 16], for what is not wanted

  Scratch(Workspace& space, const SoftmaxSizes& sizes)
      : dim(rounded(sizes.head_dim, bfloat16::depth)),
        value_dim(rounded(sizes.value_dim, bfloat16::depth)),
        keys(space.take<Bits>(key_tile * dim)),
        values(space.take<Bits>(key_tile * value_dim)),
        keys_transposed(space.take<Bits>(key_tile * dim)),
        dk(space.take<float>(key_tile * dim)),
        dv(space.take<float>(key_tile * value_dim)),
        q_transposed(space.take<Bits>(query_tile * dim)),
        d_out_transposed(space.take<Bits>(query_tile * value_dim)),
        q_pairs(space.take<Bits>(query_tile * dim)),
        d_out_pairs(space.take<Bits>(query_tile * value_dim)),
        lse(space.take<float>(query_tile)),
        delta(space.take<float>(query_tile)),
        scores(space.take<float>(block * block)),
        d_weights(space.take<float>(block * block)),
        weights(space.take<Bits>(block * query_tile)),
        d_scores(space.take<Bits>(block * query_tile)),
        d_scores_pairs(space.take<Bits>(key_tile * query_tile)),
        nowhere(space.take<float>(bfloat16::rows * bfloat16::rows)) {}
};

std::size_t scratch_bytes(const SoftmaxSizes& sizes) {
  Workspace count;
  Scratch(count, sizes);
  return count.used();
}

/// Blocks of queries, in numbers of queries, that see any of 32 keys from s0 on.
Range seeing_blocks(const SoftmaxSizes& sizes, std::int64_t s0, std::int64_t t0) {
  const Range seeing = within(
      {seeing_queries(sizes, s0).begin, seeing_queries(sizes, s0 + block - 1).end}, t0, query_tile);
  if (seeing.empty()) return {0, 0};
  return {seeing.begin / block * block, rounded(seeing.end, block)};
}

/// The same the other way round: keys of a tile that those of 32 queries from t0 on see that are
/// there.
Range seen_blocks(const SoftmaxSizes& sizes, std::int64_t t0, std::int64_t s0) {
  const std::int64_t rows = std::min(block, sizes.length - t0);
  if (rows <= 0) return {0, 0};
  const Range seen = within(seen_keys(sizes, t0, rows), s0, key_tile);
  if (seen.empty()) return {0, 0};
  return {seen.begin / block * block, rounded(seen.end, block)};
}

/// Whatever makes the weight 0, where a query of a block does not see a key.
ATTNBENCH_INLINE void hide(const SoftmaxSizes& sizes, const std::uint8_t* mask, std::int64_t t0,
                           std::int64_t s0, float hidden, float* scores) {
  const bool inside = sizes.first_key(t0 + block - 1) <= s0 &&
                      sizes.last_key(t0) >= s0 + block - 1 && s0 + block <= sizes.key_length;
  if (inside && mask == nullptr) return;
  for (std::int64_t k = 0; k < block; ++k) {
    float* const row = scores + k * block;
    const bool there = s0 + k < sizes.key_length && (mask == nullptr || mask[s0 + k] != 0);
    Range seeing = within(seeing_queries(sizes, s0 + k), t0, block);
    if (!there || seeing.empty()) seeing = {block, block};
    std::fill(row, row + seeing.begin, hidden);
    std::fill(row + seeing.end, row + block, hidden);
  }
}

/// Weights and gradients of scores of 32 keys and 32 queries, rounded; two keys at a time.
ATTNBENCH_INLINE void differentiate(const Scratch& s, std::int64_t k0, std::int64_t q0,
                                    float factor) {
  constexpr auto all = std::make_index_sequence<32>{};
  const typename S::Vector lse[2] = {S::load(s.lse + q0), S::load(s.lse + q0 + S::lanes)};
  const typename S::Vector delta[2] = {S::load(s.delta + q0), S::load(s.delta + q0 + S::lanes)};
  Bits* const pairs =
      s.d_scores_pairs +
      (k0 / block * (query_tile / bfloat16::rows) + q0 / bfloat16::rows) * bfloat16::tile_numbers;
  for (std::int64_t k = 0; k < block; k += 2) {
    bfloat16::Words rows[2];
#pragma GCC unroll 2
    for (int side = 0; side < 2; ++side) {
      const std::int64_t at = (k + side) * query_tile + q0;
      typename S::Vector weight[2];
      typename S::Vector d_score[2];
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const std::int64_t place = (k + side) * block + half * S::lanes;
        weight[half] = S::exp2_by_scaling<3>(S::load(s.scores + place) * factor - lse[half]);
        d_score[half] = weight[half] * (S::load(s.d_weights + place) - delta[half]);
      }
      const bfloat16::Words weights = bfloat16::rounded_words(weight[0], weight[1]);
      rows[side] = bfloat16::rounded_words(d_score[0], d_score[1]);
      __builtin_memcpy(s.weights + at, &weights, sizeof weights);
      __builtin_memcpy(s.d_scores + at, &rows[side], sizeof rows[side]);
    }
    const bfloat16::Words low = bfloat16::interleave<0>(rows[0], rows[1], all);
    const bfloat16::Words high = bfloat16::interleave<1>(rows[0], rows[1], all);
    __builtin_memcpy(pairs + k / 2 * bfloat16::depth, &low, sizeof low);
    __builtin_memcpy(pairs + bfloat16::tile_numbers + k / 2 * bfloat16::depth, &high, sizeof high);
  }
}

/// One tile of queries against one of keys.
template <class Products>
ATTNBENCH_INLINE void differentiate_tile(Products& products, const SoftmaxSizes& sizes,
                                         const std::uint8_t* mask, const Scratch& s,
                                         std::int64_t t0, std::int64_t s0, std::int64_t keys,
                                         float* dq) {
  const auto factor = static_cast<float>(sizes.scale * log2_of_e);
  const float hidden = std::copysign(std::numeric_limits<float>::infinity(), -factor);
  const std::int64_t key_blocks = s.dim / block;
  const std::int64_t value_blocks = s.value_dim / block;
  for (std::int64_t k = 0; k < keys; k += block) {
    const Range queries = seeing_blocks(sizes, s0 + k, t0);
    for (std::int64_t q = queries.begin; q < queries.end; q += block) {
      const std::int64_t group = q / bfloat16::rows;
      const Bits* const q_right = s.q_transposed + group * key_blocks * bfloat16::tile_numbers;
      products.template square<false>(key_blocks, s.keys + k * s.dim, s.dim, block, q_right,
                                      q_right + key_blocks * bfloat16::tile_numbers, 1,
                                      Square::of(s.scores, block));
      const Bits* const d_right =
          s.d_out_transposed + group * value_blocks * bfloat16::tile_numbers;
      products.template square<false>(value_blocks, s.values + k * s.value_dim, s.value_dim, block,
                                      d_right, d_right + value_blocks * bfloat16::tile_numbers, 1,
                                      Square::of(s.d_weights, block));
      products.end();
      hide(sizes, mask, t0 + q, s0 + k, hidden, s.scores);
      differentiate(s, k, q, factor);
    }
    if (queries.empty()) continue;
    const std::int64_t blocks = (queries.end - queries.begin) / block;
    for (std::int64_t d = 0; d < value_blocks; ++d) {
      const Bits* const right =
          s.d_out_pairs + (queries.begin / block * value_blocks + d) * 2 * bfloat16::tile_numbers;
      products.template square<true>(blocks, s.weights + queries.begin, query_tile, block, right,
                                     right + bfloat16::tile_numbers, 2 * value_blocks,
                                     Square::of(s.dv + k * s.value_dim + d * block, s.value_dim));
    }
    for (std::int64_t d = 0; d < key_blocks; ++d) {
      const Bits* const right =
          s.q_pairs + (queries.begin / block * key_blocks + d) * 2 * bfloat16::tile_numbers;
      products.template square<true>(blocks, s.d_scores + queries.begin, query_tile, block, right,
                                     right + bfloat16::tile_numbers, 2 * key_blocks,
                                     Square::of(s.dk + k * s.dim + d * block, s.dim));
    }
  }
  for (std::int64_t q = 0; q < query_tile; q += block) {
    Range seen = seen_blocks(sizes, t0 + q, s0);
    seen.end = std::min(seen.end, rounded(keys, block));
    if (seen.empty()) continue;
    const Bits* const right =
        s.d_scores_pairs +
        (seen.begin / block * (query_tile / bfloat16::rows) + q / bfloat16::rows) *
            bfloat16::tile_numbers;
    for (std::int64_t d = 0; d < key_blocks; ++d) {
      products.template square<true>(
          (seen.end - seen.begin) / block, s.keys_transposed + d * block * key_tile + seen.begin,
          key_tile, block, right, right + bfloat16::tile_numbers, query_tile / bfloat16::rows,
          Square::of(dq + d * block * query_tile + q, query_tile));
    }
  }
  products.end();
}

/// The right sides of one tile of queries, and what there is of each.
ATTNBENCH_INLINE void take_queries(const BackwardCall<BFloat16>& call, const Scratch& s,
                                   std::int64_t b, std::int64_t h, std::int64_t t0) {
  const SoftmaxSizes& sizes = call.sizes;
  const std::int64_t rows = std::min(query_tile, sizes.length - t0);
  const BFloat16* const q = call.in.q.at(b, h, t0);
  const BFloat16* const d_out = call.out.d_out.at(b, h, t0);
  bfloat16::pack_right_transposed(q, call.in.q.row_stride, rows, sizes.head_dim, s.q_transposed,
                                  query_tile);
  bfloat16::pack_right_transposed(d_out, call.out.d_out.row_stride, rows, sizes.value_dim,
                                  s.d_out_transposed, query_tile);
  bfloat16::pack_right(q, call.in.q.row_stride, rows, sizes.head_dim, s.q_pairs, query_tile);
  bfloat16::pack_right(d_out, call.out.d_out.row_stride, rows, sizes.value_dim, s.d_out_pairs,
                       query_tile);
  const std::int64_t first = (b * sizes.heads + h) * sizes.length + t0;
  for (std::int64_t i = 0; i < query_tile; ++i) {
    // A query that is not there has no weights.
    s.lse[i] = i < rows ? call.in.lse[first + i] * static_cast<float>(log2_of_e)
                        : std::numeric_limits<float>::infinity();
    s.delta[i] = i < rows ? call.shared.delta[first + i] : 0.0F;
  }
}

template <class Products>
ATTNBENCH_INLINE void backward_item(const BackwardCall<BFloat16>& call, void* scratch,
                                    const BackwardItem& item) {
  const SoftmaxSizes& sizes = call.sizes;
  Workspace space(scratch, scratch_bytes(sizes));
  const Scratch s(space, sizes);
  const std::int64_t group = sizes.heads / sizes.kv_heads;
  const std::uint8_t* const mask =
      call.in.key_mask == nullptr ? nullptr : call.in.key_mask + item.b * call.in.mask_stride;
  const std::int64_t step = call.shared.parts * key_tile;
  Products products(s.nowhere);
  for (std::int64_t s0 = item.part * key_tile; s0 < sizes.key_length; s0 += step) {
    const std::int64_t keys = std::min(key_tile, sizes.key_length - s0);
    const BFloat16* const k = call.in.k.at(item.b, item.kv, s0);
    bfloat16::pack_left(k, call.in.k.row_stride, keys, sizes.head_dim, 0, s.keys, key_tile, s.dim);
    bfloat16::pack_left(call.in.v.at(item.b, item.kv, s0), call.in.v.row_stride, keys,
                        sizes.value_dim, 0, s.values, key_tile, s.value_dim);
    bfloat16::pack_left_transposed(k, call.in.k.row_stride, keys, sizes.head_dim, s.keys_transposed,
                                   key_tile);
    std::fill_n(s.dk, key_tile * s.dim, 0.0F);
    std::fill_n(s.dv, key_tile * s.value_dim, 0.0F);
    const std::int64_t first = seeing_queries(sizes, s0).begin;
    const std::int64_t last = seeing_queries(sizes, s0 + keys - 1).end;
    for (std::int64_t h = item.kv * group; h < (item.kv + 1) * group; ++h) {
      for (std::int64_t t0 = first / query_tile * query_tile; t0 < last; t0 += query_tile) {
        take_queries(call, s, item.b, h, t0);
        differentiate_tile(products, sizes, mask, s, t0, s0, keys,
                           call.shared.dq_of(item.b * sizes.heads + h, item.part, t0));
      }
    }
    write_keys(call, item, s0, keys, s.dk, s.dim, s.dv, s.value_dim);
  }
}

ATTNBENCH_AVX512_BF16 void backward_amx(const BackwardCall<BFloat16>& call, void* scratch,
                                        const BackwardItem& item) {
  backward_item<bfloat16::TileProducts>(call, scratch, item);
}
ATTNBENCH_AVX512_BF16 void backward_vectors(const BackwardCall<BFloat16>& call, void* scratch,
                                            const BackwardItem& item) {
  backward_item<bfloat16::VectorProducts>(call, scratch, item);
}

}  // namespace

BackwardEngine<BFloat16> softmax_backward_bfloat16(const SoftmaxSizes& sizes) {
  return {{query_tile, key_tile, rounded(sizes.head_dim, bfloat16::depth), true},
          scratch_bytes(sizes),
          best_isa() == Isa::amx ? backward_amx : backward_vectors};
}

#else

BackwardEngine<BFloat16> softmax_backward_bfloat16(const SoftmaxSizes&) { return {}; }

#endif

}  // namespace attnbench::kernels
