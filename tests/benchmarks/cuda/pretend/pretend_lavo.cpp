// LAVO's running memory on the device that only pretends: holds what it is given to the contract,
// and takes the time of 2 TB/s.
#include "attention/kernels/cuda/lavo/lavo.hpp"
#include "tests/benchmarks/cuda/pretend/pretend_arrays.hpp"

namespace attnbench::kernels::cuda {

using namespace bench::pretend;

namespace {

template <class T>
void check(const LavoSizes& s, const LavoArguments<T>& a) {
  readable(a.query, s.batch, s.heads, s.length, s.head_dim);
  readable(a.tokens, s.batch, s.heads, s.memory_length, s.head_dim);
  readable(a.bases, 1, s.heads, s.bases, s.head_dim);
}

template <class T>
double seconds_of(const LavoSizes& s, int arrays) {
  return static_cast<double>(s.batch * s.heads * s.length * s.head_dim * arrays) * sizeof(T) / 2e12;
}

}  // namespace

template <class T>
std::size_t lavo_forward_bytes(const LavoSizes&) {
  return 128;
}
template <class T>
void lavo_forward(const LavoSizes& s, const LavoArguments<T>& a, Stream stream, void* workspace,
                  std::size_t bytes) {
  check_workspace(workspace, bytes, lavo_forward_bytes<T>(s));
  check(s, a);
  written(a.out, s.batch, s.heads, s.length, s.head_dim);
  if (a.carry.mean != nullptr) {
    written_dense(a.carry.mean, s.batch * s.heads * s.bases);
    written_dense(a.carry.count, s.batch);
    if (s.order == MemoryOrder::windows) {
      written_dense(a.carry.sum, s.batch * s.heads * s.head_dim);
      written_dense(a.carry.sum_count, s.batch);
    }
  }
  bench::pretend::launch(seconds_of<T>(s, 3), stream);
}

template <class T>
std::size_t lavo_backward_bytes(const LavoSizes&) {
  return 256;
}
template <class T>
void lavo_backward(const LavoSizes& s, const LavoArguments<T>& a, const LavoGradients<T>& g,
                   Stream stream, void* workspace, std::size_t bytes) {
  check_workspace(workspace, bytes, lavo_backward_bytes<T>(s));
  check(s, a);
  readable(g.d_out, s.batch, s.heads, s.length, s.head_dim);
  written(g.d_query, s.batch, s.heads, s.length, s.head_dim);
  written(g.d_tokens, s.batch, s.heads, s.memory_length, s.head_dim);
  written_dense(g.d_bases, s.heads * s.bases * s.head_dim);
  bench::pretend::launch(seconds_of<T>(s, 5), stream);
}

#define ATTNBENCH_INSTANTIATE(T)                                                          \
  template std::size_t lavo_forward_bytes<T>(const LavoSizes&);                           \
  template void lavo_forward<T>(const LavoSizes&, const LavoArguments<T>&, Stream, void*, \
                                std::size_t);                                             \
  template std::size_t lavo_backward_bytes<T>(const LavoSizes&);                          \
  template void lavo_backward<T>(const LavoSizes&, const LavoArguments<T>&,               \
                                 const LavoGradients<T>&, Stream, void*, std::size_t);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(BFloat16)
ATTNBENCH_INSTANTIATE(Half)

}  // namespace attnbench::kernels::cuda
