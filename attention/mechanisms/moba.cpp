// Mixture of Block Attention, Lu et al. 2025 (MoBA): softmax attention over a query's own block of
// keys and over those earlier blocks whose mean keys have the greatest products with it.
#include <algorithm>

#include "attention/algorithms/blocks/blocks.hpp"
#include "attention/algorithms/softmax/implementations.hpp"
#include "attention/entry_parts.hpp"

namespace attnbench::mechanisms {
namespace {

using at::Tensor;

constexpr std::int64_t kBlock = 128;
constexpr std::int64_t kBlocks = 3;  // as published

std::int64_t block_of(const Options& options) { return options.integer("block"); }
/// Blocks that a query chooses beside its own.
std::int64_t past_of(const Options& options) { return options.integer("blocks") - 1; }

class Moba : public Mechanism {
 public:
  using Mechanism::Mechanism;

  std::vector<Role> roles() const override { return query_key_value(problem); }

  /// All keys and values seen, and sums of each block's keys in double.
  State empty_state(std::int64_t batch, std::int64_t capacity,
                    const at::TensorOptions& tensor) const override {
    State state;
    add_cache(state, problem, batch, capacity, tensor);
    const std::int64_t blocks = blocks_of(capacity, block_of(options));
    const auto doubles = tensor.dtype(at::kDouble);
    state.tensors["key_sum"] =
        at::zeros({batch, problem.kv_heads, blocks, problem.head_dim}, doubles);
    state.tensors["block_tokens"] = at::zeros({batch, blocks}, doubles);
    return state;
  }
};

/// A call over all tokens seen, and the blocks that each new query chooses.
struct MobaCall {
  SoftmaxCall softmax;
  Tensor chosen;  ///< [B, H, T, n]
};

MobaCall moba_call(const Mechanism& mechanism, const Inputs& inputs, State* state) {
  const std::int64_t size = block_of(mechanism.options), past = past_of(mechanism.options);
  SoftmaxCall call{inputs["query"], inputs["key"], inputs["value"], inputs.key_mask,
                   scale_of(mechanism)};
  const at::NoGradGuard no_grad;  // a choice has no gradient
  const std::int64_t begin = state == nullptr ? 0 : state->position;
  BlockSums keys;
  if (state == nullptr) {
    if (past > 0) keys = block_sums(call.k, call.key_mask, size);
  } else {
    const Tensor fresh = call.k, fresh_mask = call.key_mask;
    take_into_cache("moba", *state, call);
    keys = {(*state)["key_sum"], (*state)["block_tokens"]};
    add_block_sums(keys, block_sums(fresh, fresh_mask, size, begin % size), begin / size);
  }
  call.right = 0;
  call.offset = begin;
  return {call, blocks_by_mean(call, keys, size, past)};
}

Support supports(const Options&, const Problem& problem) {
  if (problem.pattern == Pattern::causal) return {};
  return Support::no(std::string("moba: ") + to_string(problem.pattern) +
                     " is undefined, a query chooses among the blocks before its own; use the "
                     "causal pattern");
}

/// What choosing adds to any form, and the pairs that a query sees.
Cost moba_cost(Cost cost, const Options& options, const Problem& problem) {
  const double heads = static_cast<double>(problem.batch * problem.heads);
  const double kv_heads = static_cast<double>(problem.batch * problem.kv_heads);
  const double width = static_cast<double>(problem.head_dim);
  const double dims = width + static_cast<double>(problem.value_dim);
  const std::int64_t size = block_of(options), past = past_of(options);
  const double chosen = past == 0 ? 0
                                  : 2 * heads * width * scored_means(problem.length, size) +
                                        kv_heads * width * static_cast<double>(problem.length);
  cost.model_flops = 2 * dims * heads * chosen_pairs(problem.length, size, past) + chosen;
  cost.executed_flops += chosen;
  cost.workspace_bytes = std::max(cost.workspace_bytes, choice_bytes(problem, size, past));
  cost.state_bytes += static_cast<double>(blocks_of(problem.length, size)) *
                      (kv_heads * width + static_cast<double>(problem.batch)) * 8;
  return cost;
}

Implementation composite(const BandedMechanism& causal) {
  Implementation form = composite_softmax(causal);
  form.title = "a mask over the whole score matrix, in tensor operations";
  form.cost = [cost_of = form.cost](const Options& options, const Problem& problem) {
    Cost cost = moba_cost(cost_of(options, problem), options, problem);
    // The mask of each head, and with the causal one.
    const double pairs = static_cast<double>(problem.batch * problem.heads) *
                         static_cast<double>(problem.length * problem.length);
    cost.workspace_bytes += 2 * pairs;
    cost.saved_bytes += pairs;
    return cost;
  };
  return form;
}

Implementation gathered(const BandedMechanism& causal) {
  Implementation form;
  form.name = "gathered";
  form.title =
      "queries gathered by the blocks that they chose, in tensor operations, Lu et al. 2025";
  form.supports = composite_softmax(causal).supports;
  form.mix = [](Mechanism& mechanism, const Inputs& inputs, State* state) {
    const MobaCall call = moba_call(mechanism, inputs, state);
    return Mixed{gathered_blocks(call.softmax, block_of(mechanism.options), call.chosen), {}};
  };
  form.cost = [causal](const Options& options, const Problem& problem) {
    const Cost mix = gathered_cost(problem, block_of(options), past_of(options));
    Cost cost = common_softmax_cost(causal, options, problem);
    cost.executed_flops = mix.executed_flops;
    cost.exponentials = mix.exponentials;
    cost.workspace_bytes = mix.workspace_bytes;
    cost.saved_bytes = mix.saved_bytes;
    return moba_cost(cost, options, problem);
  };
  form.growth = {.time_in_length = 1, .workspace_in_length = 1};
  form.rank = 1;
  return form;
}

}  // namespace

Entry moba() {
  Entry entry;
  entry.name = "moba";
  entry.title = "Mixture of Block Attention (MoBA): softmax over blocks that each query chooses";
  entry.citation =
      "Lu et al. 2025, MoBA: Mixture of Block Attention for Long-Context LLMs, arXiv:2502.13189, "
      "equations 2 to 6";
  entry.formula =
      "y_t = sum_s softmax_s(scale q_t.k_s) v_s,  s <= t in t's own block or in a chosen one\n"
      "chosen: of the blocks before t's own, the blocks - 1 with the greatest q_t.mean_s(k_s), s "
      "in "
      "the block";
  entry.options = {
      scale_option(),
      Option::integer("block", kBlock, "tokens of a block; the paper has 512 and more", 1),
      Option::integer("blocks", kBlocks,
                      "blocks that a query sees, its own included, the paper's top-k; of equal "
                      "scores the earlier block is chosen",
                      1)};
  entry.differs_from = {
      {"published blocks are of 512 tokens at a length of 8k, of 2048 at 32k and of 4096 at 1M, "
       "where 12 are seen",
       "block=512, or block=4096 and blocks=12"},
      {"the published models decode with full attention, and have it in their last layers",
       "use=softmax for these"},
      {"published code means keys and adds scores in float32; here both are in double and scores "
       "are rounded to float32, so that blocks that score alike are alike in every form",
       "not available; it differs where two blocks score alike in float32"},
      {"of blocks that score alike published code takes any",
       "not available: the earlier one is taken"}};
  entry.claims.permutation_equivariant = false;
  entry.claims.last_row_agrees = false;
  entry.patterns = {Pattern::causal};
  entry.supports = supports;
  entry.make = maker<Moba>("moba");
  const BandedMechanism causal{
      [](const Options&, const Problem&) {
        return Window{unlimited, 0};
      },
      [](const Mechanism& mechanism, const Inputs& inputs, State* state) {
        MobaCall call = moba_call(mechanism, inputs, state);
        call.softmax.unseen = unchosen_keys(call.softmax, block_of(mechanism.options), call.chosen);
        return call.softmax;
      },
      [](const Options&, const Problem& problem) { return problem.length; }};
  entry.implementations = {composite(causal), gathered(causal)};
  return entry;
}

}  // namespace attnbench::mechanisms
