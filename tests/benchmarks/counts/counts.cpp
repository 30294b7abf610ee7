// One call of one kernel on one thread, for valgrind to count its instructions:
//   attnbench-counts --list          the names of the calls, then "isa" and the instruction set
//   attnbench-counts NAME            makes that call once to touch its memory, and once counted
//   attnbench-counts NAME PERCENT LENGTH   the same of LENGTH tokens, followed in what is counted
//   by
//                                    a call of PERCENT % of them: the true ratio of the plugin
//                                    `slowed`; of causal_product alone
// Under `valgrind --tool=callgrind --toggle-collect=attnbench_counted` only what the second call
// does is counted.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "attention/kernels/causal_product.hpp"
#include "attention/kernels/cpu/simd/simd.hpp"
#include "attention/kernels/lavo.hpp"
#include "attention/kernels/prefix_pool.hpp"
#include "attention/kernels/softmax.hpp"
#include "attention/kernels/whole_pool.hpp"
#include "tests/benchmarks/aligned.hpp"

/// Where counting begins and ends.
extern "C" __attribute__((noinline, noclone, used)) void attnbench_counted(
    const std::function<void()>& call) {
  call();
  asm volatile("" ::: "memory");  // no tail call: the end is the end of this function
}

namespace {

using namespace attnbench::kernels;
using attnbench::bench::Block;
using attnbench::bench::block_of;

constexpr std::int64_t heads = 2, latents = 32, dim = 64;
std::int64_t length = 512;
std::int64_t percent_more = 0;

/// [1, heads, length, width], numbers of variance 1 around 0 that are the same in every run.
template <class T>
struct Array {
  std::int64_t width;
  Block<T> room;

  explicit Array(std::int64_t columns)
      : width(columns), room(block_of<T>(heads * length * columns)) {
    std::mt19937 engine(1);
    // Not std::normal_distribution, whose numbers are the library's own choice; valgrind makes a
    // better one slow.
    for (std::int64_t i = 0; i < heads * length * width; ++i) {
      const double uniform = static_cast<double>(engine()) / 4294967296.0;
      narrow(static_cast<float>(3.4 * (uniform - 0.5)), room[static_cast<std::size_t>(i)]);
    }
  }
  operator Rows<const T>() const {
    return {room.get(), heads * length * width, length * width, width};
  }
  operator Rows<T>() const { return {room.get(), heads * length * width, length * width, width}; }
};

template <class T>
void softmax(bool backward) {
  SoftmaxSizes sizes;
  sizes.heads = sizes.kv_heads = heads;
  sizes.length = sizes.key_length = length;
  sizes.head_dim = sizes.value_dim = dim;
  sizes.scale = 0.125;
  sizes.right = 0;
  const Array<T> q(dim), k(dim), v(dim), out(dim), d_out(dim), dq(dim), dk(dim), dv(dim);
  const auto lse = block_of<float>(heads * length);
  SoftmaxArguments<T> arguments;
  arguments.q = q;
  arguments.k = k;
  arguments.v = v;
  arguments.out = out;
  arguments.lse = lse.get();
  SoftmaxGradients<T> gradients;
  gradients.d_out = d_out;
  gradients.dq = dq;
  gradients.dk = dk;
  gradients.dv = dv;
  SerialTeam team;
  const std::size_t bytes =
      std::max(softmax_forward_bytes<T>(sizes, 1), softmax_backward_bytes<T>(sizes, 1));
  const auto space = block_of<std::byte>(static_cast<std::int64_t>(bytes));
  softmax_forward(sizes, arguments, team, space.get(), bytes);
  const auto call = [&] {
    if (backward) {
      softmax_backward(sizes, arguments, gradients, team, space.get(), bytes);
    } else {
      softmax_forward(sizes, arguments, team, space.get(), bytes);
    }
  };
  call();
  attnbench_counted(call);
}

/// A family with query, key and values, of one order or none.
template <class T, class Sizes, class Arguments, class Gradients>
struct Recurrent {
  Array<T> query{latents}, key{latents}, values{dim}, out{dim};
  Array<T> d_out{dim}, d_query{latents}, d_key{latents}, d_values{dim};
  Sizes sizes;

  Recurrent() {
    sizes.heads = heads;
    sizes.length = length;
    sizes.value_dim = dim;
  }
  Gradients gradients() const { return {d_out, d_query, d_key, d_values}; }

