// Families that go from token to token: causal product, prefix pool, gated state, selective scan;
// and the pool without an order, whose arguments are theirs.
#include <algorithm>

#include "attention/kernels/causal_product.hpp"
#include "attention/kernels/gated_state.hpp"
#include "attention/kernels/prefix_pool.hpp"
#include "attention/kernels/selective_scan.hpp"
#include "attention/kernels/whole_pool.hpp"
#include "tests/benchmarks/counts/calls.hpp"

namespace attnbench::counts {
namespace {

/// A family with query, key and values.
template <class T, class Sizes, class Arguments, class Gradients>
struct Recurrent {
  std::int64_t length, percent_more;
  Array<T> query{length, latents}, key{length, latents}, values{length, dim}, out{length, dim};
  Array<T> d_out{length, dim}, d_query{length, latents}, d_key{length, latents};
  Array<T> d_values{length, dim};
  Sizes sizes;

  explicit Recurrent(const Tokens& tokens)
      : length(tokens.length), percent_more(tokens.percent_more) {
    sizes.heads = heads;
    sizes.length = length;
    sizes.value_dim = dim;
  }

  template <class Forward, class Backward>
  void counted(bool backward, std::size_t bytes, const Arguments& arguments, const Forward& forward,
               const Backward& back) const {
    SerialTeam team;
    const auto space = space_of(bytes);
    const Gradients all{d_out, d_query, d_key, d_values};
    const auto call_of = [&](const Sizes& of) {
      if (of.length == 0) return;
      if (backward) {
        back(of, arguments, all, team, space.get(), bytes);
      } else {
        forward(of, arguments, team, space.get(), bytes);
      }
    };
    Sizes more = sizes;
    more.length = length * percent_more / 100;
    count([&] {
      call_of(sizes);
      call_of(more);
    });
  }
};

template <class T, class Family>
PrefixPoolArguments<T> pool_arguments(const Family& family) {
  PrefixPoolArguments<T> arguments;
  arguments.query = family.query;
  arguments.scores = family.key;
  arguments.values = family.values;
  arguments.out = family.out;
  return arguments;
}

template <class T>
void prefix_pool(const Tokens& tokens, bool backward) {
  Recurrent<T, PrefixPoolSizes, PrefixPoolArguments<T>, PrefixPoolGradients<T>> family(tokens);
  family.sizes.latents = latents;
  const std::size_t bytes = std::max(prefix_pool_forward_bytes<T>(family.sizes, 1),
                                     prefix_pool_backward_bytes<T>(family.sizes, 1));
  family.counted(backward, bytes, pool_arguments<T>(family), prefix_pool_forward<T>,
                 prefix_pool_backward<T>);
}

template <class T>
void whole_pool(const Tokens& tokens, bool backward) {
  Recurrent<T, WholePoolSizes, WholePoolArguments<T>, PrefixPoolGradients<T>> family(tokens);
  family.sizes.latents = latents;
  family.sizes.key_length = tokens.length;
  const std::size_t bytes = std::max(whole_pool_forward_bytes<T>(family.sizes, 1),
                                     whole_pool_backward_bytes<T>(family.sizes, 1));
  const WholePoolArguments<T> arguments{pool_arguments<T>(family), {}};
  family.counted(backward, bytes, arguments, whole_pool_forward<T>, whole_pool_backward<T>);
}

template <class T>
void causal_product(const Tokens& tokens, bool backward) {
  Recurrent<T, CausalProductSizes, CausalProductArguments<T>, CausalProductGradients<T>> family(
      tokens);
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
  family.counted(backward, bytes, arguments, causal_product_forward<T>, causal_product_backward<T>);
}

enum class Erasure { none, by_key, by_removal };

/// With `gates` log decays a token: 1 (Mamba-2, retention) or `latents` (gated linear attention);
/// with an erasure it is the gated delta rule, and by a removal key RWKV-7.
void gated_state(const Tokens& tokens, std::int64_t gates, Erasure erasure, bool backward) {
  const std::int64_t length = tokens.length;
  GatedStateSizes sizes;
  sizes.heads = heads;
  sizes.length = length;
  sizes.rows = latents;
  sizes.width = dim;
  sizes.gates = gates;
  sizes.erases = erasure == Erasure::by_key;
  sizes.removes = erasure == Erasure::by_removal;
  const Array<float> query(length, latents), values(length, dim), out(length, dim);
  Array<float> key(length, latents), decay(length, gates), beta(length, 1);
  Array<float> erased(length, latents);
  // Keys of norm about 1/2, decays from -0.1 to 0, erasures of 0.1 to 0.9: the state stays small.
  for (std::int64_t i = 0; i < key.size(); ++i) key[i] /= 11;
  for (std::int64_t i = 0; i < key.size(); ++i) erased[i] = key[i] / 2;
  for (std::int64_t i = 0; i < decay.size(); ++i) decay[i] = (decay[i] - 1.7F) / 34;
  for (std::int64_t i = 0; i < beta.size(); ++i) beta[i] = 0.5F + beta[i] / 4.25F;
  GatedStateArguments<float> arguments;
  arguments.query = query;
  arguments.key = key;
  arguments.values = values;
  arguments.log_decay = decay;
  arguments.beta = beta;
  arguments.removal = key;
  arguments.erased = erased;
  arguments.out = out;
  const Array<float> d_out(length, dim), d_query(length, latents), d_key(length, latents);
  const Array<float> d_values(length, dim), d_beta(length, 1), d_read(length, latents);
  const Array<float> d_removal(length, latents), d_erased(length, latents);
  const GatedStateGradients<float> gradients{d_out,  d_query, d_key,     d_values,
                                             d_beta, d_read,  d_removal, d_erased};
  SerialTeam team;
  const std::size_t bytes = std::max(gated_state_forward_bytes<float>(sizes, 1),
                                     gated_state_backward_bytes<float>(sizes, 1));
  const auto space = space_of(bytes);
  count([&] {
    if (backward) {
      gated_state_backward(sizes, arguments, gradients, team, space.get(), bytes);
    } else {
      gated_state_forward(sizes, arguments, team, space.get(), bytes);
    }
  });
}

/// With the 16 numbers of a channel's state that Mamba has, heads with inputs and reads of their
/// own.
void selective_scan(const Tokens& tokens, bool backward) {
  constexpr std::int64_t rows = 16;
  const std::int64_t length = tokens.length;
  const SelectiveScanSizes sizes{1, heads, heads, length, rows, dim};
  const Array<float> values(length, dim), input(length, rows), read(length, rows), out(length, dim);
  Array<float> step(length, dim), rate(rows, dim);
  for (std::int64_t i = 0; i < step.size(); ++i) step[i] = (step[i] + 1.7F) / 34;
  for (std::int64_t i = 0; i < rate.size(); ++i) rate[i] = 4 * (rate[i] - 2);
  SelectiveScanArguments<float> arguments;
  arguments.step = step;
  arguments.values = values;
  arguments.input = input;
  arguments.read = read;
  arguments.rate = rate.room.get();
  arguments.out = out;
  const Array<float> d_out(length, dim), d_step(length, dim), d_values(length, dim);
  const Array<float> d_input(length, rows), d_read(length, rows), d_rate(rows, dim);
  const SelectiveScanGradients<float> gradients{d_out,   d_step, d_values,
                                                d_input, d_read, d_rate.room.get()};
  SerialTeam team;
  const std::size_t bytes = std::max(selective_scan_forward_bytes<float>(sizes, 1),
                                     selective_scan_backward_bytes<float>(sizes, 1));
  const auto space = space_of(bytes);
  count([&] {
    if (backward) {
      selective_scan_backward(sizes, arguments, gradients, team, space.get(), bytes);
    } else {
      selective_scan_forward(sizes, arguments, team, space.get(), bytes);
    }
  });
}

/// NAME.float32 and NAME.bfloat16, forward and backward.
template <class Float, class Brain>
void add(std::vector<Case>& all, const std::string& name, const Float& of_float,
         const Brain& of_brain) {
  for (const bool backward : {true, false}) {
    const std::string pass = backward ? ".backward" : ".forward";
    all.push_back({name + ".bfloat16" + pass, two_lengths,
                   [=](const Tokens& tokens) { of_brain(tokens, backward); }});
    all.push_back({name + ".float32" + pass, two_lengths,
                   [=](const Tokens& tokens) { of_float(tokens, backward); }});
  }
}

}  // namespace

std::vector<Case> recurrent_cases() {
  std::vector<Case> all;
  add(all, "causal_product", causal_product<float>, causal_product<BFloat16>);
  add(all, "prefix_pool", prefix_pool<float>, prefix_pool<BFloat16>);
  add(all, "whole_pool", whole_pool<float>, whole_pool<BFloat16>);
  for (const bool backward : {true, false}) {
    const std::string pass = backward ? ".float32.backward" : ".float32.forward";
    const auto add_gated = [&](const std::string& name, std::int64_t gates, Erasure erasure,
                               const std::vector<std::int64_t>& lengths) {
      all.push_back({name + pass, lengths,
                     [=](const Tokens& tokens) { gated_state(tokens, gates, erasure, backward); }});
    };
    add_gated("gated_state", 1, Erasure::none, two_lengths);
    add_gated("gated_state_rows", latents, Erasure::none, {512});
    add_gated("gated_state_erasing", 1, Erasure::by_key, two_lengths);
    add_gated("gated_state_rows_erasing", latents, Erasure::by_key, {512});
    add_gated("gated_state_removing", latents, Erasure::by_removal, {512});
    all.push_back({"selective_scan" + pass, two_lengths,
                   [=](const Tokens& tokens) { selective_scan(tokens, backward); }});
  }
  return all;
}

}  // namespace attnbench::counts
