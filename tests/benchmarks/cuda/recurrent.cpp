// The recurrent families, forward, backward and one step: the sizes of flash-linear-attention's
// README, and head dimension 64 at 2^16, 2^20 and 2^22 tokens times heads.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "attention/kernels/cuda/recurrent/causal_product.hpp"
#include "attention/kernels/cuda/recurrent/prefix_pool.hpp"
#include "tests/benchmarks/cuda/arrays.hpp"
#include "tests/benchmarks/cuda/registry.hpp"

namespace attnbench::bench {
namespace {

using namespace kernels;

/// `width`: latents or features. A length of 1 is a step from a carried memory.
struct Shape {
  std::int64_t batch, length, heads, width, value_dim;

  std::int64_t tokens() const { return batch * heads * length; }
  std::int64_t carried() const { return batch * heads * width; }
};

template <class T>
struct Pool {
  using Arguments = PrefixPoolArguments<T>;
  using Gradients = PrefixPoolGradients<T>;
  static constexpr const char* name = "prefix_pool";

  static PrefixPoolSizes sizes(const Shape& s) {
    return {s.batch, s.heads, s.length, s.width, s.value_dim, PoolQuery::logits, 1};
  }
  static Rows<const T>& key(Arguments& a) { return a.scores; }
  static void carry(Arguments& a, const Shape& s, Arrays& arrays) {
    a.carry = {arrays.zeros<Compute<T>>(s.carried()), arrays.zeros<Compute<T>>(s.carried()),
               arrays.zeros<Compute<T>>(s.carried() * s.value_dim)};
  }
  static constexpr auto forward_bytes = cuda::prefix_pool_forward_bytes<T>;
  static constexpr auto backward_bytes = cuda::prefix_pool_backward_bytes<T>;
  static constexpr auto forward = cuda::prefix_pool_forward<T>;
  static constexpr auto backward = cuda::prefix_pool_backward<T>;
};

/// Linear attention: elu(x) + 1 and normalised, or `plain`, neither.
template <class T, bool plain>
struct AnyProduct {
  using Arguments = CausalProductArguments<T>;
  using Gradients = CausalProductGradients<T>;
  static constexpr const char* name = plain ? "causal_product_plain" : "causal_product";

