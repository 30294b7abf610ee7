// The softmax family on the device that only pretends: holds what it is given to the contract, and
// takes the time of 500 TFLOP/s.
#include "attention/kernels/cuda/softmax/softmax.hpp"
#include "tests/benchmarks/cuda/pretend/pretend_arrays.hpp"

namespace attnbench::kernels::cuda {

using namespace bench::pretend;

namespace {

double products(const SoftmaxSizes& s) {
  return 2.0 * static_cast<double>(s.batch * s.heads * s.length * s.key_length * s.head_dim);
}

template <class T>
void check_arguments(const SoftmaxSizes& s, const SoftmaxArguments<T>& a) {
  readable(a.q, s.batch, s.heads, s.length, s.head_dim);
  readable(a.k, s.batch, s.kv_heads, s.key_length, s.head_dim);
  readable(a.v, s.batch, s.kv_heads, s.key_length, s.value_dim);
  if (a.lse == nullptr) throw std::logic_error("no lse");
  if (s.bias_reach < 0) return;
  const auto biases = static_cast<std::size_t>(2 * s.bias_reach + 1);
  in_one_block(a.bias, biases * sizeof(Compute<T>));
}

}  // namespace

template <class T>
std::size_t softmax_forward_bytes(const SoftmaxSizes&) {
  return 128;
}
template <class T>
void softmax_forward(const SoftmaxSizes& s, const SoftmaxArguments<T>& a, Stream stream,
                     void* workspace, std::size_t bytes) {
  check_workspace(workspace, bytes, softmax_forward_bytes<T>(s));
  check_arguments(s, a);
  written(a.out, s.batch, s.heads, s.length, s.value_dim);
  written_dense(a.lse, s.batch * s.heads * s.length);
  bench::pretend::launch(2 * products(s) / 500e12, stream);
}
template <class T>
std::size_t softmax_backward_bytes(const SoftmaxSizes&) {
  return 256;
}
template <class T>
void softmax_backward(const SoftmaxSizes& s, const SoftmaxArguments<T>& a,
                      const SoftmaxGradients<T>& g, Stream stream, void* workspace,
                      std::size_t bytes) {
  check_workspace(workspace, bytes, softmax_backward_bytes<T>(s));
  check_arguments(s, a);
  was_written(a.out, "out");
  readable(g.d_out, s.batch, s.heads, s.length, s.value_dim);
  written(g.dq, s.batch, s.heads, s.length, s.head_dim);
  written(g.dk, s.batch, s.kv_heads, s.key_length, s.head_dim);
  written(g.dv, s.batch, s.kv_heads, s.key_length, s.value_dim);
  if (s.bias_reach >= 0) written_dense(g.d_bias, 2 * s.bias_reach + 1);
  bench::pretend::launch(5 * products(s) / 500e12, stream);
}

#define ATTNBENCH_PRETEND(T)                                                                    \
  template std::size_t softmax_forward_bytes<T>(const SoftmaxSizes&);                           \
  template void softmax_forward(const SoftmaxSizes&, const SoftmaxArguments<T>&, Stream, void*, \
                                std::size_t);                                                   \
  template std::size_t softmax_backward_bytes<T>(const SoftmaxSizes&);                          \
  template void softmax_backward(const SoftmaxSizes&, const SoftmaxArguments<T>&,               \
                                 const SoftmaxGradients<T>&, Stream, void*, std::size_t)
ATTNBENCH_PRETEND(float);
ATTNBENCH_PRETEND(BFloat16);
ATTNBENCH_PRETEND(Half);

}  // namespace attnbench::kernels::cuda
