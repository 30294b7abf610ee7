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

enum class Pass { forward, backward, forward_backward };

/// `width`: latents or features.
struct Shape {
  std::int64_t batch, length, heads, width, value_dim;

  std::int64_t tokens() const { return batch * heads * length; }
};

/// How a family looks from here: its types, its functions, and where its parts are.
template <class T>
struct PoolFamily {
  using Number = T;
  using Sizes = PrefixPoolSizes;
  using Arguments = PrefixPoolArguments<T>;
  using Gradients = PrefixPoolGradients<T>;
  static constexpr double exponentials = 2;  ///< a token and latent, of the score and of the query

  static Sizes sizes(const Shape& shape) {
    Sizes sizes;
    sizes.batch = shape.batch;
    sizes.heads = shape.heads;
    sizes.length = shape.length;
    sizes.latents = shape.width;
    sizes.value_dim = shape.value_dim;
    return sizes;
  }
  static void bind(Arguments& to, Rows<const T> query, Rows<const T> key) {
    to.query = query;
    to.scores = key;
  }
  static void carry(Arguments& to, const Shape& shape, Arrays& arrays) {
    const std::int64_t latents = shape.batch * shape.heads * shape.width;
    to.carry = {arrays.zeros<Compute<T>>(latents), arrays.zeros<Compute<T>>(latents),
                arrays.zeros<Compute<T>>(latents * shape.value_dim)};
  }
  static std::size_t forward_bytes(const Sizes& s) { return cuda::prefix_pool_forward_bytes<T>(s); }
  static std::size_t backward_bytes(const Sizes& s) {
    return cuda::prefix_pool_backward_bytes<T>(s);
  }
  static void forward(const Sizes& s, const Arguments& a, Stream stream, void* space,
                      std::size_t bytes) {
    cuda::prefix_pool_forward(s, a, stream, space, bytes);
  }
  static void backward(const Sizes& s, const Arguments& a, const Gradients& g, Stream stream,
                       void* space, std::size_t bytes) {
    cuda::prefix_pool_backward(s, a, g, stream, space, bytes);
  }
};

/// Linear attention: elu(x) + 1 and normalised, or `plain`, neither.
template <class T, bool plain>
struct ProductFamily {
  using Number = T;
  using Sizes = CausalProductSizes;
  using Arguments = CausalProductArguments<T>;
  using Gradients = CausalProductGradients<T>;
  static constexpr double exponentials = plain ? 0 : 2;

  static Sizes sizes(const Shape& shape) {
    Sizes sizes;
    sizes.batch = shape.batch;
    sizes.heads = shape.heads;
    sizes.length = shape.length;
    sizes.features = shape.width;
    sizes.value_dim = shape.value_dim;
    if (!plain) {
      sizes.feature = ProductFeature::elu_plus_one;
      sizes.normalised = true;
      sizes.epsilon = 1e-6;
    }
    return sizes;
  }
  static void bind(Arguments& to, Rows<const T> query, Rows<const T> key) {
    to.query = query;
    to.key = key;
  }
  static void carry(Arguments& to, const Shape& shape, Arrays& arrays) {
    const std::int64_t features = shape.batch * shape.heads * shape.width;
    to.memory = arrays.zeros<Compute<T>>(features * shape.value_dim);
    if (!plain) to.total = arrays.zeros<Compute<T>>(features);
  }
  static std::size_t forward_bytes(const Sizes& s) {
    return cuda::causal_product_forward_bytes<T>(s);
  }
  static std::size_t backward_bytes(const Sizes& s) {
    return cuda::causal_product_backward_bytes<T>(s);
  }
  static void forward(const Sizes& s, const Arguments& a, Stream stream, void* space,
                      std::size_t bytes) {
    cuda::causal_product_forward(s, a, stream, space, bytes);
  }
  static void backward(const Sizes& s, const Arguments& a, const Gradients& g, Stream stream,
                       void* space, std::size_t bytes) {
    cuda::causal_product_backward(s, a, g, stream, space, bytes);
  }
};

template <class Family>
Cost cost_of(const Shape& shape, Pass pass, const char* gemm) {
  const double tokens = static_cast<double>(shape.tokens());
  const double width = static_cast<double>(shape.width);
  const double dim = static_cast<double>(shape.value_dim);
  const double size = sizeof(typename Family::Number);
  const double product = tokens * width * dim;
  const double exponentials = Family::exponentials * tokens * width;
  // Read query, key and values (and d_out); written out, or a gradient each.
  const Cost forward{4 * product, tokens * size * (2 * width + 2 * dim), exponentials, gemm};
  const Cost backward{10 * product, tokens * size * (4 * width + 3 * dim), exponentials, gemm};
  if (pass == Pass::forward) return forward;
  if (pass == Pass::backward) return backward;
  return {forward.useful_flops + backward.useful_flops,
          forward.minimal_bytes + backward.minimal_bytes, 2 * exponentials, gemm};
}

