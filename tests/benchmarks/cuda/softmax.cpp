// Softmax attention: the sizes of FlashAttention-3's figures (Shah et al. 2024: hidden size 2048,
// 16k tokens in all), full and causal, and windows.
#include "attention/kernels/cuda/softmax/softmax.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/benchmarks/cuda/arrays.hpp"
#include "tests/benchmarks/cuda/registry.hpp"

namespace attnbench::bench {
namespace {

using namespace kernels;

enum class Pass { forward, backward, forward_backward };

SoftmaxSizes sizes_of(std::int64_t length, std::int64_t head_dim, bool causal,
                      std::int64_t window) {
  SoftmaxSizes sizes;
  sizes.heads = sizes.kv_heads = 2048 / head_dim;
  sizes.batch = 16384 / length;
  sizes.length = sizes.key_length = length;
  sizes.head_dim = sizes.value_dim = head_dim;
  if (causal) sizes.right = 0;
  if (window > 0) sizes.left = window - 1;
  sizes.scale = 1 / std::sqrt(static_cast<double>(head_dim));
  return sizes;
}

/// Pairs of a query and a key that it sees, in one head.
double pairs_of(const SoftmaxSizes& sizes) {
  double pairs = 0;
  for (std::int64_t t = 0; t < sizes.length; ++t) {
    pairs += static_cast<double>(sizes.last_key(t) - sizes.first_key(t) + 1);
  }
  return pairs;
}

template <class T>
Cost cost_of(const SoftmaxSizes& sizes, Pass pass, const char* gemm) {
  const double grids = static_cast<double>(sizes.batch * sizes.heads);
  const double pairs = grids * pairs_of(sizes);
  const double rows = grids * static_cast<double>(sizes.length);
  const double row_bytes = static_cast<double>(sizes.head_dim) * sizeof(T);
  // Products of head_dim: two forward, five backward (Dao et al. 2022), each
  // two operations.
  const Cost forward{4 * pairs * static_cast<double>(sizes.head_dim), rows * (4 * row_bytes + 4),
                     pairs, gemm};
  // Read q, k, v, out, d_out and lse; written dq, dk and dv.
  const Cost backward{10 * pairs * static_cast<double>(sizes.head_dim), rows * (8 * row_bytes + 4),
                      pairs, gemm};
  if (pass == Pass::forward) return forward;
  if (pass == Pass::backward) return backward;
  return {forward.useful_flops + backward.useful_flops,
          forward.minimal_bytes + backward.minimal_bytes, 2 * pairs, gemm};
}

template <class T>
struct Call {
  SoftmaxArguments<T> arguments;
  SoftmaxGradients<T> gradients;
};

template <class T>
Work work_of(const SoftmaxSizes& sizes, Pass pass, const char* gemm) {
  const auto arrays = std::make_shared<Arrays>();
  const std::int64_t heads = sizes.heads, length = sizes.length, dim = sizes.head_dim;
  const std::int64_t count = sizes.batch * heads * length * dim;
  Work work;
  work.cost = cost_of<T>(sizes, pass, gemm);
  work.sets = rotating_sets(work.cost.minimal_bytes);
  const auto read = [&] { return dense<const T>(arrays->normal<T>(count), heads, length, dim); };
  const auto written = [&] {
    return dense<T>(arrays->uninitialised<T>(count), heads, length, dim);
  };
  std::vector<Call<T>> calls(static_cast<std::size_t>(work.sets));
  for (Call<T>& call : calls) {
    call.arguments.q = read();
    call.arguments.k = read();
    call.arguments.v = read();
    call.arguments.out = written();
    call.arguments.lse = arrays->uninitialised<Compute<T>>(sizes.batch * heads * length);
    if (pass != Pass::forward) call.gradients = {read(), written(), written(), written()};
  }
  const std::size_t forward_bytes = cuda::softmax_forward_bytes<T>(sizes);
  const std::size_t backward_bytes =
      pass == Pass::forward ? 0 : cuda::softmax_backward_bytes<T>(sizes);
  work.workspace_bytes =
      pass == Pass::backward ? backward_bytes : std::max(forward_bytes, backward_bytes);
  const std::size_t bytes = std::max(forward_bytes, backward_bytes);
  void* workspace = arrays->uninitialised<unsigned char>(static_cast<std::int64_t>(bytes));
  if (pass == Pass::backward) {  // what the backward pass reads of the forward one
    for (const Call<T>& call : calls) {
      cuda::softmax_forward(sizes, call.arguments, {}, workspace, bytes);
    }
  }
  work.launch = [=, keep = arrays](int set, Stream stream) {
    const Call<T>& call = calls[static_cast<std::size_t>(set)];
    if (pass != Pass::backward) {
      cuda::softmax_forward(sizes, call.arguments, stream, workspace, bytes);
    }
    if (pass != Pass::forward) {
      cuda::softmax_backward(sizes, call.arguments, call.gradients, stream, workspace, bytes);
    }
  };
  return work;
}

template <class T>
void add_case(const char* dtype, Pass pass, std::int64_t length, std::int64_t head_dim, bool causal,
              std::int64_t window) {
  const SoftmaxSizes sizes = sizes_of(length, head_dim, causal, window);
  const char* what = pass == Pass::forward    ? "softmax_forward"
                     : pass == Pass::backward ? "softmax_backward"
                                              : "softmax_forward_backward";
  add(name_of(what, dtype,
              {{"B", sizes.batch},
               {"H", sizes.heads},
               {"T", length},
               {"D", head_dim},
               {"causal", causal},
               {"window", window}}),
      [=] { return work_of<T>(sizes, pass, dtype); });
}

}  // namespace

void add_softmax() {
  for (const Pass pass : {Pass::forward, Pass::backward, Pass::forward_backward}) {
    for (const std::int64_t head_dim : {128, 64}) {
      for (const bool causal : {false, true}) {
        for (const std::int64_t length : {16384, 8192, 4096, 2048, 1024, 512}) {
          add_case<BFloat16>("bf16", pass, length, head_dim, causal, 0);
        }
      }
    }
    for (const std::int64_t window : {128, 512}) {
      add_case<BFloat16>("bf16", pass, 16384, 64, true, window);
    }
    // The other dtypes at one size each.
    add_case<Half>("fp16", pass, 8192, 128, true, 0);
    add_case<float>("fp32", pass, 2048, 64, true, 0);
  }
}

}  // namespace attnbench::bench
