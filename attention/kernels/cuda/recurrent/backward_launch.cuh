// Host side of the recurrent families' backward pass: the workspace, the launches.
#pragma once

#include "attention/kernels/cuda/launch.cuh"
#include "attention/kernels/cuda/recurrent/backward.cuh"
#include "attention/kernels/cuda/recurrent/gradient_launch.cuh"
#include "attention/kernels/cuda/recurrent/gradient_rows.cuh"
#include "attention/kernels/cuda/recurrent/gradient_scan.cuh"
#include "attention/kernels/workspace.hpp"

namespace attnbench::kernels::cuda {

template <class Family>
GradientArrays gradient_arrays(Workspace& space, const RecurrentShape& shape) {
  const std::int64_t rows = shape.heads * shape.length, numbers = rows * shape.latents;
  GradientArrays arrays;
  arrays.e = space.take<float>(numbers);
  if (Family::decays) arrays.decay = space.take<float>(numbers);
  arrays.w = space.take<float>(numbers);
  arrays.total = space.take<float>(numbers);
  arrays.x = space.take<float>(numbers);
  arrays.z = space.take<float>(numbers);
  arrays.whole = space.take<float>(rows);
  return arrays;
}

/// Calls f with how many of `inner` numbers a lane holds, as a constant.
template <class F>
void with_own(int inner, F&& f) {
  if (inner <= 64) {
    f(std::integral_constant<int, 2>{});
  } else if (inner <= 128) {
    f(std::integral_constant<int, 4>{});
  } else {
    f(std::integral_constant<int, 16>{});
  }
}

template <class Inner, class Outer, class Out>
void launch_gradient_scan(const GradientScan<Inner, Outer, Out>& scan, std::int64_t heads,
                          Stream stream) {
  constexpr int columns = scan_warps * scan_columns;
  const dim3 grid(static_cast<unsigned>(heads),
                  static_cast<unsigned>((scan.outer + columns - 1) / columns));
  with_own(scan.inner, [&](auto own) {
    launch(gradient_scan<Inner, Outer, Out, own()>, grid, dim3(32 * scan_warps),
           gradient_scan_bytes(scan.inner), stream, scan);
  });
}

template <class Family, class T>
std::size_t recurrent_backward_bytes(const RecurrentShape& shape) {
  if (gradients_by_chunks<Family, T>(shape)) return chunk_gradient_bytes<T>(shape);
  Workspace count;
  gradient_arrays<Family>(count, shape);
  return count.used();
}

template <class Family, class T>
void recurrent_backward(RecurrentArguments<T> a, const RecurrentGradients<T>& gradients,
                        const RecurrentShape& shape, Stream stream, void* workspace,
                        std::size_t bytes) {
  if (shape.heads == 0 || shape.length == 0 || shape.latents == 0 || shape.value_dim == 0) return;
  Workspace space(workspace, bytes);
  a.length = static_cast<int>(shape.length);
  a.latents = static_cast<int>(shape.latents);
  a.value_dim = static_cast<int>(shape.value_dim);
  if constexpr (Family::template by_chunks<T>) {
    if (gradients_by_chunks<Family, T>(shape)) {
      return chunk_gradients<Family>(a, gradients, shape, stream, space);
    }
  }
  const GradientArrays arrays = gradient_arrays<Family>(space, shape);
  const auto heads = static_cast<unsigned>(shape.heads);
  const std::int64_t rows = shape.heads * shape.length;
  const auto dense = [&](auto* data) {
    const std::int64_t head = shape.length * shape.latents;
    return Rows<std::remove_pointer_t<decltype(data)>>{data, a.heads * head, head, shape.latents};
  };
  const auto constant = [&](const float* data) { return dense(data); };

  with_own(a.latents, [&](auto own) {
    launch(gradient_weights<Family, T, own()>, dim3(heads), dim3(32),
           sizeof(float) * 2 * static_cast<std::size_t>(a.latents), stream, a, arrays);
  });

  GradientScan<T, float, float> x;
  x.read = gradients.d_out;
  x.left = a.values;
  x.right = constant(arrays.e);
  x.out = dense(arrays.x);
  x.decay = arrays.decay;
  x.left_mask = a.mask;
  x.mask_stride = a.mask_stride;
  x.heads = a.heads;
  x.length = a.length;
  x.inner = a.value_dim;
  x.outer = a.latents;
  launch_gradient_scan(x, shape.heads, stream);

  GradientScan<T, float, float> z = x;
  z.read = a.values;
  z.left = gradients.d_out;
  z.right = constant(arrays.w);
  z.out = dense(arrays.z);
  z.reverse = true;
  z.read_mask = a.mask;
  z.left_mask = nullptr;
  launch_gradient_scan(z, shape.heads, stream);

  GradientScan<float, T, T> v;
  v.read = constant(arrays.e);
  v.left = constant(arrays.w);
  v.right = gradients.d_out;
  v.out = gradients.d_values;
  v.decay = arrays.decay;
  v.decay_inner = v.reverse = true;
  v.heads = a.heads;
  v.length = a.length;
  v.inner = a.latents;
  v.outer = a.value_dim;
  launch_gradient_scan(v, shape.heads, stream);

  launch(gradient_queries<Family, T>, dim3(static_cast<unsigned>((rows + 7) / 8)), dim3(256), 0,
         stream, a, arrays, gradients.d_query, rows);
  const std::int64_t latents = shape.heads * shape.latents;
  launch(gradient_keys<Family, T>, dim3(static_cast<unsigned>((latents + 127) / 128)), dim3(128), 0,
         stream, a, arrays, gradients.d_key, latents);
}

// The instances, as in launch.cuh.
#define ATTNBENCH_RECURRENT_BACKWARD(Family, T)                                                    \
  template std::size_t recurrent_backward_bytes<Family, T>(const RecurrentShape&);                 \
  template void recurrent_backward<Family, T>(RecurrentArguments<T>, const RecurrentGradients<T>&, \
                                              const RecurrentShape&, Stream, void*, std::size_t);

}  // namespace attnbench::kernels::cuda
