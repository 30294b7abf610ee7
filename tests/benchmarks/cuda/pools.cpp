// The families without an order, bf16: the whole pool (bidirectional Latte, exact Performer)
// forward and backward, and the two softmaxes that Luna, Perceiver and Linformer are made of, few
// queries of many keys and many of few.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "attention/kernels/cuda/softmax/softmax.hpp"
#include "attention/kernels/cuda/pool/whole_pool.hpp"
#include "tests/benchmarks/cuda/arrays.hpp"
#include "tests/benchmarks/cuda/registry.hpp"

namespace attnbench::bench {
namespace {

using namespace kernels;

/// `length` queries and keys, `latents` in between.
struct Shape {
  std::int64_t batch, length, heads, latents, dim;

  std::int64_t tokens() const { return batch * heads * length; }
  Numbers numbers() const {
    return {{"B", batch}, {"H", heads}, {"T", length}, {"L", latents}, {"D", dim}};
  }
};

/// Arrays [batch, heads, rows, width] of one call.
template <class T>
struct Rooms {
  Arrays& arrays;
  const Shape& shape;

  Rows<const T> read(std::int64_t rows, std::int64_t width) const {
    const T* data = arrays.normal<T>(shape.batch * shape.heads * rows * width);
    return dense(data, shape.heads, rows, width);
  }
  Rows<T> written(std::int64_t rows, std::int64_t width) const {
    T* data = arrays.uninitialised<T>(shape.batch * shape.heads * rows * width);
    return dense(data, shape.heads, rows, width);
  }
};

/// Products of L x D for each token: two forward, five backward (averages again, their gradient,
/// and one for each input's). Inputs are read, results written once.
template <class T>
Cost pool_cost(const Shape& shape, bool backward, const char* gemm) {
  const double tokens = static_cast<double>(shape.tokens());
  const double latents = static_cast<double>(shape.latents), dim = static_cast<double>(shape.dim);
  const double products = backward ? 5 : 2;
  const double numbers = backward ? 4 * latents + 3 * dim : 2 * latents + 2 * dim;
  return {2 * products * tokens * latents * dim, tokens * numbers * sizeof(T), 2 * tokens * latents,
          gemm};
}

/// Forward, of logits made of tokens `dim` wide: a product with the directions for each side more.
template <class T>
Cost directed_cost(const Shape& shape, const char* gemm) {
  Cost cost = pool_cost<T>(shape, false, gemm);
  const double tokens = static_cast<double>(shape.tokens()), dim = static_cast<double>(shape.dim);
  cost.useful_flops *= 2;
  cost.minimal_bytes = tokens * 4 * dim * sizeof(T);
  return cost;
}

/// `directed`: logits are made of tokens and directions, with the kind of exact Performer.
template <class T>
Work pool_work(const Shape& shape, PoolQuery kind, bool backward, bool directed, const char* gemm) {
  struct Call {
    WholePoolArguments<T> arguments;
    PrefixPoolGradients<T> gradients;
  };
  WholePoolSizes sizes;
  sizes.batch = shape.batch;
  sizes.heads = shape.heads;
  sizes.length = sizes.key_length = shape.length;
  sizes.latents = shape.latents;
  sizes.value_dim = shape.dim;
  sizes.query = kind;
  if (directed) sizes.directions = {shape.dim, true};
  const std::int64_t width = directed ? shape.dim : shape.latents;
  const auto arrays = std::make_shared<Arrays>();
  Work work;
  work.cost = directed ? directed_cost<T>(shape, gemm) : pool_cost<T>(shape, backward, gemm);
  work.sets = rotating_sets(work.cost.minimal_bytes);
  const Rooms<T> rooms{*arrays, shape};
  std::vector<Call> calls(static_cast<std::size_t>(work.sets));
  for (Call& call : calls) {
    call.arguments.query = rooms.read(shape.length, width);
    call.arguments.scores = rooms.read(shape.length, width);
    if (directed) {
      call.arguments.directions = {arrays->normal<float>(shape.latents * shape.dim), 0, 0,
                                   shape.dim};
    }
    call.arguments.values = rooms.read(shape.length, shape.dim);
    call.arguments.out = rooms.written(shape.length, shape.dim);
    if (!backward) continue;
    call.gradients = {
        rooms.read(shape.length, shape.dim), rooms.written(shape.length, shape.latents),
        rooms.written(shape.length, shape.latents), rooms.written(shape.length, shape.dim)};
  }
  const std::size_t bytes = backward ? cuda::whole_pool_backward_bytes<T>(sizes)
                                     : cuda::whole_pool_forward_bytes<T>(sizes);
  work.workspace_bytes = bytes;
  void* workspace = arrays->uninitialised<unsigned char>(static_cast<std::int64_t>(bytes));
  work.launch = [=, keep = arrays](int set, Stream stream) {
    const Call& call = calls[static_cast<std::size_t>(set)];
    if (backward) {
      cuda::whole_pool_backward(sizes, call.arguments, call.gradients, stream, workspace, bytes);
    } else {
      cuda::whole_pool_forward(sizes, call.arguments, stream, workspace, bytes);
    }
  };
  return work;
}

/// `pack`: the latents read all tokens; else all tokens read the latents.
template <class T>
Work slots_work(const Shape& shape, bool pack, const char* gemm) {
  SoftmaxSizes sizes;
  sizes.batch = shape.batch;
  sizes.heads = sizes.kv_heads = shape.heads;
  sizes.length = pack ? shape.latents : shape.length;
  sizes.key_length = pack ? shape.length : shape.latents;
  sizes.head_dim = sizes.value_dim = shape.dim;
  sizes.scale = 1 / std::sqrt(static_cast<double>(shape.dim));
  const auto arrays = std::make_shared<Arrays>();
  const double pairs = static_cast<double>(shape.tokens() * shape.latents);
  const double rows = static_cast<double>(shape.batch * shape.heads) *
                      static_cast<double>(2 * (shape.length + shape.latents));
  Work work;
  work.cost = {4 * pairs * static_cast<double>(shape.dim),
               rows * static_cast<double>(shape.dim) * sizeof(T), pairs, gemm};
  work.sets = rotating_sets(work.cost.minimal_bytes);
  const Rooms<T> rooms{*arrays, shape};
  std::vector<SoftmaxArguments<T>> calls(static_cast<std::size_t>(work.sets));
  for (SoftmaxArguments<T>& call : calls) {
    call.q = rooms.read(sizes.length, shape.dim);
    call.k = rooms.read(sizes.key_length, shape.dim);
    call.v = rooms.read(sizes.key_length, shape.dim);
    call.out = rooms.written(sizes.length, shape.dim);
    call.lse = arrays->uninitialised<Compute<T>>(shape.batch * shape.heads * sizes.length);
  }
  const std::size_t bytes = cuda::softmax_forward_bytes<T>(sizes);
  work.workspace_bytes = bytes;
  void* workspace = arrays->uninitialised<unsigned char>(static_cast<std::int64_t>(bytes));
  work.launch = [=, keep = arrays](int set, Stream stream) {
    cuda::softmax_forward(sizes, calls[static_cast<std::size_t>(set)], stream, workspace, bytes);
  };
  return work;
}

template <class T>
void add_pool(const char* dtype, const char* kind_name, PoolQuery kind, bool backward,
              const Shape& shape) {
  const std::string what = std::string("whole_pool") + kind_name;
  add(name_of(what + (backward ? "_backward" : "_forward"), dtype, shape.numbers()),
      [=] { return pool_work<T>(shape, kind, backward, false, dtype); });
}

}  // namespace

void add_pools() {
  const std::vector<Shape> shapes{{8, 8192, 16, 64, 64},  {2, 16384, 16, 128, 128},
                                  {1, 8192, 8, 64, 64},   {16, 8192, 32, 64, 64},
                                  {8, 8192, 16, 256, 64}, {4, 5000, 4, 128, 128}};
  for (const bool backward : {false, true}) {
    for (const Shape& shape : shapes) {
      add_pool<BFloat16>("bf16", "", PoolQuery::logits, backward, shape);
    }
    add_pool<BFloat16>("bf16", "_normaliser", PoolQuery::logits_plus_z, backward,
                       {8, 8192, 16, 256, 64});
    add_pool<Half>("fp16", "", PoolQuery::logits, backward, shapes.front());
    add_pool<float>("fp32", "", PoolQuery::logits, backward, shapes.front());
  }
  for (const Shape& shape : {Shape{8, 8192, 16, 256, 64}, Shape{8, 8192, 16, 266, 64}}) {
    add(name_of("whole_pool_directed_forward", "bf16", shape.numbers()),
        [=] { return pool_work<BFloat16>(shape, PoolQuery::logits_plus_z, false, true, "bf16"); });
  }
  for (const std::int64_t latents : {16, 64, 256}) {
    const Shape shape{8, 8192, 16, latents, 64};
    for (const bool pack : {true, false}) {
      add(name_of(pack ? "slots_pack_forward" : "slots_read_forward", "bf16", shape.numbers()),
          [=] { return slots_work<BFloat16>(shape, pack, "bf16"); });
    }
  }
}

}  // namespace attnbench::bench
