// LAVO's running memory, forward, backward and one step: a mean for each token, and windows of 256
// averaged with what is read of those before.
#include "attention/kernels/cuda/lavo/lavo.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/benchmarks/cuda/arrays.hpp"
#include "tests/benchmarks/cuda/registry.hpp"

namespace attnbench::bench {
namespace {

using namespace kernels;

/// 64 bases of 64 numbers; window 0: a mean for each token. A length of 1 is a step.
template <class T>
Work work_of(std::int64_t batch, std::int64_t heads, std::int64_t length, std::int64_t window,
             bool backward, const char* dtype) {
  constexpr std::int64_t bases = 64, dim = 64;
  const auto arrays = std::make_shared<Arrays>();
  const std::int64_t slots = batch * heads, tokens = slots * length;
  const bool step = length == 1;
  LavoSizes sizes{batch, heads, length, length, bases, dim};
  sizes.scale = 0.125;
  if (window > 0) {
    sizes.order = MemoryOrder::windows;
    sizes.window = window;
    sizes.averaged = true;
  }
  Work work;
  const double products = window > 0 ? (backward ? 10 : 4) : (backward ? 14 : 6);
  // Query, token and result; backward those two, the upstream and two gradients. Bases once a head.
  work.cost = {products * static_cast<double>(tokens * bases * dim),
               sizeof(T) * static_cast<double>(tokens * dim * (backward ? 5 : 3) +
                                               heads * bases * dim * (backward ? 3 : 1)),
               static_cast<double>(tokens * bases), dtype};
  work.sets = rotating_sets(work.cost.minimal_bytes);
  const auto read = [&](std::int64_t rows, std::int64_t all) {
    const T* data = arrays->normal<T>(rows * all * dim);
    return dense(data, heads, rows, dim);
  };
  const auto written = [&] {
    return dense(arrays->uninitialised<T>(tokens * dim), heads, length, dim);
  };
  struct Call {
    LavoArguments<T> arguments;
    LavoGradients<T> gradients;
  };
  std::vector<Call> calls(static_cast<std::size_t>(work.sets));
  for (Call& call : calls) {
    LavoArguments<T>& a = call.arguments;
    a.query = read(length, slots);
    a.tokens = read(length, slots);
    a.bases = read(bases, heads);
    if (backward) {
      call.gradients = {read(length, slots), written(), written(),
                        arrays->uninitialised<Compute<T>>(heads * bases * dim)};
    } else {
      a.out = written();
    }
    if (!step) continue;
    a.carry.mean = arrays->zeros<Compute<T>>(slots * bases);
    a.carry.count = arrays->zeros<std::int64_t>(batch);
    if (window == 0) continue;
    a.carry.sum = arrays->zeros<Compute<T>>(slots * dim);
    a.carry.sum_count = arrays->zeros<std::int64_t>(batch);
  }
  const std::size_t bytes =
      backward ? cuda::lavo_backward_bytes<T>(sizes) : cuda::lavo_forward_bytes<T>(sizes);
  work.workspace_bytes = bytes;
  void* workspace = arrays->uninitialised<unsigned char>(static_cast<std::int64_t>(bytes));
  work.launch = [=, keep = arrays](int set, Stream stream) {
    const Call& call = calls[static_cast<std::size_t>(set)];
    if (backward) {
      cuda::lavo_backward(sizes, call.arguments, call.gradients, stream, workspace, bytes);
    } else {
      cuda::lavo_forward(sizes, call.arguments, stream, workspace, bytes);
    }
  };
  return work;
}

template <class T>
void add_case(const char* dtype, bool backward, std::int64_t batch, std::int64_t heads,
              std::int64_t length, std::int64_t window) {
  const char* suffix = length == 1 ? "_step" : backward ? "_backward" : "_forward";
  add(name_of(std::string("lavo") + suffix, dtype,
              {{"B", batch}, {"H", heads}, {"T", length}, {"window", window}}),
      [=] { return work_of<T>(batch, heads, length, window, backward, dtype); });
}

}  // namespace

void add_lavo() {
  for (const bool backward : {false, true}) {
    for (const std::int64_t window : {0, 256}) {
      add_case<BFloat16>("bf16", backward, 1, 8, 8192, window);
      add_case<BFloat16>("bf16", backward, 8, 16, 8192, window);
    }
    add_case<Half>("fp16", backward, 8, 16, 8192, 0);
    add_case<float>("fp32", backward, 8, 16, 8192, 0);
  }
  for (const std::int64_t window : {0, 256}) {
    add_case<BFloat16>("bf16", false, 1, 16, 1, window);
    add_case<BFloat16>("bf16", false, 64, 16, 1, window);
  }
}

}  // namespace attnbench::bench
