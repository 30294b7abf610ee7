// Independence: of other batch rows, of other heads, of where the inputs lie, and of when it runs.
#include <cmath>

#include "attention/conformance/compare.hpp"

namespace attnbench::conformance {
namespace {

/// Everything along `dimension` at index 0 changed and enlarged; index 1 must not notice. What all
/// heads share, as one head, stays.
void compare_other_half(const Subject& subject, Judge& judge, const Trial& trial,
                        std::int64_t dimension, const std::string& what) {
  const Inputs inputs = draw(trial, subject.seed + 22);
  Inputs changed;
  std::uint64_t seed = subject.seed + 23;
  for (const auto& [name, tensor] : inputs.tensors) {
    at::Tensor other = tensor.clone();
    changed.tensors[name] = other;
    if (other.size(dimension) == 1) continue;
    at::Tensor first = other.narrow(dimension, 0, 1);
    first.copy_(normal_like(first, ++seed) * 3);
  }
  const at::Tensor before = mix(trial, inputs).narrow(dimension, 1, 1);
  const at::Tensor after = mix(trial, changed).narrow(dimension, 1, 1);
  judge.compare(what + " 1 when " + what + " 0 changes", difference(after, before),
                subject.unchanged());
  if (!subject.differentiable()) return;
  const Problem& problem = trial.problem;
  at::Tensor upstream =
      normal({problem.batch, problem.heads, problem.length, problem.value_dim}, subject.seed + 24);
  upstream.narrow(dimension, 1, 1).zero_();
  const Differentiated got = differentiate(trial, inputs, upstream);
  for (const auto& [name, tensor] : inputs.tensors) {
    if (tensor.size(dimension) == 1) continue;
    const at::Tensor other = got.gradients.at(name).narrow(dimension, 1, 1);
    judge.compare("gradient of output " + what + " 0 by " + what + " 1 of " + name,
                  difference(other, at::zeros_like(other), 1), subject.unchanged());
  }
}

void batch_and_head_independence(const Subject& subject, Judge& judge) {
  const auto trial = subject.prepare(judge, "length 37", {}, {}, true);
  if (!trial) return;
  compare_other_half(subject, judge, *trial, 0, "batch row");
  if (subject.entry.claims.heads_independent) {
    compare_other_half(subject, judge, *trial, 1, "head");
  } else {
    judge.leave_out("heads", subject.entry.name + " mixes its heads");
  }
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) { return at::equal(a, b); }

/// The same numbers in other places: heads inside tokens, as projections leave them, or every
/// second number of a wider tensor.
Inputs laid_out(const Inputs& inputs, bool spread) {
  Inputs out;
  for (const auto& [name, tensor] : inputs.tensors) {
    if (spread) {
      out.tensors[name] = at::stack({tensor, tensor * 7}, -1).select(-1, 0);
    } else {
      out.tensors[name] = tensor.transpose(1, 2).contiguous().transpose(1, 2);
    }
  }
  return out;
}

void layout_independence(const Subject& subject, Judge& judge) {
  const auto trial = subject.prepare(judge, "length 37", {}, {}, true);
  if (!trial) return;
  const Inputs inputs = draw(*trial, subject.seed + 27);
  const at::Tensor output = mix(*trial, inputs);
  const at::Tensor upstream = normal(output.sizes(), subject.seed + 28);
  const at::Tensor turned = upstream.transpose(1, 2).contiguous().transpose(1, 2);
  for (const bool spread : {false, true}) {
    const std::string where = spread ? "inputs with gaps" : "inputs with heads inside tokens";
    const Inputs other = laid_out(inputs, spread);
    judge.compare(where, difference(mix(*trial, other), output), 2 * subject.bar.value);
    if (!subject.differentiable()) continue;
    const Differentiated want = differentiate(*trial, inputs, upstream);
    const Differentiated got = differentiate(*trial, other, turned);
    for (const auto& [name, gradient] : want.gradients) {
      judge.compare(where + ", gradient of " + name, difference(got.gradients.at(name), gradient),
                    2 * subject.bar.gradient);
    }
  }
}

/// Two threads while it lives: with one there is no order to be lost.
class TwoThreads {
 public:
  TwoThreads() : before_(at::get_num_threads()) { at::set_num_threads(2); }
  ~TwoThreads() { at::set_num_threads(before_); }
  TwoThreads(const TwoThreads&) = delete;
  TwoThreads& operator=(const TwoThreads&) = delete;

 private:
  int before_;
};

void determinism(const Subject& subject, Judge& judge) {
  const TwoThreads threads;
  TrialSizes sizes;
  sizes.length = 67;
  const auto trial = subject.prepare(judge, "length 67", sizes, {}, true);
  if (!trial) return;
  // On the device beforehand, so that what is looked at afterwards is what was given.
  const Inputs inputs = placed(*trial, draw(*trial, subject.seed + 25));
  const Inputs before = laid_out(inputs, false);  // copies
  const at::Tensor first = mix(*trial, inputs);
  for (const auto& [name, tensor] : inputs.tensors) {
    judge.require(name + " is left as it was", same_bits(tensor, before[name]));
  }
  judge.require("a repeated run gives the same bits", same_bits(mix(*trial, inputs), first));
  if (!subject.differentiable()) return;
  const at::Tensor upstream = normal(first.sizes(), subject.seed + 26);
  const Differentiated once = differentiate(*trial, inputs, upstream);
  const Differentiated again = differentiate(*trial, inputs, upstream);
  judge.require("a repeated run gives the same bits", same_bits(again.output, once.output));
  for (const auto& [name, gradient] : once.gradients) {
    judge.require("a repeated run gives the same bits in the gradient of " + name,
                  same_bits(again.gradients.at(name), gradient));
  }
}

}  // namespace

std::vector<PropertyCheck> independence_checks() {
  return {
      {{"batch_and_head_independence", "batch rows and heads do not see one another"},
       batch_and_head_independence},
      {{"layout_independence", "inputs that are views of other tensors give the same output"},
       layout_independence},
      {{"determinism",
        "the same inputs give the same bits, values and gradients, and stay as they were"},
       determinism},
  };
}

}  // namespace attnbench::conformance
