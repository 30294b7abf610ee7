// LAVO, "Linear Attention Via Orthogonal memory" (2023). The context is kept as its mean's
// coordinates along learnable orthogonal bases (section 3.1); the dissected form (3.2, 3.3)
// averages a query's read of that memory with softmax over a window, and remembers the window's
// outputs. The undissected form, Table 9's ablation, averages both, and remembers the tokens.
#include <algorithm>

#include "attention/algorithms/lavo/lavo.hpp"
#include "attention/algorithms/softmax/implementations.hpp"
#include "attention/algorithms/tokens/tokens.hpp"
#include "attention/entry_parts.hpp"
#include "attention/torch/draw.hpp"

namespace attnbench::mechanisms {
namespace {

using at::Tensor;

bool is_plain(const Options& options, const Problem& problem) {
  return options.text("form") == "plain" || problem.pattern == Pattern::cross;
}

/// Whether a window is averaged with a memory of the context itself.
bool is_undissected(const Options& options, const Problem& problem) {
  return options.text("form") == "undissected" && !is_plain(options, problem);
}

/// The distances with a bias are -reach to reach.
std::int64_t reach_of(const Options& options) {
  const Window window = options.window("window");
  return std::max(window.left, window.right);
}

class Lavo : public Mechanism {
 public:
  Lavo(const std::string& name, const Options& chosen, const Problem& asked)
      : Mechanism(name, chosen, asked),
        plain(is_plain(chosen, asked)),
        undissected(is_undissected(chosen, asked)) {
    const auto numbers = at::TensorOptions(scalar_type(problem.dtype)).device(problem.device);
    const std::int64_t rows = options.integer("bases");
    register_parameter("bases", at::empty({problem.heads, rows, problem.head_dim}, numbers),
                       problem.gradient);
    if (!plain && options.boolean("relative_bias")) {
      register_parameter("relative_bias", at::zeros({2 * reach_of(options) + 1}, numbers),
                         problem.gradient);
    }
  }

  std::vector<Role> roles() const override {
    const Role context{"context", Source::key_tokens, problem.head_dim, Feed::slice};
    if (plain) return {{"query", Source::query_tokens, problem.head_dim}, context};
    std::vector<Role> roles = query_key_value(problem);
    if (undissected) roles.push_back(context);
    return roles;
  }

  /// Saxe et al. 2013: a random orthogonal matrix, made uniform by the signs of R. The biases start
  /// at 0.
  void draw_parameters(std::uint64_t seed) override {
    const at::NoGradGuard no_grad;
    const bool full = options.text("basis") == "full";
    const std::int64_t rows = options.integer("bases");
    const std::int64_t columns = full ? problem.heads * problem.head_dim : problem.head_dim;
    Problem exact = problem;
    exact.dtype = Dtype::float64;
    exact.device = "cpu";
    const auto normal = draw_normal(
        seed, "bases", {full ? 1 : problem.heads, std::max(rows, columns), std::min(rows, columns)},
        1, exact);
    const auto [q, r] = at::linalg_qr(normal);
    Tensor drawn = q * r.diagonal(0, -2, -1).sign().unsqueeze(-2);
    if (rows <= columns) drawn = drawn.transpose(-2, -1);
    if (full) {
      drawn = drawn.view({rows, problem.heads, problem.head_dim}).transpose(0, 1);
    }
    auto parameters = named_parameters();
    parameters["bases"].copy_(drawn);
    if (Tensor* bias = parameters.find("relative_bias")) bias->zero_();
  }

  State empty_state(std::int64_t batch, std::int64_t capacity,
                    const at::TensorOptions& tensor) const override {
    if (problem.pattern != Pattern::causal) {
      throw UnsupportedError("lavo: only the causal pattern has a state");
    }
    const auto bases = at::empty({problem.heads, options.integer("bases"), problem.head_dim},
                                 compute_type(tensor));
    const lavo::Carry carry = lavo::empty_carry(batch, bases, dissected());
    State state;
    state.tensors = {{"memory", carry.u}, {"count", carry.count}};
    if (plain) return state;
    if (dissected()) {
      state.tensors["window_sum"] = carry.sum;
      state.tensors["window_count"] = carry.sum_count;
    }
    add_rings(state, problem, batch, capacity, options.window("window").left, tensor);
    return state;
  }

