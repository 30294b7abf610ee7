#include "attention/algorithms/softmax/implementations.hpp"

#include <algorithm>
#include <cmath>

#include "attention/kernels/softmax.hpp"
#include "attention/torch/cuda.hpp"

namespace attnbench {
namespace {

double real(std::int64_t count) { return static_cast<double>(count); }

constexpr std::int64_t default_keys = 128;
/// The rank of our kernel on a card: below torch_sdpa until it was measured to be faster there,
/// above tensor operations.
constexpr int kUnmeasured = 2;
/// The default window, whose sides depend on the pattern.
constexpr Window default_per_head{-1, -1};

Support in_torch(const Options&, const Problem& problem) {
  if (problem.dtype == Dtype::float16 && problem.device == "cpu") {
    return Support::no("LibTorch multiplies no float16 matrices on the CPU");
  }
  return {};
}

Cost composite_cost(Cost cost, const Window& band, const Problem& problem) {
  const double bytes = real(bytes_of(problem.dtype));
  const double heads = real(problem.batch * problem.heads);
  const double square = real(problem.length) * real(problem.key_length);
  const double dims = real(problem.head_dim + problem.value_dim);
  const bool masked = band.left < problem.key_length - 1 || band.right < problem.key_length - 1;
  const double scaled = heads * real(problem.length * problem.head_dim) * bytes;
  cost.executed_flops = 2 * dims * heads * square;
  cost.exponentials = heads * square;
  cost.workspace_bytes = 2 * heads * square * bytes + (masked ? square : 0) + scaled;
  cost.saved_bytes = heads * square * bytes + (masked ? square : 0) + scaled;
  cost.backward_flops = 2.0;
  return cost;
}

Cost chunked_cost(Cost cost, const Window& band, const Options& options, const Problem& problem) {
  const double bytes = std::max(4.0, real(bytes_of(problem.dtype)));
  const double heads = real(problem.batch * problem.heads);
  const std::int64_t rows = std::min(options.integer("query_chunk"), problem.length);
  const std::int64_t seen =
      std::min(band.left, unlimited / 4) + std::min(band.right, unlimited / 4);
  const std::int64_t keys =
      std::min({options.integer("key_chunk"), problem.key_length, seen + rows});
  const double pairs = blocked_pairs(problem, band, rows, keys, false);
  const double block = real(rows) * real(keys);
  // The mask at a block's edge is computed from distances, integers of 8 bytes.
  const double edge = real(rows) * real(std::min(rows, keys));
  const double mask =
      band.left < problem.key_length || band.right < problem.key_length ? 19 * edge : 0;
  cost.executed_flops = 2 * real(problem.head_dim + problem.value_dim) * heads * pairs;
  cost.exponentials = heads * pairs;
  cost.workspace_bytes =
      heads * bytes *
          (block + real(rows * problem.head_dim) + 2 * real(rows * problem.value_dim) +
           5 * real(rows) + real(problem.length)) +
      mask;
  cost.saved_bytes = heads * real(problem.length) * bytes;
  return cost;
}

kernels::SoftmaxSizes kernel_sizes(const Window& band, const Problem& problem) {
  kernels::SoftmaxSizes sizes;
  sizes.batch = problem.batch;
  sizes.heads = problem.heads;
  sizes.kv_heads = problem.kv_heads;
  sizes.length = problem.length;
  sizes.key_length = problem.key_length;
  sizes.head_dim = problem.head_dim;
  sizes.value_dim = problem.value_dim;
  sizes.left = band.left;
  sizes.right = band.right;
  return sizes;
}

Cost tiled_cost(Cost cost, const Window& band, const Problem& problem) {
  const double heads = real(problem.batch * problem.heads);
  const double pairs = blocked_pairs(problem, band, 64, 64, true);
  cost.executed_flops = 2 * real(problem.head_dim + problem.value_dim) * heads * pairs;
  cost.exponentials = heads * pairs;
  cost.workspace_bytes = tiled_workspace_bytes(problem, kernel_sizes(band, problem));
  cost.saved_bytes = heads * real(problem.length) * (problem.dtype == Dtype::float64 ? 8 : 4);
  return cost;
}

}  // namespace

Cost common_softmax_cost(const BandedMechanism& mechanism, const Options& options,
                         const Problem& problem) {
  const Window band = mechanism.band(options, problem);
  const double heads = real(problem.batch * problem.heads);
  const double kv_heads = real(problem.batch * problem.kv_heads);
  const double bytes = real(bytes_of(problem.dtype));
  const double dims = real(problem.head_dim + problem.value_dim);
  Cost cost;
  cost.model_flops = 2 * dims * heads * real(visible_pairs(problem, band.left, band.right));
  cost.minimal_bytes =
      dims * bytes * (heads * real(problem.length) + kv_heads * real(problem.key_length));
  cost.state_bytes = dims * bytes * kv_heads * real(mechanism.state_keys(options, problem));
  return cost;
}

double blocked_pairs(const Problem& problem, const Window& band, std::int64_t rows,
                     std::int64_t columns, bool whole) {
  const std::int64_t offset = problem.key_length - problem.length;
  double pairs = 0;
  for (std::int64_t t0 = 0; t0 < problem.length; t0 += rows) {
    const std::int64_t count = std::min(rows, problem.length - t0);
    const std::int64_t first = std::max<std::int64_t>(0, t0 + offset - band.left);
    const std::int64_t last =
        std::min(problem.key_length - 1, t0 + count - 1 + offset + band.right);
    std::int64_t keys = std::max<std::int64_t>(0, last + 1 - first);
    if (whole) keys = (keys + columns - 1) / columns * columns;
    pairs += real(count) * real(keys);
  }
  return pairs;
}

Implementation composite_softmax(const BandedMechanism& mechanism) {
  return {.name = "composite",
          .title = "whole score matrices in tensor operations",
          .supports = in_torch,
          .mix =
              [mechanism](Mechanism& module, const Inputs& inputs, State* state) {
                return Mixed{softmax_composite(mechanism.call(module, inputs, state)), {}};
              },
          .cost =
              [mechanism](const Options& options, const Problem& problem) {
                return composite_cost(common_softmax_cost(mechanism, options, problem),
                                      mechanism.band(options, problem), problem);
              },
          .growth = {.time_in_length = 2, .workspace_in_length = 2, .workspace_in_head_dim = 0}};
}

Implementation chunked_softmax(const BandedMechanism& mechanism) {
  return {.name = "chunked",
          .title = "chunks in tensor operations, Rabe and Staats 2021",
          .supports = in_torch,
          .mix =
              [mechanism](Mechanism& module, const Inputs& inputs, State* state) {
                return Mixed{softmax_chunked(mechanism.call(module, inputs, state),
                                             module.options.integer("query_chunk"),
                                             module.options.integer("key_chunk")),
                             {}};
              },
          .cost =
              [mechanism](const Options& options, const Problem& problem) {
                return chunked_cost(common_softmax_cost(mechanism, options, problem),
                                    mechanism.band(options, problem), options, problem);
              },
          // One chunk of queries against one chunk of keys at a time; below 4096 tokens there are
          // few chunks, and none is skipped.
          .growth = {.time_in_length = 2, .workspace_in_length = 0, .from_length = 4096},
          .rank = 1};
}

Implementation tiled_softmax(const BandedMechanism& mechanism) {
  return {.name = "tiled",
          .title = "tiles with an online softmax in one kernel, Dao et al. 2022",
          .supports =
              [mechanism](const Options& options, const Problem& problem) {
                const Window band = mechanism.band(options, problem);
                return tiled_supports(problem, kernel_sizes(band, problem));
              },
          .mix =
              [mechanism](Mechanism& module, const Inputs& inputs, State* state) {
                return Mixed{softmax_tiled(mechanism.call(module, inputs, state)), {}};
              },
          .cost =
              [mechanism](const Options& options, const Problem& problem) {
                return tiled_cost(common_softmax_cost(mechanism, options, problem),
                                  mechanism.band(options, problem), problem);
              },
          .growth = {.time_in_length = 2, .workspace_in_length = 0},
          .rank = 10,
          .cuda_rank = kUnmeasured};
}

Implementation fused_softmax(const BandedMechanism& mechanism) {
  Implementation implementation = tiled_softmax(mechanism);
  implementation.name = "fused";
  implementation.title = "the tiled kernel on a CUDA device";
  implementation.supports = [tiled = implementation.supports](const Options& options,
                                                              const Problem& problem) {
    if (!is_cuda(problem.device)) return Support::no("on the CPU the kernel is called tiled");
    return tiled(options, problem);
  };
  implementation.cuda_rank = kUnmeasured + 1;
  return implementation;
}

std::vector<Implementation> softmax_implementations(const BandedMechanism& mechanism) {
  std::vector<Implementation> all{composite_softmax(mechanism), chunked_softmax(mechanism),
                                  tiled_softmax(mechanism), fused_softmax(mechanism)};
  for (Implementation& peer : sdpa_softmax(mechanism)) all.push_back(std::move(peer));
  return all;
}

std::vector<Option> chunk_options(std::vector<Option> first, std::int64_t query_chunk,
                                  std::int64_t key_chunk) {
  first.push_back(Option::integer("query_chunk", query_chunk,
                                  "queries per chunk of the implementation chunked", 1));
  first.push_back(
      Option::integer("key_chunk", key_chunk, "keys per chunk of the implementation chunked", 1));
  return first;
}

Option scale_option() {
  return Option::number("scale", 0, "factor on q.k before the softmax; 0 = 1/sqrt(head_dim)");
}

double scale_of(const Mechanism& mechanism) {
  const double scale = mechanism.options.number("scale");
  return scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(mechanism.problem.head_dim));
}

Option window_option() {
  return {
      "window", OptionType::window, default_per_head,
      "keys seen: 128 means 128 keys, the token itself included; {\"left\", \"right\"} sets the "
      "keys on each side. Default (-1, -1): 128 keys"};
}

Options derive_window(const Options& options, const Problem& problem) {
  Options derived = options;
  const Window window = options.window("window");
  if (window == default_per_head) {
    derived.set("window", problem.pattern == Pattern::causal
                              ? Window{default_keys - 1, 0}
                              : Window{default_keys / 2, default_keys / 2 - 1});
  } else if (problem.pattern == Pattern::causal && window.right != 0) {
    throw UsageError("window: a causal window must have right 0, not " +
                     std::to_string(window.right));
  }
  return derived;
}

}  // namespace attnbench
