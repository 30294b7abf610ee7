// Subject's check of the calls that were timed.
#include <algorithm>
#include <new>
#include <nlohmann/json.hpp>

#include "attention/conformance/tolerance.hpp"
#include "tasks/aftermath.hpp"
#include "tasks/bits.hpp"
#include "tasks/call/subject.hpp"
#include "tasks/check.hpp"
#include "tasks/rows_apart.hpp"

namespace attnbench::tasks::call {
namespace {

/// A mechanism gives the same numbers twice. That other addresses lead a library to other sums
/// moves a row by less than this many bars; a row of another call is off by its own size.
constexpr double again_bars = 16;

/// Output rows behind a gradient that is checked a second time.
constexpr std::int64_t gradient_rows = 4;

/// Gradients of one timed backward pass, held against those of the same pass made again.
struct GradientPair {
  std::string name;
  at::Tensor timed;
  at::Tensor again;
  std::int64_t token_dim = 0;
  std::int64_t token = -1;  ///< whose numbers were new in that pass; -1 = none
};

double difference(const at::Tensor& a, const at::Tensor& b) {
  const double size = b.norm(2, at::kDouble).item<double>();
  const double off = at::Tensor(a - b).norm(2, at::kDouble).item<double>();
  return size > 0 ? off / size : off;
}

/// As a whole, and where they depend most on numbers that no other pass had.
std::string apart(const GradientPair& pair, double bar) {
  const std::string what = "the gradient of \"" + pair.name + "\" of a timed pass ";
  if (pair.timed.defined() != pair.again.defined()) return what + "is there only now and then";
  if (!pair.timed.defined()) return "";
  if (const std::int64_t bad = count_not_finite(pair.timed); bad > 0) {
    return what + "holds numbers that are not finite: " + std::to_string(bad) + " of " +
           std::to_string(pair.timed.numel());
  }
  const std::string differs = what + "differs from what the same pass gives in other memory";
  if (!(difference(pair.timed, pair.again) <= bar)) return differs;
  if (pair.token < 0) return "";
  const at::Tensor timed = pair.timed.narrow(pair.token_dim, pair.token, 1);
  const at::Tensor again = pair.again.narrow(pair.token_dim, pair.token, 1);
  return difference(timed, again) <= std::max(0.5, bar) ? "" : differs;
}

/// Gradients of `leaves`, which are taken away from them.
std::vector<at::Tensor> taken_gradients(std::vector<at::Tensor> leaves) {
  std::vector<at::Tensor> gradients;
  for (at::Tensor& leaf : leaves) {
    gradients.push_back(leaf.grad());
    leaf.mutable_grad().reset();
  }
  return gradients;
}

}  // namespace

Json Subject::timed_check(std::uint64_t seed, int round, double seconds) {
  if (!fresh_ || !output_.defined()) {
    return {{"verdict", "ok"}, {"skipped", "copies of its inputs did not fit in memory"}};
  }
  if (const std::string name = fresh_->changed(); !name.empty()) {
    return found_wrong("a timed call changed its input \"" + name + "\" in place");
  }
  std::vector<Given> copies = fresh_->kept();
  for (Given& copy : copies) {
    copy.tensor = copy.tensor.detach();
    if (settings_.has_backward() && at::isFloatingType(copy.tensor.scalar_type())) {
      copy.tensor.requires_grad_(true);
    }
  }
  called_->exchange(copies);
  Json section;
  try {
    section = checked_again(seed, round, seconds);
  } catch (const std::bad_alloc&) {
    section = {{"verdict", "ok"}, {"skipped", "it did not fit in memory"}};
  } catch (const c10::OutOfMemoryError&) {
    section = {{"verdict", "ok"}, {"skipped", "it did not fit in memory"}};
  }
  called_->exchange(copies);
  clear_gradients();
  output_.reset();
  return section;
}

Json Subject::checked_again(std::uint64_t seed, int round, double seconds) {
  const at::AutoGradMode as_timed(settings_.has_backward());
  const at::Tensor timed = output_.detach();
  const std::vector<at::Tensor> gradients = taken_gradients(leaves_);
  const auto case_of = [&](const InnerMix& inner) -> MixCase {
    return {registry_.entry(cell_.mechanism),
            implementation_,
            registry_.reference(cell_.mechanism),
            inner.mechanism,
            inner.inputs,
            seed + 1000 * static_cast<std::uint64_t>(round + 1)};
  };
  const InnerMix first = called_->mix(0);
  const Tolerance bars = tolerance(case_of(first).problem().dtype);

  Aftermath aftermath;
  at::Tensor again = forward();
  if (const std::string seen = aftermath.after(again); !seen.empty()) return found_wrong(seen);
  const std::string departure =
      departure_from(timed, called_->output_shape(), scalar_type(settings_.problem.dtype),
                     at::Device(settings_.problem.device));
  if (!departure.empty()) return found_wrong("a timed call returned " + departure);
  if (const std::int64_t bad = count_not_finite(timed); bad > 0) {
    return found_wrong("a timed call returned numbers that are not finite: " + std::to_string(bad) +
                       " of " + std::to_string(timed.numel()));
  }
  if (const auto rows = count_rows_apart(timed, again, again_bars * bars.value); rows > 0) {
    return found_wrong(
        "what the last timed call returned differs from what the same call returns "
        "in other memory, in " +
        std::to_string(rows) + " of " + std::to_string(timed.numel() / timed.size(-1)) + " rows");
  }
  if (settings_.has_backward()) {
    again.backward(fresh_->kept().back().tensor);
    const at::NoGradGuard no_grad;
    const std::vector<at::Tensor> leaves = called_->leaves();
    const std::vector<at::Tensor> others = taken_gradients(leaves);
    const std::vector<Given> given = called_->given();
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      GradientPair pair{"parameter " + std::to_string(i), gradients[i], others[i]};
      for (std::size_t k = 0; k < given.size(); ++k) {
        if (!given[k].tensor.is_same(leaves[i])) continue;
        pair.name = given[k].name;
        pair.token_dim = given[k].token_dim;
        pair.token = fresh_->last_token(k);
      }
      const std::string reason = apart(pair, again_bars * bars.gradient);
      if (!reason.empty()) return found_wrong(reason);
    }
  }
  again.reset();

