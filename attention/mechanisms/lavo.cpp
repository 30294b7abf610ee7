// LAVO, "Linear Attention Via Orthogonal memory" (2023). The context is kept as its mean's
// coordinates along learnable orthogonal bases (section 3.1); the dissected form (3.2, 3.3)
// averages what a query reads there with softmax over a window, and remembers the window's outputs.
#include <algorithm>

#include "attention/torch/draw.hpp"
#include "attention/entry_parts.hpp"
#include "attention/algorithms/lavo/cost.hpp"
#include "attention/algorithms/lavo/fused.hpp"
#include "attention/algorithms/lavo/state.hpp"
#include "attention/algorithms/softmax/ring.hpp"
#include "attention/algorithms/softmax/implementations.hpp"
#include "attention/algorithms/tokens/blocks.hpp"

namespace attnbench::mechanisms {
namespace {

using at::Tensor;
namespace memory = orthogonal_memory;

bool is_plain(const Options& options, const Problem& problem) {
  return options.text("form") == "plain" || problem.pattern == Pattern::cross;
}

/// Distances that have a bias are -(w - 1) to w - 1.
std::int64_t reach_of(const Options& options) {
  const Window window = options.window("window");
  return std::max(window.left, window.right);
}

class Lavo : public Mechanism {
 public:
  Lavo(const std::string& name, const Options& chosen, const Problem& asked)
      : Mechanism(name, chosen, asked), plain(is_plain(chosen, asked)) {
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
    if (!plain) return query_key_value(problem);
    return {{"query", Source::query_tokens, problem.head_dim},
            {"context", Source::key_tokens, problem.head_dim, Feed::slice}};
  }

  /// Saxe et al. 2013: a random orthogonal matrix, uniform thanks to the signs of R. The biases
  /// start at 0.
  void draw_parameters(std::uint64_t seed) override {
    const at::NoGradGuard no_grad;
    const bool full = options.text("basis") == "full";
    const std::int64_t rows = options.integer("bases");
    const std::int64_t columns = full ? problem.width() : problem.head_dim;
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
    const auto type = compute_type(c10::typeMetaToScalarType(tensor.dtype()));
    const auto bases =
        at::empty({problem.heads, options.integer("bases"), problem.head_dim}, tensor.dtype(type));
    State state = memory::empty_state(batch, bases, !plain);
    if (!plain) add_rings(state, problem, batch, capacity, options.window("window").left, tensor);
    return state;
  }

