// TimedCall's check of the calls that were timed.
#include <algorithm>
#include <new>

#include "core/tolerance.hpp"
#include "tasks/call/timed_call.hpp"
#include "tasks/output_checks.hpp"

namespace attnbench::tasks::call {
namespace {

/// The tolerance between two runs of one call, in tolerances of the dtype. Other addresses may
/// change a library's order of summation, which changes a row by less; a row of another call
/// differs by its own size.
constexpr double repeat_factor = 16;

/// Output rows of the function whose gradient is checked again.
constexpr std::int64_t gradient_rows = 4;

/// The gradient of one tensor in a timed backward pass and in its repetition.
struct GradientPair {
  std::string name;
  at::Tensor timed;
  at::Tensor repeated;
  std::int64_t token_dim = 0;
  std::int64_t token = -1;  ///< the token renewed for that pass; -1 = none
};

double difference(const at::Tensor& a, const at::Tensor& b) {
  const double size = b.norm(2, at::kDouble).item<double>();
  const double off = at::Tensor(a - b).norm(2, at::kDouble).item<double>();
  return size > 0 ? off / size : off;
}

/// How the two differ, as a whole or at the renewed token, as a sentence; empty if they do not.
std::string gradient_mismatch(const GradientPair& pair, double bar) {
  const std::string what = "the gradient of \"" + pair.name + "\" of a timed pass ";
  if (pair.timed.defined() != pair.repeated.defined())
    return what + "is defined in some passes only";
  if (!pair.timed.defined()) return "";
  if (const std::string bad = not_finite_in(pair.timed); !bad.empty()) {
    return what + "holds " + bad;
  }
  const std::string differs = what + "differs from what the same pass gives in other memory";
  if (!(difference(pair.timed, pair.repeated) <= bar)) return differs;
  if (pair.token < 0) return "";
  const at::Tensor timed = pair.timed.narrow(pair.token_dim, pair.token, 1);
  const at::Tensor repeated = pair.repeated.narrow(pair.token_dim, pair.token, 1);
  return difference(timed, repeated) <= std::max(0.5, bar) ? "" : differs;
}

/// Moves the gradients out of `leaves`.
std::vector<at::Tensor> taken_gradients(std::vector<at::Tensor> leaves) {
  std::vector<at::Tensor> gradients;
  for (at::Tensor& leaf : leaves) {
    gradients.push_back(leaf.grad());
    leaf.mutable_grad().reset();
  }
  return gradients;
}

}  // namespace

CheckSection TimedCall::timed_check(std::uint64_t seed, int round, double seconds) {
  if (!fresh_ || !output_.defined()) {
    return check_skipped("copies of its inputs did not fit in memory");
  }
  if (const std::string name = fresh_->changed(); !name.empty()) {
    return found_wrong("a timed call changed its input \"" + name + "\" in place");
  }
  std::vector<CallInput> copies = fresh_->copies();
  for (CallInput& copy : copies) {
    copy.tensor = copy.tensor.detach();
    if (settings_.has_backward() && at::isFloatingType(copy.tensor.scalar_type())) {
      copy.tensor.requires_grad_(true);
    }
  }
  target_->exchange(copies);
  CheckSection section;
  try {
    section = checked_again(seed, round, seconds);
  } catch (const std::bad_alloc&) {
    section = check_skipped("it did not fit in memory");
  } catch (const c10::OutOfMemoryError&) {
    section = check_skipped("it did not fit in memory");
  }
  target_->exchange(copies);
  clear_gradients();
  output_.reset();
  return section;
}

CheckSection TimedCall::checked_again(std::uint64_t seed, int round, double seconds) {
  const at::AutoGradMode as_timed(settings_.has_backward());
  const at::Tensor timed = output_.detach();
  const std::vector<at::Tensor> gradients = taken_gradients(leaves_);
  const InnerMix first = target_->mix(0);
  const Tolerance bars = tolerance(case_of(first, seed).problem().dtype);

  AfterCallCheck after_call;
  at::Tensor repeated = forward_again();
  if (const std::string why = after_call.failure(repeated); !why.empty()) return found_wrong(why);
  const std::string mismatch =
      form_mismatch(timed, target_->output_shape(), scalar_type(settings_.problem.dtype),
                    at::Device(settings_.problem.device));
  if (!mismatch.empty()) return found_wrong("a timed call returned " + mismatch);
  if (const std::string bad = not_finite_in(timed); !bad.empty()) {
    return found_wrong("a timed call returned " + bad);
  }
  const auto rows = count_differing_rows(timed, repeated, repeat_factor * bars.value);
  if (rows > 0) {
    return found_wrong(
        "what the last timed call returned differs from what the same call returns in other "
        "memory, in " +
        std::to_string(rows) + " of " + std::to_string(timed.numel() / timed.size(-1)) + " rows");
  }
  if (settings_.has_backward()) {
    repeated.backward(fresh_->copies().back().tensor);
    const at::NoGradGuard no_grad;
    const std::vector<at::Tensor> leaves = target_->leaves();
    const std::vector<at::Tensor> others = taken_gradients(leaves);
    const std::vector<CallInput> inputs = target_->inputs();
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      GradientPair pair{"parameter " + std::to_string(i), gradients[i], others[i]};
      for (std::size_t k = 0; k < inputs.size(); ++k) {
        if (!inputs[k].tensor.is_same(leaves[i])) continue;
        pair.name = inputs[k].name;
        pair.token_dim = inputs[k].token_dim;
        pair.token = fresh_->last_token(k);
      }
      const std::string why = gradient_mismatch(pair, repeat_factor * bars.gradient);
      if (!why.empty()) return found_wrong(why);
    }
  }
  repeated.reset();

  CheckSection section = check_mixes(timed, seed, round, seconds);
  section.after_call = after_call.note();
  if (!section.ok()) {
    section.reason =
        "in a timed call " + (section.reason.empty() ? "it was wrong" : section.reason);
  }
  return section;
}

CheckSection TimedCall::check_mixes(const at::Tensor& timed, std::uint64_t seed, int round,
                                    double seconds) {
  CheckSection section;
  for (const std::size_t index : blocks_to_check(forecast_, target_->mixes())) {
    const InnerMix inner = target_->mix(index);
    const MixCase mix = case_of(inner, seed + 1000 * static_cast<std::uint64_t>(round + 1));
    const Problem problem = mix.problem();
    Rows renewed;
    for (std::size_t i = 0; i < fresh_->copies().size(); ++i) {
      const std::int64_t token = fresh_->last_token(i);
      if (token < 0 || token >= problem.length - mix.past) continue;
      const bool first = (i + static_cast<std::size_t>(round)) % 2 == 0;
      const reference::RowIndex row =
          first ? reference::RowIndex{0, 0, token}
                : reference::RowIndex{problem.batch - 1, problem.heads - 1, token};
      if (is_real(mix.inputs, row)) renewed.push_back(row);
    }
    at::Tensor output = timed;
    if (!target_->is_mix()) {
      const at::NoGradGuard no_grad;
      output = mix.implementation.mix(inner.mechanism, inner.inputs, nullptr).output;
    }
    CheckSection one = check_output(mix, problem, output, renewed, seconds);
    if (settings_.has_backward() && round == 0 && one.ok()) {
      one.add_part("gradient", check_gradient(mix, gradient_rows), "");
    }
    section = index == 0 ? one : worse_of(section, one);
  }
  return section;
}

}  // namespace attnbench::tasks::call
