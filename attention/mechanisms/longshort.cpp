// Transformer-LS, Zhu et al. 2021: one softmax over the keys of a window and over slots, which are
// projections of the tokens that the tokens themselves choose. Bidirectional: slots of the whole
// sequence. Causal: r slots for each segment of tokens, seen by the queries of later segments. Keys
// and values of the window and those of the slots are brought to one scale by a layer norm each
// ("dual").
#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/algorithms/softmax/implementations.hpp"
#include "attention/algorithms/tokens/tokens.hpp"
#include "attention/entry_parts.hpp"

namespace attnbench::mechanisms {
namespace {

using at::Tensor;

constexpr double kFar = std::numeric_limits<double>::infinity();
constexpr double kNormEpsilon = 1e-5;

/// Tokens before a block that its window or its first segment may reach.
std::int64_t kept_tokens(const Options& options) {
  return std::max<std::int64_t>({options.window("window").left, options.integer("segment") - 1, 1});
}

class LongShort : public Mechanism {
 public:
  using Mechanism::Mechanism;

  std::vector<Role> roles() const override {
    std::vector<Role> roles = query_key_value(problem);
    roles.push_back({"slots", Source::key_tokens, options.integer("projected_length")});
    return roles;
  }

  /// The last tokens, and the slots of all segments that are complete.
  State empty_state(std::int64_t batch, std::int64_t capacity,
                    const at::TensorOptions& tensor) const override {
    if (problem.pattern != Pattern::causal) return Mechanism::empty_state(batch, 0, tensor);
    const std::int64_t kept = kept_tokens(options);
    const std::int64_t segments = capacity / options.integer("segment");
    const std::int64_t slots = options.integer("projected_length");
    const auto zeros = [&](std::int64_t tokens, std::int64_t width) {
      return at::zeros({batch, problem.heads, tokens, width}, compute_type(tensor));
    };
    State state;
    state.tensors = {{"keys", zeros(kept, problem.head_dim)},
                     {"values", zeros(kept, problem.value_dim)},
                     {"logits", zeros(kept, slots)},
                     {"real", at::zeros({batch, kept}, tensor.dtype(at::kBool))},
                     {"slot_keys", zeros(segments * slots, problem.head_dim)},
                     {"slot_values", zeros(segments * slots, problem.value_dim)},
                     {"slot_real", at::zeros({batch, segments * slots}, tensor.dtype(at::kBool))}};
    return state;
  }
};

/// Tokens [B, H, n, w] in float32 at least, 0 at padding, and which are real [B, n].
struct LongShortTokens {
  Tensor key, value, logits, real;
};

/// Slots [B, H, n, w] and which of them hold a token [B, n].
struct LongShortSlots {
  Tensor key, value, real;
};

LongShortTokens tokens_of(const Inputs& inputs) {
  const auto type = compute_type(inputs["value"].scalar_type());
  const Tensor& mask = inputs.key_mask;
  const Tensor& key = inputs["key"];
  const auto bools = key.options().dtype(at::kBool).requires_grad(false);
  return {without_padding(key, mask).to(type), without_padding(inputs["value"], mask).to(type),
          without_padding(inputs["slots"], mask).to(type),
          mask.defined() ? mask : at::ones({key.size(0), key.size(2)}, bools)};
}

/// `segments` segments of equal lengths, all tokens of x, to r slots each.
LongShortSlots projected(const LongShortTokens& x, std::int64_t segments) {
  const std::int64_t batch = x.key.size(0), slots = x.logits.size(3);
  const std::int64_t length = x.key.size(2) / segments;
  const auto cut = [&](const Tensor& each) {
    return each.unflatten(2, at::IntArrayRef{segments, length});
  };
  const Tensor hidden = x.real.logical_not().view({batch, 1, segments, length, 1});
  const Tensor weights = at::softmax(cut(x.logits).masked_fill(hidden, -kFar), 3)
                             .masked_fill(hidden, 0)
                             .transpose(-2, -1);  // [B, H, segments, r, length]
  const Tensor real = x.real.view({batch, segments, length}).any(-1);
  return {at::matmul(weights, cut(x.key)).flatten(2, 3),
          at::matmul(weights, cut(x.value)).flatten(2, 3),
          real.unsqueeze(-1).expand({batch, segments, slots}).flatten(1)};
}

/// x less its mean, which is taken off twice: what is left of a large one is taken off, too.
Tensor centred_row(const Tensor& x) {
  const Tensor once = x - x.mean(-1, true);
  return once - once.mean(-1, true);
}

/// A layer norm without gain and bias. Not LibTorch's, which subtracts after it has divided: where
/// the mean is large beside what is left, that leaves few digits.
Tensor normalised_row(const Tensor& x) {
  const Tensor centred = centred_row(x);
  return centred * at::rsqrt((centred * centred).mean(-1, true) + kNormEpsilon);
}

/// One softmax over tokens and slots. The masks [B or 1, 1, T, n] are true where nothing is seen.
Tensor joint(const Mechanism& mechanism, const Tensor& query, const LongShortTokens& x,
             const LongShortSlots& slots, const Tensor& token_hidden, const Tensor& slot_hidden) {
  const bool dual = mechanism.options.text("norm") == "dual";
  const auto scaled = [&](const Tensor& each) { return dual ? normalised_row(each) : each; };
  const Tensor keys = at::cat({scaled(x.key), scaled(slots.key)}, 2);
  const Tensor values = at::cat({scaled(x.value), scaled(slots.value)}, 2);
  const std::int64_t batch = query.size(0), length = query.size(2);
  const Tensor hidden = at::cat({token_hidden.expand({batch, 1, length, x.key.size(2)}),
                                 slot_hidden.expand({batch, 1, length, slots.key.size(2)})},
                                3)
                            .expand({batch, query.size(1), length, keys.size(2)});
  // Normalised keys sum to 0, so that a query's mean adds nothing but its rounding.
  const Tensor scores = at::matmul(dual ? centred_row(query) : query, keys.transpose(-2, -1));
  const Tensor weights = at::softmax(scores.masked_fill(hidden, -kFar), -1).masked_fill(hidden, 0);
  return at::matmul(weights, values);
}

/// True where a token at `there` is outside of the window of a query at `here`: [1, 1, T, n].
Tensor out_of_window(const Tensor& here, const Tensor& there, const Window& window) {
  const Tensor ahead = there.unsqueeze(0) - here.unsqueeze(1);
  return (ahead.lt(-window.left) | ahead.gt(window.right)).unsqueeze(0).unsqueeze(0);
}

/// [B, n] that are not real as a mask [B, 1, 1, n].
Tensor not_real(const Tensor& real) { return real.logical_not().unsqueeze(1).unsqueeze(1); }

Tensor causal_longshort(const Mechanism& mechanism, const Tensor& query,
                        const LongShortTokens& block, State& state) {
  const Options& options = mechanism.options;
  const std::int64_t kept = kept_tokens(options), segment = options.integer("segment");
  const std::int64_t slots = options.integer("projected_length");
  const std::int64_t first = state.position, length = query.size(2);
  const LongShortTokens all{
      at::cat({state["keys"], block.key}, 2), at::cat({state["values"], block.value}, 2),
      at::cat({state["logits"], block.logits}, 2), at::cat({state["real"], block.real}, 1)};
  // Slots of the segments that were complete, and of those that this block completes.
  const std::int64_t before = first / segment, after = (first + length) / segment;
  LongShortSlots seen{state["slot_keys"].narrow(2, 0, before * slots),
                      state["slot_values"].narrow(2, 0, before * slots),
                      state["slot_real"].narrow(1, 0, before * slots)};
  LongShortSlots made;
  if (after > before) {
    const std::int64_t begin = kept + before * segment - first;
    const std::int64_t count = (after - before) * segment;
    made = projected({all.key.narrow(2, begin, count), all.value.narrow(2, begin, count),
                      all.logits.narrow(2, begin, count), all.real.narrow(1, begin, count)},
                     after - before);
    seen = {at::cat({seen.key, made.key}, 2), at::cat({seen.value, made.value}, 2),
            at::cat({seen.real, made.real}, 1)};
  }
  const auto whole = query.options().dtype(at::kLong).requires_grad(false);
  const Tensor here = at::arange(first, first + length, whole);
  const Tensor there = at::arange(first - kept, first + length, whole);
  const Tensor number = at::arange(after * slots, whole).floor_divide(slots);  // of the segment
  const Tensor later = number.unsqueeze(0).ge(here.floor_divide(segment).unsqueeze(1));
  const Tensor output =
      joint(mechanism, query, all, seen,
            out_of_window(here, there, options.window("window")) | not_real(all.real),
            later.unsqueeze(0).unsqueeze(0) | not_real(seen.real));
  // Whole new tensors rather than copies into the old: without a state these are recorded.
  state.tensors["keys"] = all.key.narrow(2, length, kept);
  state.tensors["values"] = all.value.narrow(2, length, kept);
  state.tensors["logits"] = all.logits.narrow(2, length, kept);
  state.tensors["real"] = all.real.narrow(1, length, kept);
  if (made.key.defined() && state["slot_real"].size(1) >= after * slots) {
    const std::int64_t count = (after - before) * slots;
    const at::NoGradGuard no_grad;
    state["slot_keys"].narrow(2, before * slots, count).copy_(made.key);
    state["slot_values"].narrow(2, before * slots, count).copy_(made.value);
    state["slot_real"].narrow(1, before * slots, count).copy_(made.real);
  }
  return output;
}

Mixed mix_longshort(Mechanism& mechanism, const Inputs& inputs, State* state) {
  const auto type = inputs["value"].scalar_type();
  const LongShortTokens x = tokens_of(inputs);
  const Tensor query = inputs["query"].to(x.key.scalar_type()) /
                       std::sqrt(static_cast<double>(mechanism.problem.head_dim));
  const std::int64_t length = query.size(2);
  if (mechanism.problem.pattern == Pattern::causal) {
    if (state == nullptr) {
      State fresh = mechanism.empty_state(query.size(0), 0, inputs["value"].options());
      return {causal_longshort(mechanism, query, x, fresh).to(type), {}};
    }
    const at::NoGradGuard no_grad;
    State next = *state;  // shares the tensors
    const Tensor output = causal_longshort(mechanism, query, x, next);
    for (const char* name : {"keys", "values", "logits", "real"}) {
      (*state)[name].copy_(next[name].clone());
    }
    state->position += length;
    return {output.to(type), {}};
  }
  if (state) throw UnsupportedError("longshort: only the causal pattern continues from a state");
  const LongShortSlots slots = projected(x, 1);
  const Tensor places = at::arange(length, query.options().dtype(at::kLong).requires_grad(false));
  const Tensor hidden =
      out_of_window(places, places, mechanism.options.window("window")) | not_real(x.real);
  const Tensor no_slot = not_real(slots.real).expand({-1, 1, length, -1});
  return {joint(mechanism, query, x, slots, hidden, no_slot).to(type), {}};
}

Cost longshort_cost(const Options& options, const Problem& problem) {
  const bool causal = problem.pattern == Pattern::causal;
  const double heads = static_cast<double>(problem.batch * problem.heads);
  const double tokens = static_cast<double>(problem.length);
  const double slots = static_cast<double>(options.integer("projected_length"));
  const double widths = static_cast<double>(problem.head_dim + problem.value_dim);
  const double bytes = static_cast<double>(bytes_of(problem.dtype)), wide = std::max(bytes, 4.0);
  const Window window = options.window("window");
  const double segments =
      causal ? std::floor(tokens / static_cast<double>(options.integer("segment"))) : 1;
  const double near = static_cast<double>(visible_pairs(problem, window.left, window.right));
  const double far = tokens * segments * slots * (causal ? 0.5 : 1);
  Cost cost;
  cost.model_flops = heads * (2 * (near + far) * widths + 2 * tokens * slots * widths);
  const double columns = tokens + segments * slots + (causal ? kept_tokens(options) : 0);
  cost.executed_flops = heads * 2 * (tokens * columns + tokens * slots) * widths;
  cost.minimal_bytes = heads * tokens * (2 * widths + slots) * bytes;
  cost.exponentials = heads * (near + far + tokens * slots);
  cost.workspace_bytes = heads * (3 * tokens * columns + 3 * columns * widths) * wide;
  cost.saved_bytes = heads * (2 * tokens * columns + 3 * columns * widths) * wide;
  cost.backward_flops = 2;
  if (causal) {
    const double kept = static_cast<double>(kept_tokens(options));
    cost.state_bytes = heads * (kept * (widths + slots) + segments * slots * widths) * wide +
                       static_cast<double>(problem.batch) * (kept + segments * slots);
  }
  return cost;
}

}  // namespace

Entry longshort() {
  Entry entry;
  entry.name = "longshort";
  entry.title = "Long-short attention: a window and projected slots in one softmax";
  entry.citation =
      "Zhu, Ping, Xiao, Shoeybi, Goldstein, Anandkumar, Catanzaro 2021, Long-Short Transformer: "
      "Efficient Transformers for Language and Vision, arXiv:2107.02192";
  entry.formula =
      "y_t = softmax(q_t.k / sqrt(D)) v over t's window and the slots; norm=dual: LN of each k and "
      "v\n"
      "K_i = sum_s softmax_s(p_s,i) k_s,  V_i = sum_s softmax_s(p_s,i) v_s,  i < r\n"
      "s over all tokens; causal: r slots of each segment that ends before t's own";
  entry.options = {
      window_option(),
      Option::integer("projected_length", 0,
                      "the paper's r: slots of the sequence, or of each segment where causal; 0 = "
                      "16, or 1 where causal",
                      0),
      Option::integer("segment", 32,
                      "tokens of a segment where causal; its slots are seen from the next one on",
                      1),
      Option::text("norm", {"dual", "none"},
                   "dual: keys and values of the window and of the slots are normalised before the "
                   "softmax")};
  entry.differs_from = {
      {"the published norms act on all heads together and have gains and biases; here each head is "
       "normalised, without them",
       "norm=none leaves them out"},
      {"the published window is of blocks with their neighbours, and its causal form has relative "
       "positions; here every query has a window of its own, without positions",
       "not available"}};
  entry.claims.rows_sum_to_one = false;
  entry.claims.linear_in_value = false;  // values are normalised
  entry.claims.permutation_equivariant = false;
  entry.claims.last_row_agrees = false;
  entry.patterns = {Pattern::bidirectional, Pattern::causal};
  entry.supports = [](const Options&, const Problem& problem) {
    if (problem.pattern == Pattern::cross) {
      return Support::no(
          "longshort: cross is undefined, a window needs queries and keys of one sequence");
    }
    return unshared_heads("longshort", problem);
  };
  entry.derive = [](const Options& options, const Problem& problem) {
    Options derived = derive_window(options, problem);
    if (options.integer("projected_length") == 0) {
      derived.set("projected_length", std::int64_t{problem.pattern == Pattern::causal ? 1 : 16});
    }
    return derived;
  };
  entry.make = maker<LongShort>("longshort");
  Implementation composite;
  composite.name = "composite";
  composite.title = "the score matrix of all tokens and slots, in tensor operations";
  composite.mix = mix_longshort;
  composite.cost = longshort_cost;
  composite.growth = {.time_in_length = 2, .workspace_in_length = 2, .from_length = 512};
  entry.implementations = {composite};
  return entry;
}

}  // namespace attnbench::mechanisms