  bool dissected() const { return !plain && !undissected; }

  const bool plain;
  const bool undissected;
};

lavo::Call call_of(const Lavo& self, const Inputs& inputs) {
  const auto parameters = self.named_parameters();
  lavo::Call call;
  call.local.q = inputs["query"];
  call.local.key_mask = inputs.key_mask;
  call.local.scale = call.scale = scale_of(self);
  call.bases = parameters["bases"];
  if (!self.dissected()) call.context = inputs["context"];
  if (self.plain) return call;
  const Window window = self.options.window("window");
  call.local.k = inputs["key"];
  call.local.v = inputs["value"];
  call.local.left = window.left;
  call.local.right = window.right;
  call.window = window.left + 1;
  call.local_alone = self.options.text("empty_global") == "local";
  call.bias.reach = reach_of(self.options);
  if (const Tensor* bias = parameters.find("relative_bias")) call.bias.bias = *bias;
  return call;
}

/// In place of a number of tokens per piece: in kernels.
constexpr std::int64_t in_kernels = -1;

/// The local output of one token, which `one` is: its keys are the ring buffer, without a copy.
Tensor local_token(lavo::Call& one, State& state) {
  take_into_rings(state, one.local);
  const std::int64_t slots = state["key"].size(2);
  const auto integers = at::TensorOptions(at::kLong).device(one.local.k.device());
  const Tensor age =
      (state.position - at::arange(one.local.key_length(), integers)).remainder(slots);
  return relative_token(one.local, one.bias, -age);
}

/// One token.
Tensor step(const lavo::Call& call, State& state, lavo::Carry& carry, std::int64_t most) {
  lavo::Call one = call;
  const Tensor local = local_token(one, state);
  one.local.key_mask = call.local.key_mask;
  if (most == in_kernels) {
    one.local.offset = 0;
    return lavo::fused_token(one, local, carry, state.position);
  }
  return lavo::token(one, local, carry, state.position);
}

Tensor several(lavo::Call call, State& state, lavo::Carry& carry, std::int64_t most) {
  if (!call.plain()) take_into_rings(state, call.local);
  if (most == in_kernels) return lavo::fused_causal(call, &carry, state.position);
  return lavo::causal(call, carry, state.position, most);
}

/// Local outputs, averaged with the reads of a memory of all tokens so far, or of all there are.
Tensor undissected(const lavo::Call& call, State* state, lavo::Carry* carry) {
  const auto type = compute_type(call.local.q.scalar_type());
  lavo::Call memory = call;  // of the plain form
  memory.local.q = call.local.q.to(type);
  memory.context = call.context.to(type);
  const Tensor read =
      carry != nullptr ? lavo::causal(memory, *carry, 0, unlimited) : lavo::bidirectional(memory);
  lavo::Call window = call;
  Tensor local;
  if (state != nullptr && call.local.length() == 1) {
    local = local_token(window, *state);
  } else {
    if (state != nullptr) take_into_rings(*state, window.local);
    local = relative_band(window.local, window.bias);
  }
  return ((local + read) / 2).to(call.local.q.scalar_type());
}

/// The outputs of tokens that follow those in `state`, which is updated. Records no gradients.
Tensor continued(const Lavo& self, const lavo::Call& call, State& state, std::int64_t most) {
  const at::NoGradGuard no_grad;
  lavo::Carry carry{state["memory"], state["count"], {}, {}};
  if (self.dissected()) {
    carry.sum = state["window_sum"];
    carry.sum_count = state["window_count"];
  }
  const std::int64_t length = call.local.length();
  const Tensor output = self.undissected                  ? undissected(call, &state, &carry)
                        : self.dissected() && length == 1 ? step(call, state, carry, most)
                                                          : several(call, state, carry, most);
  state["memory"].copy_(carry.u);
  state["count"].copy_(carry.count);
  if (self.dissected()) {
    state["window_sum"].copy_(carry.sum);
    state["window_count"].copy_(carry.sum_count);
  }
  state.position += length;
  return output;
}

/// At most `most` tokens per piece; 0 = all of them, by autograd; or in_kernels.
Mixed mix_with(std::int64_t most, Mechanism& mechanism, const Inputs& inputs, State* state) {
  const auto& self = dynamic_cast<const Lavo&>(mechanism);
  const lavo::Call call = call_of(self, inputs);
  if (self.problem.pattern != Pattern::causal) {
    if (state) throw UnsupportedError("lavo: only the causal pattern continues from a state");
    if (self.undissected) return {undissected(call, nullptr, nullptr), {}};
    return {most == in_kernels ? lavo::fused(call) : lavo::bidirectional(call), {}};
  }
  const std::int64_t together = most == 0 ? unlimited : most;
  if (state) return {continued(self, call, *state, together), {}};
  if (most == in_kernels) return {lavo::fused_causal(call, nullptr, 0), {}};
  if (most != 0 && at::GradMode::is_enabled()) {
    return {lavo::causal_recomputed(call, most), {}};
  }
  const auto type = call.bases.options().dtype(compute_type(call.bases.scalar_type()));
  lavo::Carry carry =
      lavo::empty_carry(call.local.q.size(0), at::empty_like(call.bases, type), self.dissected());
  if (self.undissected) return {undissected(call, nullptr, &carry), {}};
  return {lavo::causal(call, carry, 0, together), {}};
}

lavo::CostSizes sizes_of(const Options& options, const Problem& problem) {
  const bool plain = is_plain(options, problem);
  return {problem,
          options.integer("bases"),
          options.window("window"),
          plain,
          !plain && options.boolean("relative_bias"),
          is_undissected(options, problem)};
}

Support dissected_or_plain(const Options& options, const Problem& problem) {
  if (!is_undissected(options, problem)) return {};
  return Support::no("form=undissected is computed by composite alone");
}

Implementation composite() {
  return {
      .name = "composite",
      .title = "windows side by side and all means at once, in tensor operations",
      .mix = [](Mechanism& mechanism, const Inputs& inputs,
                State* state) { return mix_with(0, mechanism, inputs, state); },
      .cost = [](const Options& options,
                 const Problem& problem) { return lavo::whole_cost(sizes_of(options, problem)); }};
}

Implementation chunked() {
  Implementation implementation = causal_implementation(
      "lavo", "chunked", "piece by piece, each recomputed for its gradient",
      [](Mechanism& mechanism, const Inputs& inputs, State* state) {
        return mix_with(mechanism.options.integer("chunk"), mechanism, inputs, state);
      });
  implementation.supports = [others = implementation.supports](const Options& options,
                                                               const Problem& problem) {
    const Support support = dissected_or_plain(options, problem);
    return support && others ? others(options, problem) : support;
  };
  implementation.cost = [](const Options& options, const Problem& problem) {
    return lavo::pieces_cost(sizes_of(options, problem), options.integer("chunk"));
  };
  implementation.growth.workspace_in_length = 0;
  implementation.rank = 10;
  return implementation;
}

Implementation fused() {
  return {
      .name = "fused",
      .title = "one kernel for the window in tiles, one for the memory",
      .supports =
          [](const Options& options, const Problem& problem) {
            const Support support = dissected_or_plain(options, problem);
            return support ? lavo::fused_supports(sizes_of(options, problem)) : support;
          },
      .mix = [](Mechanism& mechanism, const Inputs& inputs,
                State* state) { return mix_with(in_kernels, mechanism, inputs, state); },
      .cost = [](const Options& options,
                 const Problem& problem) { return lavo::fused_cost(sizes_of(options, problem)); },
      .growth = {.workspace_in_length = 0, .from_length = kGrowingItems},
      .rank = 20};
}

std::vector<Option> options() {
  return {
      Option::text(
          "form", {"dissected", "plain", "undissected"},
          "dissected: softmax over a window, averaged with a memory of its outputs; "
          "plain: a memory of the context itself, as always in the cross pattern; "
          "undissected: the window's softmax averaged with that, Table 9's \"w/o epe, cd\" "
          "with relative_bias=false"),
      Option::integer("bases", 64, "orthogonal bases r of each head", 1),
      Option::text("basis", {"per_head", "full"},
                   "what is orthonormal initially: the bases of each head, or full, those of all "
                   "heads together before they are split"),
      window_option(),
      Option::boolean("relative_bias", true,
                      "a learnable bias by distance in the window, shared by the heads"),
      Option::text("empty_global", {"half", "local"},
                   "output of a causal query without a full window before it: half of its local "
                   "output, or local, all of it"),
      scale_option(),
      chunk_option(512)};
}

Support supports(const Options&, const Problem& problem) {
  if (problem.value_dim != problem.head_dim) {
    return Support::no(
        "the memory is read along the bases of the queries; set value_dim to their width");
  }
  return unshared_heads("lavo", problem);
}

Options derive(const Options& options, const Problem& problem) {
  Options derived = derive_window(options, problem);
  if (is_plain(options, problem)) derived.set("form", std::string("plain"));
  return derived;
}

}  // namespace

Entry lavo() {
  Entry entry;
  entry.name = "lavo";
  entry.title = "LAVO: linear attention via orthogonal memory";
  entry.citation = "Linear Attention Via Orthogonal memory, 2023, equations 3-6, sections 3.1-3.4";
  entry.formula =
      "u_j = b_j . mean_s(x_s),  b_j orthogonal bases\n"
      "r_t = sum_j softmax_j(scale (b_j.q_t) u_j) u_j b_j\n"
      "plain: y_t = r_t of the tokens x_s = the context up to t\n"
      "dissected: y_t = (F_t + r_t) / 2,  F_t softmax attention over t's window, with biases of "
      "distances\n"
      "  x_s = F_s, causal of the windows that are over;  undissected: x_s as in plain";
  entry.options = options();
  entry.differs_from = {
      {"the paper has no 1/sqrt(D) in front of its scores, local or global; here they are scaled",
       "scale=1 gives the paper's form"},
      {"section 3.3 has 2w - 1 biases, for distances up to w - 1 to either side; in the "
       "bidirectional pattern a window of w keys here reaches w / 2 back and w / 2 - 1 ahead",
       "window={\"left\": w - 1, \"right\": w - 1} gives the paper's biases"},
      {"the paper says of Table 9's \"w/o epe, cd\" that the local feature is retained, and "
       "neither "
       "which tokens its memory holds nor how both meet; form=undissected averages them, as "
       "section "
       "3.2 does, and remembers all tokens up to the query, as equation 4 does",
       "not offered otherwise"}};
  // A read consists of scaled bases, and local outputs are compressed like values.
  entry.claims.rows_sum_to_one = false;
  entry.claims.linear_in_value = false;
  entry.claims.permutation_equivariant = false;
  entry.claims.last_row_agrees = false;
  entry.patterns = {Pattern::bidirectional, Pattern::causal, Pattern::cross};
  entry.supports = supports;
  entry.derive = derive;
  entry.make = maker<Lavo>("lavo");
  entry.implementations = {composite(), chunked(), fused()};
  entry.aliases = {{"lavo_plain",
                    "lavo",
                    "auto",
                    {{"form", std::string("plain")}},
                    "LAVO without window: the orthogonal memory alone"}};
  return entry;
}

}  // namespace attnbench::mechanisms
