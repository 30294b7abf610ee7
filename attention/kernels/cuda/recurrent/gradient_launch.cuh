// Host side of recurrent_gradients.cuh: which sizes it takes, the workspace, the launches.
#pragma once

#include "attention/kernels/cuda/recurrent/backward.cuh"
#include "attention/kernels/cuda/recurrent/borders.cuh"
#include "attention/kernels/cuda/recurrent/key_gradients.cuh"
#include "attention/kernels/cuda/recurrent/query_gradients.cuh"
#include "attention/kernels/workspace.hpp"

namespace attnbench::kernels::cuda {

/// What the three launches of one tile are, and the most shared memory that one of them takes.
template <class Family, class T>
struct GradientTile {
  using Kernel = void (*)(RecurrentArguments<T>, ChunkGradients<T>);
  struct Launch {
    Kernel kernel = nullptr;
    int threads = 0, bytes = 0;
  };
  Launch queries, states, keys, values;  ///< `keys` may do what `values` would
  std::size_t bytes = 0;

  template <int Width, bool Keys, bool Values, bool Outputs>
  static Launch key_launch() {
    using Layout = KeyGradientLayout<Family, T, Width, Width, Keys, Values, Outputs>;
    return {recurrent_key_gradients<Family, T, Width, Width, Keys, Values, Outputs>,
            Layout::threads, Layout::bytes};
  }
  template <int Width>
  static GradientTile of() {
    using Layout = QueryGradientLayout<Family, T, Width, Width>;
    GradientTile tile;
    tile.queries = {recurrent_query_gradients<Family, T, Width, Width>, Layout::threads,
                    Layout::bytes};
    tile.states = key_launch<Width, true, false, false>();
    if constexpr (Width <= 64) {
      tile.keys = key_launch<Width, true, true, true>();
    } else {
      tile.keys = key_launch<Width, true, false, true>();
      tile.values = key_launch<Width, false, true, true>();
    }
    for (const Launch& each : {tile.queries, tile.states, tile.keys, tile.values}) {
      tile.bytes = std::max(tile.bytes, static_cast<std::size_t>(each.bytes));
    }
    return tile;
  }
  static GradientTile of(const RecurrentShape& shape) {
    return shape.latents <= 64 && shape.value_dim <= 64 ? of<64>() : of<128>();
  }
};

/// Whether gradients are taken by chunks on the tensor cores at these sizes on this card.
template <class Family, class T>
bool gradients_by_chunks(const RecurrentShape& shape) {
  if constexpr (Family::template by_chunks<T>) {
    return std::max(shape.latents, shape.value_dim) <= 128 &&
           GradientTile<Family, T>::of(shape).bytes <= card().shared_bytes;
  } else {
    return false;
  }
}

/// The workspace: what the first kernel keeps for the second, and the states at borders, of the one
/// and then of the other.
template <class T>
void lend_chunks(Workspace& space, const RecurrentShape& shape, const RecurrentPlan& plan,
                 ChunkGradients<T>& gradients, RecurrentState& borders, RecurrentState& through) {
  const std::int64_t rows = shape.heads * shape.length, latents = shape.heads * shape.latents;
  const std::int64_t chunks = (shape.length + chunk_tokens - 1) / chunk_tokens;
  gradients.whole = space.take<float>(rows);
  gradients.grad = space.take<float>(rows);
  gradients.starts.total = space.take<float>(latents * chunks);
  gradients.starts.maximum = space.take<float>(latents * chunks);
  const std::int64_t states = plan.segments - 1;
  if (states == 0) return;
  borders.sum = space.take<float>(latents * shape.value_dim * states);
  borders.total = space.take<float>(latents * states);
  borders.maximum = space.take<float>(latents * states);
  through.total = space.take<float>(latents * states);
  through.maximum = space.take<float>(latents * states);
  gradients.later = borders;
}

template <class T>
std::size_t chunk_gradient_bytes(const RecurrentShape& shape) {
  Workspace count;
  ChunkGradients<T> gradients;
  RecurrentState borders, through;
  lend_chunks(count, shape, plan_recurrence(shape, card().multiprocessors, false), gradients,
              borders, through);
  return count.used();
}

/// `a` holds all but what the plan says.
template <class Family, class T>
void chunk_gradients(RecurrentArguments<T> a, const RecurrentGradients<T>& gradients,
                     const RecurrentShape& shape, Stream stream, Workspace& space) {
  const RecurrentPlan plan = plan_recurrence(shape, card().multiprocessors, false);
  const auto tile = GradientTile<Family, T>::of(shape);
  ChunkGradients<T> g;
  RecurrentState through;
  lend_chunks(space, shape, plan, g, a.borders, through);
  const auto pieces = [](const auto& rows, std::int64_t width) { return by_pieces(rows, width); };
  g.d_out = gradients.d_out;
  g.d_query = gradients.d_query;
  g.d_key = gradients.d_key;
  g.d_values = gradients.d_values;
  g.d_out_pieces = pieces(g.d_out, shape.value_dim);
  g.d_query_pieces = pieces(g.d_query, shape.latents);
  g.d_key_pieces = pieces(g.d_key, shape.latents);
  g.d_value_pieces = pieces(g.d_values, shape.value_dim);
  a.query_pieces = pieces(a.query, shape.latents);
  a.key_pieces = pieces(a.key, shape.latents);
  a.value_pieces = pieces(a.values, shape.value_dim);
  a.segments = plan.segments;
  a.segment_chunks = plan.segment_chunks;
  a.folded = false;
  const auto borders = static_cast<unsigned>(a.segments - 1);
  if (borders > 0) {
    a.slices = plan.slices;
    a.borders = recurrent_borders<Family>(a, plan, shape.heads, stream, through);
  }
  a.slices = 1;
  const auto run = [&](const auto& each, unsigned segments) {
    if (each.kernel == nullptr || segments == 0) return;
    launch(each.kernel, dim3(static_cast<unsigned>(shape.heads), segments),
           dim3(static_cast<unsigned>(each.threads)), static_cast<std::size_t>(each.bytes), stream,
           a, g);
  };
  run(tile.queries, borders + 1);
  run(tile.states, borders);
  if (borders > 0) {
    constexpr int threads = 256;
    const std::int64_t numbers = shape.latents * (shape.value_dim + 1);
    const std::int64_t chunks = (shape.length + chunk_tokens - 1) / chunk_tokens;
    launch(pass_borders_back<Family::decays>,
           dim3(static_cast<unsigned>(shape.heads),
                static_cast<unsigned>((numbers + threads - 1) / threads)),
           dim3(threads), 0, stream, g.later, g.starts.maximum, a.segments - 1,
           static_cast<int>(chunks), a.segment_chunks, a.latents, a.value_dim);
  }
  run(tile.keys, borders + 1);
  run(tile.values, borders + 1);
}

}  // namespace attnbench::kernels::cuda