  template <class Forward, class Backward>
  void count(bool backward, std::size_t bytes, const Arguments& arguments, const Forward& forward,
             const Backward& back) const {
    SerialTeam team;
    const auto space = block_of<std::byte>(static_cast<std::int64_t>(bytes));
    const Gradients all = gradients();
    const auto call_of = [&](const Sizes& of) {
      if (of.length == 0) return;
      if (backward) {
        back(of, arguments, all, team, space.get(), bytes);
      } else {
        forward(of, arguments, team, space.get(), bytes);
      }
    };
    Sizes more = sizes;
    more.length = sizes.length * percent_more / 100;
    const auto call = [&] {
      call_of(sizes);
      call_of(more);
    };
    call();
    attnbench_counted(call);
  }
};

template <class T, class Sizes, class Family>
PrefixPoolArguments<T> pool_arguments(const Family& family) {
  PrefixPoolArguments<T> arguments;
  arguments.query = family.query;
  arguments.scores = family.key;
  arguments.values = family.values;
  arguments.out = family.out;
  return arguments;
}

template <class T>
void prefix_pool(bool backward) {
  Recurrent<T, PrefixPoolSizes, PrefixPoolArguments<T>, PrefixPoolGradients<T>> family;
  family.sizes.latents = latents;
  const std::size_t bytes = std::max(prefix_pool_forward_bytes<T>(family.sizes, 1),
                                     prefix_pool_backward_bytes<T>(family.sizes, 1));
  family.count(backward, bytes, pool_arguments<T, PrefixPoolSizes>(family), prefix_pool_forward<T>,
               prefix_pool_backward<T>);
}

template <class T>
void whole_pool(bool backward) {
  Recurrent<T, WholePoolSizes, WholePoolArguments<T>, PrefixPoolGradients<T>> family;
  family.sizes.latents = latents;
  family.sizes.key_length = length;
  const std::size_t bytes = std::max(whole_pool_forward_bytes<T>(family.sizes, 1),
                                     whole_pool_backward_bytes<T>(family.sizes, 1));
  const WholePoolArguments<T> arguments{pool_arguments<T, WholePoolSizes>(family), {}};
  family.count(backward, bytes, arguments, whole_pool_forward<T>, whole_pool_backward<T>);
}

template <class T>
void causal_product(bool backward) {
  Recurrent<T, CausalProductSizes, CausalProductArguments<T>, CausalProductGradients<T>> family;
  family.sizes.features = latents;
  family.sizes.feature = ProductFeature::elu_plus_one;
  family.sizes.normalised = true;
  family.sizes.epsilon = 1e-6;
  CausalProductArguments<T> arguments;
  arguments.query = family.query;
  arguments.key = family.key;
  arguments.values = family.values;
  arguments.out = family.out;
  const std::size_t bytes = std::max(causal_product_forward_bytes<T>(family.sizes, 1),
                                     causal_product_backward_bytes<T>(family.sizes, 1));
  family.count(backward, bytes, arguments, causal_product_forward<T>, causal_product_backward<T>);
}

void lavo(bool backward) {
  LavoSizes sizes;
  sizes.heads = heads;
  sizes.length = sizes.memory_length = length;
  sizes.bases = latents;
  sizes.head_dim = dim;
  sizes.scale = 0.125;
  const Array<float> query(dim), tokens(dim), out(dim), d_out(dim), d_query(dim), d_tokens(dim);
  const Array<float> bases(dim), d_bases(dim);  // more rows than there are bases
  LavoArguments<float> arguments;
  arguments.query = query;
  arguments.tokens = tokens;
  arguments.bases = {bases.room.get(), heads * latents * dim, latents * dim, dim};
  arguments.out = out;
  const LavoGradients<float> gradients{d_out, d_query, d_tokens, d_bases.room.get()};
  SerialTeam team;
  const std::size_t bytes =
      std::max(lavo_forward_bytes<float>(sizes, 1), lavo_backward_bytes<float>(sizes, 1));
  const auto space = block_of<std::byte>(static_cast<std::int64_t>(bytes));
  const auto call = [&] {
    if (backward) {
      lavo_backward(sizes, arguments, gradients, team, space.get(), bytes);
    } else {
      lavo_forward(sizes, arguments, team, space.get(), bytes);
    }
  };
  call();
  attnbench_counted(call);
}

using Case = std::pair<const char*, std::function<void()>>;

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"causal_product.bfloat16.backward", [] { causal_product<BFloat16>(true); }},
      {"causal_product.bfloat16.forward", [] { causal_product<BFloat16>(false); }},
      {"causal_product.float32.backward", [] { causal_product<float>(true); }},
      {"causal_product.float32.forward", [] { causal_product<float>(false); }},
      {"lavo.float32.backward", [] { lavo(true); }},
      {"lavo.float32.forward", [] { lavo(false); }},
      {"prefix_pool.bfloat16.backward", [] { prefix_pool<BFloat16>(true); }},
      {"prefix_pool.bfloat16.forward", [] { prefix_pool<BFloat16>(false); }},
      {"prefix_pool.float32.backward", [] { prefix_pool<float>(true); }},
      {"prefix_pool.float32.forward", [] { prefix_pool<float>(false); }},
      {"softmax.bfloat16.backward", [] { softmax<BFloat16>(true); }},
      {"softmax.bfloat16.forward", [] { softmax<BFloat16>(false); }},
      {"softmax.float32.backward", [] { softmax<float>(true); }},
      {"softmax.float32.forward", [] { softmax<float>(false); }},
      {"whole_pool.bfloat16.backward", [] { whole_pool<BFloat16>(true); }},
      {"whole_pool.bfloat16.forward", [] { whole_pool<BFloat16>(false); }},
      {"whole_pool.float32.backward", [] { whole_pool<float>(true); }},
      {"whole_pool.float32.forward", [] { whole_pool<float>(false); }}};
  return all;
}

const char* isa_name() {
  switch (best_isa()) {
    case Isa::baseline:
      return "baseline";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
    case Isa::amx:
      return "amx";
  }
  return "unknown";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    for (const auto& [name, call] : cases()) std::puts(name);
    std::printf("isa %s\n", isa_name());
    return 0;
  }
  const bool slowed = argc == 4 && std::strncmp(argv[1], "causal_product.", 15) == 0;
  if (slowed) {
    percent_more = std::atoi(argv[2]);
    length = std::atoi(argv[3]);
  }
  const bool sizes_fit = percent_more >= 0 && percent_more <= 100 && length >= 1 && length <= 65536;
  for (const auto& [name, call] : cases()) {
    if ((argc != 2 && !slowed) || !sizes_fit || std::strcmp(argv[1], name) != 0) continue;
    call();
    return 0;
  }
  std::fputs("attnbench-counts NAME [PERCENT LENGTH], or --list\n", stderr);
  return 2;
}
