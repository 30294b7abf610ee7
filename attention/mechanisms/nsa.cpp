// Native Sparse Attention, Yuan et al. 2025 (NSA): three attentions of one query, each times a
// gate: over the means of blocks, over the tokens of those blocks that the first one weighs most,
// and over a window.
#include <algorithm>
#include <functional>

#include "attention/algorithms/blocks/blocks.hpp"
#include "attention/algorithms/softmax/implementations.hpp"
#include "attention/entry_parts.hpp"

namespace attnbench::mechanisms {
namespace {

using at::Tensor;

constexpr std::int64_t kBlock = 64;  // as published
constexpr std::int64_t kBlocks = 8;
/// Queries per chunk of the window, whose keys are those of one chunk.
constexpr std::int64_t kWindowQueries = 128;
constexpr std::int64_t kWindowKeys = 4096;

std::int64_t block_of(const Options& options) { return options.integer("block"); }
/// Blocks that a query chooses beside its own.
std::int64_t past_of(const Options& options) { return options.integer("blocks") - 1; }

class Nsa : public Mechanism {
 public:
  using Mechanism::Mechanism;

  std::vector<Role> roles() const override {
    std::vector<Role> roles = query_key_value(problem);
    for (const char* gate : {"gate_compressed", "gate_selected", "gate_window"}) {
      roles.push_back({gate, Source::query_tokens, 1});
    }
    return roles;
  }

