// The whole pool on the device that only pretends: holds what it is given to the contract, and
// takes the time of 2 TB/s.
#include "attention/kernels/cuda/pool/whole_pool.hpp"
#include "tests/benchmarks/cuda/pretend/pretend_arrays.hpp"

namespace attnbench::kernels::cuda {

using namespace bench::pretend;

namespace {

template <class T>
double seconds_of(const WholePoolSizes& s) {
  return static_cast<double>(s.batch * s.heads * (s.length + s.key_length) *
                             (s.latents + s.value_dim)) *
         sizeof(T) / 2e12;
}

template <class T>
void check_arguments(const WholePoolSizes& s, const WholePoolArguments<T>& a) {
  const std::int64_t width = s.directions.dim > 0 ? s.directions.dim : s.latents;
  readable(a.query, s.batch, s.heads, s.length, width);
  readable(a.scores, s.batch, s.heads, s.key_length, width);
  if (s.directions.dim > 0) readable(a.directions, 1, s.heads, s.latents, s.directions.dim);
  readable(a.values, s.batch, s.heads, s.key_length, s.value_dim);
}

}  // namespace

template <class T>
std::size_t whole_pool_forward_bytes(const WholePoolSizes&) {
  return 128;
}
template <class T>
void whole_pool_forward(const WholePoolSizes& s, const WholePoolArguments<T>& a, Stream stream,
                        void* workspace, std::size_t bytes) {
  check_workspace(workspace, bytes, whole_pool_forward_bytes<T>(s));
  check_arguments(s, a);
  written(a.out, s.batch, s.heads, s.length, s.value_dim);
  bench::pretend::launch(seconds_of<T>(s), stream);
}

template <class T>
std::size_t whole_pool_backward_bytes(const WholePoolSizes&) {
  return 256;
}
template <class T>
void whole_pool_backward(const WholePoolSizes& s, const WholePoolArguments<T>& a,
                         const PrefixPoolGradients<T>& g, Stream stream, void* workspace,
                         std::size_t bytes) {
  check_workspace(workspace, bytes, whole_pool_backward_bytes<T>(s));
  check_arguments(s, a);
  readable(g.d_out, s.batch, s.heads, s.length, s.value_dim);
  written(g.d_query, s.batch, s.heads, s.length, s.latents);
  written(g.d_scores, s.batch, s.heads, s.key_length, s.latents);
  written(g.d_values, s.batch, s.heads, s.key_length, s.value_dim);
  bench::pretend::launch(2 * seconds_of<T>(s), stream);
}

#define ATTNBENCH_PRETEND(T)                                                                    \
  template std::size_t whole_pool_forward_bytes<T>(const WholePoolSizes&);                      \
  template void whole_pool_forward(const WholePoolSizes&, const WholePoolArguments<T>&, Stream, \
                                   void*, std::size_t);                                         \
  template std::size_t whole_pool_backward_bytes<T>(const WholePoolSizes&);                     \
  template void whole_pool_backward(const WholePoolSizes&, const WholePoolArguments<T>&,        \
                                    const PrefixPoolGradients<T>&, Stream, void*, std::size_t)
ATTNBENCH_PRETEND(float);
ATTNBENCH_PRETEND(BFloat16);
ATTNBENCH_PRETEND(Half);

}  // namespace attnbench::kernels::cuda