  const bool plain;
};

memory::Call call_of(const Lavo& self, const Inputs& inputs) {
  const auto parameters = self.named_parameters();
  memory::Call call;
  call.local.q = inputs["query"];
  call.local.key_mask = inputs.key_mask;
  call.local.scale = call.scale = scale_of(self);
  call.bases = parameters["bases"];
  if (self.plain) {
    call.context = inputs["context"];
    return call;
  }
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

/// `most` tokens together at the most; 0 = all of them, by autograd; or memory::in_kernels.
Mixed mix_with(std::int64_t most, Mechanism& mechanism, const Inputs& inputs, State* state) {
  const auto& self = dynamic_cast<const Lavo&>(mechanism);
  const memory::Call call = call_of(self, inputs);
  if (self.problem.pattern != Pattern::causal) {
    if (state) throw UnsupportedError("lavo: only the causal pattern continues from a state");
    return {most == memory::in_kernels ? memory::fused(call) : memory::bidirectional(call), {}};
  }
  const std::int64_t together = most == 0 ? unlimited : most;
  if (state) return {memory::continued(call, *state, together), {}};
  if (most == memory::in_kernels) return {memory::fused_causal(call, nullptr, 0), {}};
  if (most != 0 && at::GradMode::is_enabled()) {
    return {memory::causal_recomputed(call, most), {}};
  }
  const auto type = call.bases.options().dtype(compute_type(call.bases.scalar_type()));
  memory::Carry carry =
      memory::empty_carry(call.local.q.size(0), at::empty_like(call.bases, type), !self.plain);
  return {memory::causal(call, carry, 0, together), {}};
}

memory::CostSizes sizes_of(const Options& options, const Problem& problem) {
  const bool plain = is_plain(options, problem);
  return {problem, options.integer("bases"), options.window("window"), plain,
          !plain && options.boolean("relative_bias")};
}

Implementation composite() {
  Implementation implementation;
  implementation.name = "composite";
  implementation.title = "windows side by side and all means at once, in tensor operations";
  implementation.supports = [](const Options&, const Problem&) { return Support{}; };
  implementation.mix = [](Mechanism& mechanism, const Inputs& inputs, State* state) {
    return mix_with(0, mechanism, inputs, state);
  };
  implementation.cost = [](const Options& options, const Problem& problem) {
    return memory::whole_cost(sizes_of(options, problem));
  };
  implementation.growth = {1, 1, 0, 0};
  return implementation;
}

Implementation chunked() {
  Implementation implementation = causal_implementation(
      "lavo", "chunked", "piece by piece, each computed anew for its gradient",
      [](Mechanism& mechanism, const Inputs& inputs, State* state) {
        return mix_with(mechanism.options.integer("chunk"), mechanism, inputs, state);
      });
  implementation.cost = [](const Options& options, const Problem& problem) {
    return memory::pieces_cost(sizes_of(options, problem), options.integer("chunk"));
  };
  implementation.growth = {1, 0, 0, 0};
  implementation.rank = 10;
  return implementation;
}

Implementation fused() {
  Implementation implementation;
  implementation.name = "fused";
  implementation.title = "one kernel for the window in tiles, one for the memory";
  implementation.supports = [](const Options& options, const Problem& problem) {
    return memory::fused_supports(sizes_of(options, problem));
  };
  implementation.mix = [](Mechanism& mechanism, const Inputs& inputs, State* state) {
    return mix_with(memory::in_kernels, mechanism, inputs, state);
  };
  implementation.cost = [](const Options& options, const Problem& problem) {
    return memory::fused_cost(sizes_of(options, problem));
  };
  implementation.growth = {1, 0, 0, 0};
  implementation.growth.from_length = kGrowingItems;
  implementation.rank = 20;
  return implementation;
}

std::vector<Option> options() {
  return {{"form",
           OptionType::text,
           std::string("dissected"),
           "dissected: softmax over a window, averaged with a memory of its outputs; plain: a "
           "memory of the context itself, as it always is where the pattern is cross",
           {},
           {},
           {"dissected", "plain"}},
          {"bases",
           OptionType::integer,
           std::int64_t{64},
           "orthogonal bases r of each head",
           1,
           {},
           {}},
          {"basis",
           OptionType::text,
           std::string("per_head"),
           "what is orthonormal at first: the bases of each head, or full, those of all heads "
           "together before they are split",
           {},
           {},
           {"per_head", "full"}},
          window_option(),
          {"relative_bias",
           OptionType::boolean,
           true,
           "a learnable bias by distance in the window, shared by the heads",
           {},
           {},
           {}},
          {"empty_global",
           OptionType::text,
           std::string("half"),
           "output of a causal query with no full window before it: half of its local output, or "
           "local, all of it",
           {},
           {},
           {"half", "local"}},
          scale_option(),
          chunk_option(512)};
}

Support supports(const Options&, const Problem& problem) {
  if (problem.value_dim != problem.head_dim) {
    return Support::no(
        "what is remembered is read along the bases of the queries; set value_dim to "
        "head_dim");
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
  entry.options = options();
  entry.differs_from = {
      {"the paper has no 1/sqrt(D) in front of its scores, local or global; here they are scaled",
       "scale=1 gives the paper's form"}};
  // The slots that are read are scaled bases, and local outputs are compressed as values are.
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
