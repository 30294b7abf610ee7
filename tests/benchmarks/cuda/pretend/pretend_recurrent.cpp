// The recurrent families on the device that only pretends: hold what they are given to the
// contract, and take the time of 2 TB/s.
#include "attention/kernels/cuda/recurrent/causal_product.hpp"
#include "attention/kernels/cuda/recurrent/prefix_pool.hpp"
#include "tests/benchmarks/cuda/pretend/pretend_arrays.hpp"

namespace attnbench::kernels::cuda {

using namespace bench::pretend;

namespace {

template <class T, class Sizes>
double seconds_of(const Sizes& s, std::int64_t width) {
  return static_cast<double>(s.batch * s.heads * s.length * (2 * width + 2 * s.value_dim)) *
         sizeof(T) / 2e12;
}

/// What both families have: query, key, values, out.
template <class T, class Sizes>
void check_arguments(const Sizes& s, std::int64_t width, const Rows<const T>& query,
                     const Rows<const T>& key, const Rows<const T>& values) {
  readable(query, s.batch, s.heads, s.length, width);
  readable(key, s.batch, s.heads, s.length, width);
  readable(values, s.batch, s.heads, s.length, s.value_dim);
}

template <class T, class Sizes>
void check_gradients(const Sizes& s, std::int64_t width, const Rows<const T>& d_out,
                     const Rows<T>& d_query, const Rows<T>& d_key, const Rows<T>& d_values) {
  readable(d_out, s.batch, s.heads, s.length, s.value_dim);
  written(d_query, s.batch, s.heads, s.length, width);
  written(d_key, s.batch, s.heads, s.length, width);
  written(d_values, s.batch, s.heads, s.length, s.value_dim);
}

}  // namespace

template <class T>
std::size_t prefix_pool_forward_bytes(const PrefixPoolSizes&) {
  return 128;
}
template <class T>
void prefix_pool_forward(const PrefixPoolSizes& s, const PrefixPoolArguments<T>& a, Stream stream,
                         void* workspace, std::size_t bytes) {
  check_workspace(workspace, bytes, prefix_pool_forward_bytes<T>(s));
  check_arguments<T>(s, s.latents, a.query, a.scores, a.values);
  written(a.out, s.batch, s.heads, s.length, s.value_dim);
  if (a.carry.sum != nullptr) {
    const std::int64_t latents = s.batch * s.heads * s.latents;
    written_dense(a.carry.maximum, latents);
    written_dense(a.carry.normaliser, latents);
    written_dense(a.carry.sum, latents * s.value_dim);
  }
  bench::pretend::launch(seconds_of<T>(s, s.latents), stream);
}

template <class T>
std::size_t causal_product_forward_bytes(const CausalProductSizes&) {
  return 128;
}
template <class T>
void causal_product_forward(const CausalProductSizes& s, const CausalProductArguments<T>& a,
                            Stream stream, void* workspace, std::size_t bytes) {
  check_workspace(workspace, bytes, causal_product_forward_bytes<T>(s));
  check_arguments<T>(s, s.features, a.query, a.key, a.values);
  written(a.out, s.batch, s.heads, s.length, s.value_dim);
  if (a.memory != nullptr) {
    const std::int64_t features = s.batch * s.heads * s.features;
    written_dense(a.memory, features * s.value_dim);
    if (s.normalised) written_dense(a.total, features);
  }
  bench::pretend::launch(seconds_of<T>(s, s.features), stream);
}

template <class T>
std::size_t prefix_pool_backward_bytes(const PrefixPoolSizes&) {
  return 256;
}
template <class T>
void prefix_pool_backward(const PrefixPoolSizes& s, const PrefixPoolArguments<T>& a,
                          const PrefixPoolGradients<T>& g, Stream stream, void* workspace,
                          std::size_t bytes) {
  check_workspace(workspace, bytes, prefix_pool_backward_bytes<T>(s));
  check_arguments<T>(s, s.latents, a.query, a.scores, a.values);
  check_gradients<T>(s, s.latents, g.d_out, g.d_query, g.d_scores, g.d_values);
  bench::pretend::launch(2 * seconds_of<T>(s, s.latents), stream);
}

template <class T>
std::size_t causal_product_backward_bytes(const CausalProductSizes&) {
  return 256;
}
template <class T>
void causal_product_backward(const CausalProductSizes& s, const CausalProductArguments<T>& a,
                             const CausalProductGradients<T>& g, Stream stream, void* workspace,
                             std::size_t bytes) {
  check_workspace(workspace, bytes, causal_product_backward_bytes<T>(s));
  check_arguments<T>(s, s.features, a.query, a.key, a.values);
  check_gradients<T>(s, s.features, g.d_out, g.d_query, g.d_key, g.d_values);
  bench::pretend::launch(2 * seconds_of<T>(s, s.features), stream);
}

#define ATTNBENCH_PRETEND(T)                                                                       \
  template std::size_t prefix_pool_forward_bytes<T>(const PrefixPoolSizes&);                       \
  template void prefix_pool_forward(const PrefixPoolSizes&, const PrefixPoolArguments<T>&, Stream, \
                                    void*, std::size_t);                                           \
  template std::size_t prefix_pool_backward_bytes<T>(const PrefixPoolSizes&);                      \
  template void prefix_pool_backward(const PrefixPoolSizes&, const PrefixPoolArguments<T>&,        \
                                     const PrefixPoolGradients<T>&, Stream, void*, std::size_t);   \
  template std::size_t causal_product_forward_bytes<T>(const CausalProductSizes&);                 \
  template void causal_product_forward(                                                            \
      const CausalProductSizes&, const CausalProductArguments<T>&, Stream, void*, std::size_t);    \
  template std::size_t causal_product_backward_bytes<T>(const CausalProductSizes&);                \
  template void causal_product_backward(                                                           \
      const CausalProductSizes&, const CausalProductArguments<T>&,                                 \
      const CausalProductGradients<T>&, Stream, void*, std::size_t)
ATTNBENCH_PRETEND(float);
ATTNBENCH_PRETEND(BFloat16);
ATTNBENCH_PRETEND(Half);

}  // namespace attnbench::kernels::cuda