  static CausalProductSizes sizes(const Shape& s) {
    CausalProductSizes sizes{s.batch, s.heads, s.length, s.width, s.value_dim};
    if (!plain) sizes.feature = ProductFeature::elu_plus_one;
    sizes.normalised = !plain;
    sizes.epsilon = 1e-6;
    return sizes;
  }
  static Rows<const T>& key(Arguments& a) { return a.key; }
  static void carry(Arguments& a, const Shape& s, Arrays& arrays) {
    a.memory = arrays.zeros<Compute<T>>(s.carried() * s.value_dim);
    if (!plain) a.total = arrays.zeros<Compute<T>>(s.carried());
  }
  static constexpr auto forward_bytes = cuda::causal_product_forward_bytes<T>;
  static constexpr auto backward_bytes = cuda::causal_product_backward_bytes<T>;
  static constexpr auto forward = cuda::causal_product_forward<T>;
  static constexpr auto backward = cuda::causal_product_backward<T>;
};

template <class T>
using Product = AnyProduct<T, false>;
template <class T>
using PlainProduct = AnyProduct<T, true>;

enum Pass { forward = 1, backward = 2, forward_backward = 3 };

template <template <class> class Family, class T>
Work work_of(const Shape& shape, Pass pass, const char* dtype) {
  using F = Family<T>;
  const auto arrays = std::make_shared<Arrays>();
  const auto sizes = F::sizes(shape);
  const bool step = shape.length == 1;
  const double tokens = static_cast<double>(shape.tokens());
  const double width = static_cast<double>(shape.width);
  const double dim = static_cast<double>(shape.value_dim);
  const auto both = [&](double of_forward, double of_backward) {
    return (pass & forward ? of_forward : 0) + (pass & backward ? of_backward : 0);
  };
  Work work;
  // Read query, key and values (and d_out); written out, or a gradient each. An exponential of the
  // key and one of the query.
  work.cost = {both(4, 10) * tokens * width * dim,
               tokens * sizeof(T) * (both(2, 4) * width + both(2, 3) * dim),
               both(2, 2) * tokens * width, dtype};
  if (step) {
    work.cost.minimal_bytes +=
        2.0 * sizeof(Compute<T>) * static_cast<double>(shape.carried() * shape.value_dim);
  }
  work.sets = rotating_sets(work.cost.minimal_bytes);
  const auto rows = [&](T* data, std::int64_t columns) {
    return dense(data, shape.heads, shape.length, columns);
  };
  const auto read = [&](std::int64_t columns) {
    const T* data = arrays->normal<T>(shape.tokens() * columns);
    return dense(data, shape.heads, shape.length, columns);
  };
  const auto written = [&](std::int64_t columns) {
    return rows(arrays->uninitialised<T>(shape.tokens() * columns), columns);
  };
  struct Call {
    typename F::Arguments arguments;
    typename F::Gradients gradients;
  };
  std::vector<Call> calls(static_cast<std::size_t>(work.sets));
  for (Call& call : calls) {
    call.arguments.query = read(shape.width);
    F::key(call.arguments) = read(shape.width);
    call.arguments.values = read(shape.value_dim);
    if (step) F::carry(call.arguments, shape, *arrays);
    call.arguments.out = written(shape.value_dim);
    if (pass == forward) continue;
    call.gradients = {read(shape.value_dim), written(shape.width), written(shape.width),
                      written(shape.value_dim)};
  }
  const std::size_t bytes = std::max(pass & forward ? F::forward_bytes(sizes) : 0,
                                     pass & backward ? F::backward_bytes(sizes) : 0);
  work.workspace_bytes = bytes;
  void* workspace = arrays->uninitialised<unsigned char>(static_cast<std::int64_t>(bytes));
  work.launch = [=, keep = arrays](int set, Stream stream) {
    const Call& call = calls[static_cast<std::size_t>(set)];
    if (pass & forward) F::forward(sizes, call.arguments, stream, workspace, bytes);
    if (pass & backward) {
      F::backward(sizes, call.arguments, call.gradients, stream, workspace, bytes);
    }
  };
  return work;
}

template <template <class> class Family, class T>
void add_case(const char* dtype, Pass pass, const Shape& s) {
  constexpr const char* suffixes[] = {"", "_forward", "_backward", "_forward_backward"};
  const char* suffix = s.length == 1 ? "_step" : suffixes[pass];
  add(name_of(
          std::string(Family<T>::name) + suffix, dtype,
          {{"B", s.batch}, {"H", s.heads}, {"T", s.length}, {"L", s.width}, {"D", s.value_dim}}),
      [=] { return work_of<Family, T>(s, pass, dtype); });
}

template <template <class> class Family>
void add_family() {
  const Shape usual{8, 8192, 16, 64, 64};
  for (const Pass pass : {forward, backward, forward_backward}) {
    for (const Shape& shape : {Shape{1, 8192, 96, 128, 128},
                               {4, 4096, 64, 128, 128},
                               {8, 1024, 8, 64, 64},
                               usual,
                               {16, 8192, 32, 64, 64}}) {
      add_case<Family, BFloat16>("bf16", pass, shape);
    }
    add_case<Family, Half>("fp16", pass, usual);
    add_case<Family, float>("fp32", pass, usual);
  }
  for (const std::int64_t batch : {1, 64}) {
    add_case<Family, BFloat16>("bf16", forward, {batch, 1, 16, 64, 64});
  }
}

}  // namespace

void add_recurrent() {
  add_family<Pool>();
  add_family<Product>();
  add_family<PlainProduct>();
}

}  // namespace attnbench::bench