  Json section;
  for (std::size_t index = 0; index < called_->mixes(); ++index) {
    const InnerMix inner = index == 0 ? first : called_->mix(index);
    const MixCase mix = case_of(inner);
    const Problem problem = mix.problem();
    Rows renewed;
    for (std::size_t i = 0; i < fresh_->kept().size(); ++i) {
      const std::int64_t token = fresh_->last_token(i);
      if (token < 0 || token >= problem.length) continue;
      renewed.push_back({0, 0, token});
      renewed.push_back({problem.batch - 1, problem.heads - 1, token});
    }
    at::Tensor output = timed;
    if (!called_->is_mix()) {
      const at::NoGradGuard no_grad;
      output = implementation_.mix(inner.mechanism, inner.inputs, nullptr).output;
    }
    Json one = check_output(mix, problem, output, renewed, seconds);
    if (settings_.has_backward() && round == 0 && one["verdict"] == "ok") {
      one["gradient"] = check_gradient(mix, gradient_rows);
      if (one["gradient"]["verdict"] != "ok") {
        one.update({{"verdict", "wrong"}, {"reason", one["gradient"]["reason"]}});
      }
    }
    section = index == 0 ? one : worse_of(section, one);
  }
  if (!aftermath.said().empty()) section["after_call"] = aftermath.said();
  if (section["verdict"] != "ok") {
    section["reason"] = "in a timed call " + section.value("reason", "it was wrong");
  }
  return section;
}

}  // namespace attnbench::tasks::call