  /// All keys and values seen, and sums over blocks of both, in double.
  State empty_state(std::int64_t batch, std::int64_t capacity,
                    const at::TensorOptions& tensor) const override {
    State state;
    add_cache(state, problem, batch, capacity, tensor);
    const std::int64_t blocks = blocks_of(capacity, block_of(options));
    const auto zeros = [&](at::IntArrayRef shape) {
      return at::zeros(shape, tensor.dtype(at::kDouble));
    };
    state.tensors["key_sum"] = zeros({batch, problem.kv_heads, blocks, problem.head_dim});
    state.tensors["value_sum"] = zeros({batch, problem.kv_heads, blocks, problem.value_dim});
    state.tensors["block_tokens"] = zeros({batch, blocks});
    return state;
  }
};

/// A call over all tokens seen, and the sums of their blocks.
struct NsaCall {
  SoftmaxCall softmax;
  BlockSums keys, values;
};

NsaCall nsa_call(const Mechanism& mechanism, const Inputs& inputs, State* state) {
  const std::int64_t size = block_of(mechanism.options);
  SoftmaxCall call{inputs["query"], inputs["key"], inputs["value"], inputs.key_mask,
                   scale_of(mechanism)};
  call.right = 0;
  call.offset = state == nullptr ? 0 : state->position;
  BlockSums keys = block_sums(call.k, call.key_mask, size, call.offset % size);
  BlockSums values = block_sums(call.v, call.key_mask, size, call.offset % size);
  if (state == nullptr) return {call, keys, values};
  const at::NoGradGuard no_grad;
  take_into_cache("nsa", *state, call);
  const std::int64_t first = call.offset / size;
  const BlockSums all{(*state)["key_sum"], (*state)["block_tokens"]};
  add_block_sums(all, keys, first);
  (*state)["value_sum"].narrow(2, first, values.sum.size(2)).add_(values.sum);
  return {call, all, {(*state)["value_sum"], all.tokens}};
}

/// The call with the keys alone that some query has in a window of `keys` keys.
SoftmaxCall windowed(SoftmaxCall call, std::int64_t keys) {
  const std::int64_t first = std::max<std::int64_t>(0, call.offset - keys + 1);
  const std::int64_t count = call.key_length() - first;
  call.k = call.k.narrow(2, first, count);
  call.v = call.v.narrow(2, first, count);
  if (call.key_mask.defined()) call.key_mask = call.key_mask.narrow(1, first, count);
  call.offset -= first;
  call.left = keys - 1;
  return call;
}

/// How a form computes the two attentions over tokens.
struct NsaForm {
  Tensor (*selected)(const SoftmaxCall&, std::int64_t size, const Tensor& chosen);
  Tensor (*window)(const SoftmaxCall&);
};

Tensor selected_composite(const SoftmaxCall& call, std::int64_t size, const Tensor& chosen) {
  SoftmaxCall masked = call;
  masked.unseen = unchosen_keys(call, size, chosen);
  return softmax_composite(masked);
}

Tensor window_chunked(const SoftmaxCall& call) {
  if (call.length() == 1) return softmax_composite(call);
  return softmax_chunked(call, kWindowQueries, kWindowKeys);
}

Mix nsa_mix(const NsaForm& form) {
  return [form](Mechanism& mechanism, const Inputs& inputs, State* state) {
    const std::int64_t size = block_of(mechanism.options);
    const NsaCall call = nsa_call(mechanism, inputs, state);
    const CompressedBlocks means =
        compressed_blocks(call.softmax, call.keys, call.values, size, past_of(mechanism.options));
    const auto wide = means.output.scalar_type();
    const auto gated = [&](const char* gate, const Tensor& mixed) {
      return at::sigmoid(inputs[gate].to(wide)) * mixed.to(wide);
    };
    const Tensor output =
        gated("gate_compressed", means.output) +
        gated("gate_selected", form.selected(call.softmax, size, means.chosen)) +
        gated("gate_window",
              form.window(windowed(call.softmax, mechanism.options.window("window").left + 1)));
    return Mixed{output.to(inputs["value"].scalar_type()), {}};
  };
}

Support supports(const Options&, const Problem& problem) {
  if (problem.pattern == Pattern::causal) return {};
  return Support::no(std::string("nsa: ") + to_string(problem.pattern) +
                     " is undefined, a query chooses among the blocks before its own; use the "
                     "causal pattern");
}

/// Pairs of a query and the mean of a block that is complete with it.
double pairs_of_means(std::int64_t length, std::int64_t size) {
  return scored_means(length, size) + static_cast<double>(length / size);
}

/// What all forms share: the pairs that a query sees, its gates, and the means.
Cost common_cost(const BandedMechanism& causal, const Options& options, const Problem& problem) {
  const double tokens = static_cast<double>(problem.batch * problem.heads * problem.length);
  const double heads = static_cast<double>(problem.batch * problem.heads);
  const double kv_heads = static_cast<double>(problem.batch * problem.kv_heads);
  const double dims = static_cast<double>(problem.head_dim + problem.value_dim);
  const double width = static_cast<double>(problem.value_dim);
  const std::int64_t size = block_of(options);
  const double means = heads * pairs_of_means(problem.length, size);
  Cost cost = common_softmax_cost(causal, options, problem);
  // A weight is added to those of its group, and a token to the sums of its block.
  cost.model_flops = 2 * dims * means + means +
                     kv_heads * dims * static_cast<double>(problem.length) + 5 * width * tokens;
  cost.executed_flops = cost.model_flops;
  cost.model_flops +=
      2 * dims * heads *
      (chosen_pairs(problem.length, size, past_of(options)) +
       static_cast<double>(visible_pairs(problem, options.window("window").left, 0)));
  cost.minimal_bytes += 3 * tokens * static_cast<double>(bytes_of(problem.dtype));
  cost.exponentials = means + 3 * tokens;
  cost.state_bytes += static_cast<double>(blocks_of(problem.length, size)) *
                      (kv_heads * dims + static_cast<double>(problem.batch)) * 8;
  // Outputs of the three, of which two are in memory while the third is computed, and the choice.
  const double wide = problem.dtype == Dtype::float64 ? 8 : 4;
  const double choice = 8 * static_cast<double>(past_of(options)) * tokens;
  const double sums =
      kv_heads * dims * 8 * static_cast<double>(2 * blocks_of(problem.length, size));
  cost.workspace_bytes = 2 * width * tokens * wide + choice + sums;
  // Weights of means in double and as they are multiplied, with their masks.
  cost.saved_bytes = means * 2 * (8 + wide + 2) + 3 * width * tokens * wide + choice + sums;
  return cost;
}

/// What a form's two attentions over tokens add.
Cost with_attentions(Cost cost, const Cost& selected, const Cost& window) {
  cost.executed_flops += selected.executed_flops + window.executed_flops;
  cost.exponentials += selected.exponentials + window.exponentials;
  cost.workspace_bytes += std::max(selected.workspace_bytes, window.workspace_bytes);
  cost.saved_bytes += selected.saved_bytes + window.saved_bytes;
  cost.backward_flops = selected.backward_flops;
  return cost;
}

/// The band of the selected blocks, as far as any reach, and that of the window.
BandedMechanism banded(const std::function<Window(const Options&, const Problem&)>& band) {
  return {band, {}, [](const Options&, const Problem& problem) { return problem.length; }};
}
BandedMechanism causal() {
  return banded([](const Options&, const Problem&) { return Window{unlimited, 0}; });
}
BandedMechanism window() {
  return banded([](const Options& options, const Problem&) { return options.window("window"); });
}

Implementation composite() {
  Implementation form = composite_softmax(causal());
  form.title = "masks over whole score matrices, in tensor operations";
  form.mix = nsa_mix({selected_composite, softmax_composite});
  form.cost = [](const Options& options, const Problem& problem) {
    Cost selected = composite_softmax(causal()).cost(options, problem);
    // The mask of each head, and with the causal one.
    const double pairs = static_cast<double>(problem.batch * problem.heads) *
                         static_cast<double>(problem.length * problem.length);
    selected.workspace_bytes += 2 * pairs;
    selected.saved_bytes += pairs;
    return with_attentions(common_cost(causal(), options, problem), selected,
                           composite_softmax(window()).cost(options, problem));
  };
  return form;
}

Implementation gathered() {
  Implementation form;
  form.name = "gathered";
  form.title =
      "queries gathered by the blocks that they chose, and the window in chunks, in tensor "
      "operations";
  form.supports = composite_softmax(causal()).supports;
  form.mix = nsa_mix({gathered_blocks, window_chunked});
  form.cost = [](const Options& options, const Problem& problem) {
    Options chunked = options;
    chunked.set("query_chunk", kWindowQueries);
    chunked.set("key_chunk", kWindowKeys);
    return with_attentions(common_cost(causal(), options, problem),
                           gathered_cost(problem, block_of(options), past_of(options)),
                           chunked_softmax(window()).cost(chunked, problem));
  };
  form.growth = {.time_in_length = 1, .workspace_in_length = 1};
  form.rank = 1;
  return form;
}

}  // namespace

Entry nsa() {
  Entry entry;
  entry.name = "nsa";
  entry.title = "Native Sparse Attention (NSA): means of blocks, chosen blocks and a window, gated";
  entry.citation =
      "Yuan et al. 2025, Native Sparse Attention: Hardware-Aligned and Natively Trainable Sparse "
      "Attention, arXiv:2502.11089, equations 5 to 12";
  entry.formula =
      "y_t = sigmoid(c_t) C_t + sigmoid(d_t) S_t + sigmoid(w_t) W_t\n"
      "C_t = sum_n p_t,n mean_s(v_s),  p_t,n = softmax_n(scale q_t.mean_s(k_s)),  s in block n, "
      "which "
      "t completes or follows\n"
      "S_t = sum_s softmax_s(scale q_t.k_s) v_s,  s <= t in t's own block, the one before, the "
      "first "
      "and those with the greatest p_t,n, summed over the heads that share a key head\n"
      "W_t = sum_s softmax_s(scale q_t.k_s) v_s,  t - left <= s <= t";
  entry.options = {
      scale_option(),
      Option::integer("block", kBlock, "tokens of a block, of means and of choices", 1),
      Option::integer(
          "blocks", kBlocks,
          "blocks that a query chooses, its own, the one before and the first included; "
          "the paper has 16; of equal weights the earlier block is chosen",
          3),
      window_option()};
  entry.differs_from = {
      {"the paper's means are a learned map of 32 tokens and their positions, 16 apart, for blocks "
       "of "
       "64; here they are means of the blocks that are chosen, as in flash-linear-attention",
       "not available"},
      {"the paper gives each of the three attentions keys and values of its own; here they share "
       "them, as in flash-linear-attention",
       "not available"},
      {"the paper sees 16 blocks and a window of 512 tokens", "blocks=16 and window=512"},
      {"published code computes weights in float32; here they are computed in double and rounded "
       "to "
       "float32 where they are compared, so that every form chooses alike",
       "not available; it differs where two blocks weigh alike in float32"},
      {"of blocks that weigh alike published code takes any",
       "not available: the earlier one is taken"}};
  entry.claims.rows_sum_to_one = false;
  entry.claims.permutation_equivariant = false;
  entry.claims.last_row_agrees = false;
  entry.claims.heads_independent = false;  // those that share a key head choose together
  entry.patterns = {Pattern::causal};
  entry.supports = supports;
  entry.derive = derive_window;
  entry.make = maker<Nsa>("nsa");
  entry.implementations = {composite(), gathered()};
  return entry;
}

}  // namespace attnbench::mechanisms
