#include "attention/kernels/cuda/whole_pool_averages.cuh"
#include "attention/kernels/cuda/whole_pool_launch.cuh"

namespace attnbench::kernels::cuda {

template <>
std::int64_t average_segments<BFloat16>(const WholePoolShape& shape) {
  const std::int64_t width = std::min<std::int64_t>(pool_group, shape.latents);
  return plan_states(shape, width, card().multiprocessors).segments;
}
template <>
void pool_averages(const WholePoolSizes& sizes, const WholePoolArguments<BFloat16>& arguments,
                   const ExactPool& pool, Stream stream) {
  const auto segments = static_cast<int>(average_segments<BFloat16>(pool.shape));
  launch_states(sizes, arguments, pool.states, segments, stream);
  PoolMerge<float> merge;
  merge.from = pool.states;
  merge.group = pool_group;
  merge.segments = segments;
  merge.latents = static_cast<int>(pool.shape.latents);
  merge.value_dim = static_cast<int>(pool.shape.value_dim);
  merge.heads = pool.shape.heads;
  merge.out = pool.averages;
  merge.normaliser = pool.normaliser;
  merge.minus_maximum = pool.minus_maximum;
  merge.gain = pool.gain;
  launch_merge(merge, stream);
}

template std::size_t pool_forward_bytes<BFloat16>(const WholePoolSizes&);
template void pool_forward<BFloat16>(const WholePoolSizes&, const WholePoolArguments<BFloat16>&,
                                     Stream, void*, std::size_t);

}  // namespace attnbench::kernels::cuda
