// Host side of the recurrent families' forward pass: the plan, the workspace, the launches.
#pragma once

#include "attention/kernels/cuda/launch.cuh"
#include "attention/kernels/cuda/recurrent/borders.cuh"
#include "attention/kernels/cuda/recurrent/chunks_kernel.cuh"
#include "attention/kernels/cuda/recurrent/forward.cuh"
#include "attention/kernels/cuda/recurrent/scan.cuh"
#include "attention/kernels/cuda/recurrent/step.cuh"
#include "attention/kernels/workspace.hpp"

namespace attnbench::kernels::cuda {

/// The workspace of a forward pass: copies of what one block writes while others still read it, and
/// the states at the borders of segments.
struct RecurrentSpace {
  RecurrentState before, borders, through;

  RecurrentSpace(Workspace& space, const RecurrentShape& shape, const RecurrentPlan& plan) {
    const std::int64_t rows = shape.heads * shape.latents;
    const std::int64_t states = plan.segments - 1;
    before.total = space.take<float>(rows);
    before.maximum = space.take<float>(rows);
    if (states == 0) return;
    before.sum = space.take<float>(rows * shape.value_dim);
    borders.sum = space.take<float>(rows * shape.value_dim * states);
    borders.total = space.take<float>(rows * states);
    borders.maximum = space.take<float>(rows * states);
    if (plan.folded()) return;
    through.total = space.take<float>(rows * states);
    through.maximum = space.take<float>(rows * states);
  }
};

template <class Family, class T, int Latents, int Warps, bool Outputs>
void launch_chunks(const RecurrentArguments<T>& a, std::int64_t heads, Stream stream) {
  using Layout = ChunkLayout<Family, T, Latents, Warps, Outputs>;
  const dim3 grid(static_cast<unsigned>(heads * a.slices),
                  static_cast<unsigned>(Outputs ? a.segments : a.segments - 1));
  launch(recurrent_chunks<Family, T, Latents, Warps, Outputs>, grid, dim3(Layout::threads),
         Layout::bytes, stream, a);
}

template <class Family, class T, bool Outputs>
void launch_tiles(const RecurrentArguments<T>& a, const RecurrentPlan& plan, std::int64_t heads,
                  Stream stream) {
  switch (plan.latents) {
    case 32:
      return launch_chunks<Family, T, 32, 2, Outputs>(a, heads, stream);
    case 64:
      return launch_chunks<Family, T, 64, 4, Outputs>(a, heads, stream);
    case 128:
      return launch_chunks<Family, T, 128, 4, Outputs>(a, heads, stream);
    default:
      // Who wants states alone takes latents in groups that narrower tiles hold.
      if constexpr (Family::template by_chunks<T>) {
        launch_chunks<Family, T, 256, 8, Outputs>(a, heads, stream);
      }
  }
}

/// Calls f with the number of latents a lane holds, as a constant. Where results are made by chunks
/// only what no tile takes comes here.
template <class Family, class T, class F>
void with_own_latents(int latents, F&& f) {
  if constexpr (!Family::template by_chunks<T>) {
    if (latents <= 64) return f(std::integral_constant<int, 2>{});
    if (latents <= 128) return f(std::integral_constant<int, 4>{});
  }
  f(std::integral_constant<int, 16>{});
}

template <class Family, class T>
void launch_scan(const RecurrentArguments<T>& a, std::int64_t heads, Stream stream) {
  constexpr int columns = scan_warps * scan_columns;
  const dim3 grid(static_cast<unsigned>(heads),
                  static_cast<unsigned>((a.value_dim + columns - 1) / columns));
  const std::size_t bytes =
      sizeof(float) * static_cast<std::size_t>(scan_tokens * (2 * a.latents + columns));
  with_own_latents<Family, T>(a.latents, [&](auto own) {
    launch(recurrent_scan<Family, T, own()>, grid, dim3(32 * scan_warps), bytes, stream, a);
  });
}

template <class Family, class T>
void launch_step(const RecurrentArguments<T>& a, std::int64_t heads, Stream stream) {
  const bool vectors =
      a.value_dim % 4 == 0 && reinterpret_cast<std::uintptr_t>(a.after.sum) % 16 == 0;
  const int vector = vectors ? 4 : 1;
  const std::size_t bytes =
      sizeof(float) * static_cast<std::size_t>(3 * a.latents + step_threads * vector);
  const auto with = [&](auto kernel) {
    launch(kernel, dim3(static_cast<unsigned>(heads)), dim3(step_threads), bytes, stream, a);
  };
  if (a.latents <= 64) {
    vectors ? with(recurrent_step<Family, T, 2, 4>) : with(recurrent_step<Family, T, 2, 1>);
  } else {
    vectors ? with(recurrent_step<Family, T, 16, 4>) : with(recurrent_step<Family, T, 16, 1>);
  }
}

/// The shared memory of a block that gives results.
template <class Family, class T>
std::size_t tile_bytes(const RecurrentPlan& plan) {
  switch (plan.latents) {
    case 32:
      return ChunkLayout<Family, T, 32, 2, true>::bytes;
    case 64:
      return ChunkLayout<Family, T, 64, 4, true>::bytes;
    case 128:
      return ChunkLayout<Family, T, 128, 4, true>::bytes;
    default:
      return ChunkLayout<Family, T, 256, 8, true>::bytes;
  }
}

template <class Family, class T>
RecurrentPlan plan_here(const RecurrentShape& shape) {
  constexpr bool exact = !Family::template by_chunks<T>;
  const RecurrentPlan plan = plan_recurrence(shape, card().multiprocessors, exact);
  if (plan.scan || tile_bytes<Family, T>(plan) <= card().shared_bytes) return plan;
  return plan_recurrence(shape, card().multiprocessors, true);
}

template <class Family, class T>
std::size_t recurrent_forward_bytes(const RecurrentShape& shape) {
  Workspace count;
  RecurrentSpace(count, shape, plan_here<Family, T>(shape));
  return count.used();
}

template <class Family, class T>
void recurrent_states(RecurrentArguments<T> a, const RecurrentShape& shape,
                      const RecurrentPlan& plan, Stream stream) {
  a.length = static_cast<int>(shape.length);
  a.latents = static_cast<int>(shape.latents);
  a.value_dim = static_cast<int>(shape.value_dim);
  a.key_pieces = by_pieces(a.key, shape.latents);
  a.value_pieces = by_pieces(a.values, shape.value_dim);
  a.slices = plan.slices;
  a.segments = plan.segments + 1;  // the last one leaves no state
  a.segment_chunks = plan.segment_chunks;
  launch_tiles<Family, T, false>(a, plan, shape.heads, stream);
}

template <class Family, class T>
RecurrentState recurrent_borders(const RecurrentArguments<T>& a, const RecurrentPlan& plan,
                                 std::int64_t heads, Stream stream, const RecurrentState& through) {
  launch_tiles<Family, T, false>(a, plan, heads, stream);
  if (a.folded) return a.borders;
  constexpr int threads = 256;
  const std::int64_t numbers = std::int64_t{a.latents} * (a.value_dim + 1);
  launch(
      pass_borders<Family::decays>,
      dim3(static_cast<unsigned>(heads), static_cast<unsigned>((numbers + threads - 1) / threads)),
      dim3(threads), 0, stream, a.borders, through, a.segments - 1, a.latents, a.value_dim);
  return {a.borders.sum, through.total, through.maximum};
}

/// `a` holds all but what the plan says. The carry is read and advanced where it is given.
template <class Family, class T>
void recurrent_forward(RecurrentArguments<T> a, const RecurrentShape& shape, Stream stream,
                       void* workspace, std::size_t bytes) {
  if (shape.heads == 0 || shape.length == 0 || shape.latents == 0 || shape.value_dim == 0) return;
  const RecurrentPlan plan = plan_here<Family, T>(shape);
  Workspace space(workspace, bytes);
  const RecurrentSpace lent(space, shape, plan);
  a.length = static_cast<int>(shape.length);
  a.latents = static_cast<int>(shape.latents);
  a.value_dim = static_cast<int>(shape.value_dim);
  const bool carried = a.after.sum != nullptr;
  const bool one_block_reads_a_row = shape.value_dim <= step_threads;
  if (carried && shape.length == 1 && one_block_reads_a_row) {
    a.before = a.after;
    return launch_step<Family, T>(a, shape.heads, stream);
  }
  if (carried) {
    const std::int64_t rows = shape.heads * shape.latents;
    a.before = a.after;
    if (a.after.total != nullptr) a.before.total = lent.before.total;
    if (a.after.maximum != nullptr) a.before.maximum = lent.before.maximum;
    RecurrentState from = a.after;
    if (plan.segments > 1) {
      a.before.sum = lent.before.sum;
    } else {
      from.sum = nullptr;  // each of its columns is one block's alone
    }
    constexpr int threads = 256;
    const std::int64_t sums = from.sum == nullptr ? 0 : rows * shape.value_dim;
    const std::int64_t blocks = (std::max(rows, sums) + threads - 1) / threads;
    launch(copy_state, dim3(static_cast<unsigned>(blocks)), dim3(threads), 0, stream, from,
           lent.before, rows, sums);
  }
  if (plan.scan) return launch_scan<Family, T>(a, shape.heads, stream);
  if constexpr (Family::template by_chunks<T>) {
    a.query_pieces = by_pieces(a.query, shape.latents);
    a.key_pieces = by_pieces(a.key, shape.latents);
    a.value_pieces = by_pieces(a.values, shape.value_dim);
    a.out_pieces = by_pieces(a.out, shape.value_dim);
    a.slices = plan.slices;
    a.segments = plan.segments;
    a.segment_chunks = plan.segment_chunks;
    a.folded = plan.folded();
    a.borders = lent.borders;
    if (plan.segments > 1) {
      a.borders = recurrent_borders<Family>(a, plan, shape.heads, stream, lent.through);
    }
    launch_tiles<Family, T, true>(a, plan, shape.heads, stream);
  }
}

// The instances: cmake/cuda_instances.cmake makes a file of each, so that they compile side by
// side.
#define ATTNBENCH_RECURRENT_FORWARD(Family, T)                                                     \
  template std::size_t recurrent_forward_bytes<Family, T>(const RecurrentShape&);                  \
  template void recurrent_forward<Family, T>(RecurrentArguments<T>, const RecurrentShape&, Stream, \
                                             void*, std::size_t);
#define ATTNBENCH_RECURRENT_STATES(Family, T)                                             \
  template void recurrent_states<Family, T>(RecurrentArguments<T>, const RecurrentShape&, \
                                            const RecurrentPlan&, Stream);
#define ATTNBENCH_RECURRENT_BORDERS(Family, T)                                                     \
  template RecurrentState recurrent_borders<Family, T>(const RecurrentArguments<T>&,               \
                                                       const RecurrentPlan&, std::int64_t, Stream, \
                                                       const RecurrentState&);

}  // namespace attnbench::kernels::cuda