template <class Family>
struct Call {
  typename Family::Arguments arguments;
  typename Family::Gradients gradients;
};

/// `step`: one token from a carried memory, read and written as a whole.
template <class Family>
Work work_of(const Shape& shape, Pass pass, bool step, const char* gemm) {
  using T = typename Family::Number;
  const auto arrays = std::make_shared<Arrays>();
  const auto sizes = Family::sizes(shape);
  Work work;
  work.cost = cost_of<Family>(shape, pass, gemm);
  if (step) {
    work.cost.minimal_bytes += 2.0 * sizeof(Compute<T>) *
                               static_cast<double>(shape.batch * shape.heads) *
                               static_cast<double>(shape.width * shape.value_dim);
  }
  work.sets = rotating_sets(work.cost.minimal_bytes);
  const auto rows = [&](T* data, std::int64_t width) {
    return dense(data, shape.heads, shape.length, width);
  };
  const auto read = [&](std::int64_t width) {
    const T* data = arrays->normal<T>(shape.tokens() * width);
    return dense(data, shape.heads, shape.length, width);
  };
  const auto written = [&](std::int64_t width) {
    return rows(arrays->uninitialised<T>(shape.tokens() * width), width);
  };
  std::vector<Call<Family>> calls(static_cast<std::size_t>(work.sets));
  for (Call<Family>& call : calls) {
    Family::bind(call.arguments, read(shape.width), read(shape.width));
    call.arguments.values = read(shape.value_dim);
    call.arguments.out = written(shape.value_dim);
    if (step) Family::carry(call.arguments, shape, *arrays);
    if (pass != Pass::forward) {
      call.gradients = {read(shape.value_dim), written(shape.width), written(shape.width),
                        written(shape.value_dim)};
    }
  }
  const std::size_t forward_bytes = pass == Pass::backward ? 0 : Family::forward_bytes(sizes);
  const std::size_t backward_bytes = pass == Pass::forward ? 0 : Family::backward_bytes(sizes);
  work.workspace_bytes = std::max(forward_bytes, backward_bytes);
  const std::size_t bytes = work.workspace_bytes;
  void* workspace = arrays->uninitialised<unsigned char>(static_cast<std::int64_t>(bytes));
  work.launch = [=, keep = arrays](int set, Stream stream) {
    const Call<Family>& call = calls[static_cast<std::size_t>(set)];
    if (pass != Pass::backward) {
      Family::forward(sizes, call.arguments, stream, workspace, bytes);
    }
    if (pass != Pass::forward) {
      Family::backward(sizes, call.arguments, call.gradients, stream, workspace, bytes);
    }
  };
  return work;
}

template <class Family>
void add_case(const std::string& family, const char* dtype, Pass pass, const Shape& shape) {
  const bool step = shape.length == 1;
  const char* suffix = step                     ? "_step"
                       : pass == Pass::forward  ? "_forward"
                       : pass == Pass::backward ? "_backward"
                                                : "_forward_backward";
  add(name_of(family + suffix, dtype,
              {{"B", shape.batch},
               {"H", shape.heads},
               {"T", shape.length},
               {"L", shape.width},
               {"D", shape.value_dim}}),
      [=] { return work_of<Family>(shape, pass, step, dtype); });
}

template <class Family>
void add_family(const std::string& family) {
  const std::vector<Shape> shapes{{1, 8192, 96, 128, 128}, {2, 16384, 16, 128, 128},
                                  {4, 4096, 64, 128, 128}, {8, 1024, 8, 64, 64},
                                  {1, 8192, 8, 64, 64},    {8, 8192, 16, 64, 64},
                                  {16, 8192, 32, 64, 64}};
  for (const Pass pass : {Pass::forward, Pass::backward, Pass::forward_backward}) {
    for (const Shape& shape : shapes) add_case<Family>(family, "bf16", pass, shape);
  }
  for (const Shape& shape :
       {Shape{1, 1, 16, 64, 64}, Shape{64, 1, 16, 64, 64}, Shape{64, 1, 16, 128, 128}}) {
    add_case<Family>(family, "bf16", Pass::forward, shape);
  }
}

}  // namespace

void add_recurrent() {
  add_family<PoolFamily<BFloat16>>("prefix_pool");
  add_family<ProductFamily<BFloat16, false>>("causal_product");
  add_family<ProductFamily<BFloat16, true>>("causal_product_plain");
  // The other dtypes at one size.
  const Shape shape{8, 8192, 16, 64, 64};
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    add_case<PoolFamily<Half>>("prefix_pool", "fp16", pass, shape);
    add_case<PoolFamily<float>>("prefix_pool", "fp32", pass, shape);
    add_case<ProductFamily<Half, false>>("causal_product", "fp16", pass, shape);
    add_case<ProductFamily<float, false>>("causal_product", "fp32", pass, shape);
  }
}

}  // namespace attnbench::bench
