// How the whole pool is cut for a card: groups of latents, segments of the tokens, blocks of the
// queries. Plain functions of the sizes, so that they can be tested where there is no device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "attention/kernels/cuda/recurrent/plan.hpp"

namespace attnbench::kernels::cuda {

/// Batch rows counted as heads.
struct WholePoolShape {
  std::int64_t heads = 1, length = 0, key_length = 0, latents = 0, value_dim = 0;
};

constexpr std::int64_t most_pool_latents = 4096;
constexpr std::int64_t most_pool_directions = 128;  ///< numbers of one
/// Latents whose averages one launch makes: the widest of the recurrent tiles that spill nothing.
constexpr int pool_group = 128;
/// Latents that a query's weights are made of at once, and to a multiple of which the averages are
/// filled up with zeros.
constexpr int read_latents = 64;
/// Of a block that reads; each warp takes 16 queries at a time.
constexpr int read_warps = 8;

constexpr std::int64_t round_up(std::int64_t x, std::int64_t to) { return (x + to - 1) / to * to; }

/// Tokens in segments of whole chunks, as many as `blocks` for each of them keep the card busy.
struct TokenSegments {
  int segments = 1, chunks = 1;  ///< chunks of one segment
};

inline TokenSegments segments_of(std::int64_t tokens, int chunk, std::int64_t blocks,
                                 int multiprocessors) {
  const std::int64_t chunks = std::max<std::int64_t>(1, (tokens + chunk - 1) / chunk);
  blocks = std::max<std::int64_t>(1, blocks);
  // Each segment leaves a state, which takes as long as a chunk or two.
  const std::int64_t wanted =
      std::clamp<std::int64_t>((3 * std::int64_t{multiprocessors} + blocks - 1) / blocks, 1,
                               std::max<std::int64_t>(1, chunks / 2));
  TokenSegments made;
  made.chunks = static_cast<int>((chunks + wanted - 1) / wanted);
  made.segments = static_cast<int>((chunks + made.chunks - 1) / made.chunks);
  return made;
}

/// The recurrent kernels' plan for the states of one group of `width` latents, with as many
/// segments for every group.
inline RecurrentPlan plan_states(const WholePoolShape& shape, std::int64_t width,
                                 int multiprocessors) {
  RecurrentPlan plan = plan_recurrence({shape.heads, shape.key_length, width, shape.value_dim},
                                       multiprocessors, false);
  const TokenSegments cut =
      segments_of(shape.key_length, chunk_tokens, shape.heads * plan.slices, multiprocessors);
  plan.segments = cut.segments;
  plan.segment_chunks = cut.chunks;
  return plan;
}

/// How queries read: `columns` of the values a block (0: the card has too little shared memory),
/// `blocks` for each head and slice of the columns.
struct ReadPlan {
  int columns = 0, slices = 1, blocks = 1;
};

/// The averages, what is added to logits, and where results are put in order.
constexpr std::size_t read_bytes(std::int64_t latents, int columns) {
  const auto rows = static_cast<std::size_t>(round_up(latents, read_latents));
  return rows * static_cast<std::size_t>(2 * columns + 4) +
         static_cast<std::size_t>(read_warps * 16 * columns * 2);
}

inline ReadPlan plan_reading(const WholePoolShape& shape, int multiprocessors,
                             std::size_t shared_bytes) {
  ReadPlan plan;
  for (const int columns : {128, 64}) {
    if (columns > 64 && shape.value_dim <= 64) continue;
    if (read_bytes(shape.latents, columns) > shared_bytes) continue;
    plan.columns = columns;
    break;
  }
  if (plan.columns == 0) return plan;
  plan.slices = static_cast<int>((shape.value_dim + plan.columns - 1) / plan.columns);
  // Every block fetches the averages anew, so that it should read more than one tile of queries
  // where heads are many.
  const std::int64_t tiles =
      std::max<std::int64_t>(1, (shape.length + read_warps * 16 - 1) / (read_warps * 16));
  const std::int64_t alike = std::max<std::int64_t>(1, shape.heads * plan.slices);
  plan.blocks = static_cast<int>(
      std::clamp<std::int64_t>((6 * std::int64_t{multiprocessors} + alike - 1) / alike, 1, tiles));
  return plan;
}

}  // namespace attnbench::kernels::cuda
