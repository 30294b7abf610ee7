// LAVO's running memory, forward, backward and one step: a mean for each token, and windows of 256
// averaged with what is read of those before.
#include "attention/kernels/cuda/lavo/lavo.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/benchmarks/cuda/arrays.hpp"
#include "tests/benchmarks/cuda/registry.hpp"

namespace attnbench::bench {
namespace {

using namespace kernels;

struct Shape {
  std::int64_t batch, heads, length, bases, head_dim, window;  ///< window 0: a mean for each token

  std::int64_t tokens() const { return batch * heads * length; }
  LavoSizes sizes() const {
    LavoSizes sizes;
    sizes.batch = batch;
    sizes.heads = heads;
    sizes.length = sizes.memory_length = length;
    sizes.bases = bases;
    sizes.head_dim = head_dim;
    sizes.scale = 0.125;
    if (window > 0) {
      sizes.order = MemoryOrder::windows;
      sizes.window = window;
      sizes.averaged = true;
    }
    return sizes;
  }
};

template <class T>
Cost cost_of(const Shape& shape, bool backward, const char* gemm) {
  const double tokens = static_cast<double>(shape.tokens());
  const double bases = static_cast<double>(shape.bases * shape.head_dim);
  const double products = shape.window > 0 ? (backward ? 10 : 4) : (backward ? 14 : 6);
  // Query, token and result; backward those two, the upstream and two gradients. Bases once a head.
  const double rows = tokens * static_cast<double>(shape.head_dim) * (backward ? 5 : 3);
  const double shared = static_cast<double>(shape.heads) * bases * (backward ? 3 : 1);
  return {products * tokens * bases, sizeof(T) * (rows + shared),
          tokens * static_cast<double>(shape.bases), gemm};
}

template <class T>
struct Call {
  LavoArguments<T> arguments;
  LavoGradients<T> gradients;
};

template <class T>
Work work_of(const Shape& shape, bool backward, const char* gemm) {
  const auto arrays = std::make_shared<Arrays>();
  const LavoSizes sizes = shape.sizes();
  const std::int64_t heads = shape.batch * shape.heads;
  const bool step = shape.length == 1;
  Work work;
  work.cost = cost_of<T>(shape, backward, gemm);
  work.sets = rotating_sets(work.cost.minimal_bytes);
  const auto read = [&](std::int64_t slots, std::int64_t length) {
    const T* data = arrays->normal<T>(slots * length * shape.head_dim);
    return dense(data, shape.heads, length, shape.head_dim);
  };
  const auto written = [&] {
    T* data = arrays->uninitialised<T>(shape.tokens() * shape.head_dim);
    return dense(data, shape.heads, shape.length, shape.head_dim);
  };
  std::vector<Call<T>> calls(static_cast<std::size_t>(work.sets));
  for (Call<T>& call : calls) {
    LavoArguments<T>& a = call.arguments;
    a.query = read(heads, shape.length);
    a.tokens = read(heads, shape.length);
    a.bases = read(shape.heads, shape.bases);
    if (backward) {
      call.gradients = {
          read(heads, shape.length), written(), written(),
          arrays->uninitialised<Compute<T>>(shape.heads * shape.bases * shape.head_dim)};
    } else {
      a.out = written();
    }
    if (!step) continue;
    a.carry.mean = arrays->zeros<Compute<T>>(heads * shape.bases);
    a.carry.count = arrays->zeros<std::int64_t>(shape.batch);
    if (shape.window == 0) continue;
    a.carry.sum = arrays->zeros<Compute<T>>(heads * shape.head_dim);
    a.carry.sum_count = arrays->zeros<std::int64_t>(shape.batch);
  }
  const std::size_t bytes =
      backward ? cuda::lavo_backward_bytes<T>(sizes) : cuda::lavo_forward_bytes<T>(sizes);
  work.workspace_bytes = bytes;
  void* workspace = arrays->uninitialised<unsigned char>(static_cast<std::int64_t>(bytes));
  work.launch = [=, keep = arrays](int set, Stream stream) {
    const Call<T>& call = calls[static_cast<std::size_t>(set)];
    if (backward) {
      cuda::lavo_backward(sizes, call.arguments, call.gradients, stream, workspace, bytes);
    } else {
      cuda::lavo_forward(sizes, call.arguments, stream, workspace, bytes);
    }
  };
  return work;
}

template <class T>
void add_case(const char* dtype, bool backward, const Shape& shape) {
  const char* suffix = shape.length == 1 ? "_step" : backward ? "_backward" : "_forward";
  add(name_of(std::string("lavo") + suffix, dtype,
              {{"B", shape.batch},
               {"H", shape.heads},
               {"T", shape.length},
               {"L", shape.bases},
               {"D", shape.head_dim},
               {"window", shape.window}}),
      [=] { return work_of<T>(shape, backward, dtype); });
}

}  // namespace

void add_lavo() {
  for (const bool backward : {false, true}) {
    for (const std::int64_t window : {0, 256}) {
      for (const Shape& shape :
           {Shape{1, 8, 8192, 64, 64, window}, Shape{8, 16, 8192, 64, 64, window},
            Shape{2, 16, 16384, 128, 128, window}}) {
        add_case<BFloat16>("bf16", backward, shape);
      }
    }
    add_case<Half>("fp16", backward, {8, 16, 8192, 64, 64, 0});
    add_case<float>("fp32", backward, {8, 16, 8192, 64, 64, 0});
  }
  for (const std::int64_t window : {0, 256}) {
    for (const std::int64_t batch : {1, 64}) {
      add_case<BFloat16>("bf16", false, {batch, 16, 1, 64, 64, window});
    }
  }
}

}  // namespace attnbench::bench
