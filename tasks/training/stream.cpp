#include "tasks/training/stream.hpp"

#include <algorithm>
#include <cmath>

#include "core/random.hpp"

namespace attnbench::tasks::training {
namespace {

/// [1, T] on the model's device.
at::Tensor row_of(const Model& model, const std::int64_t* begin, std::int64_t count) {
  return at::tensor(at::ArrayRef<std::int64_t>(begin, static_cast<std::size_t>(count)), at::kLong)
      .unsqueeze(0)
      .to(model.parameters().front().device());
}

}  // namespace

std::int64_t next_token(const at::Tensor& logits, const Sampling& sampling, std::int64_t position) {
  const at::Tensor wide = logits.detach().cpu().to(at::kDouble).contiguous();
  const auto* const begin = wide.data_ptr<double>();
  const auto* const end = begin + wide.numel();
  const auto* const greatest = std::max_element(begin, end);
  if (sampling.temperature <= 0) return greatest - begin;
  std::vector<double> sums;
  double sum = 0;
  for (const auto* logit = begin; logit != end; ++logit) {
    sum += std::exp((*logit - *greatest) / sampling.temperature);
    sums.push_back(sum);
  }
  const double drawn = sum * Random(sampling.seed, static_cast<std::uint64_t>(position)).uniform();
  const auto found = std::upper_bound(sums.begin(), sums.end(), drawn);
  // Rounding may draw the whole sum.
  return found == sums.end() ? greatest - begin : found - sums.begin();
}

at::Tensor read_prompt(Model& model, ModelState& state, const std::vector<std::int64_t>& prompt) {
  if (prompt.empty()) throw std::logic_error("a prompt has at least one token");
  const auto length = static_cast<std::int64_t>(prompt.size());
  at::Tensor logits;
  for (std::int64_t begin = 0; begin < length; begin += kReadTogether) {
    const std::int64_t count = std::min(kReadTogether, length - begin);
    logits = model.read(row_of(model, prompt.data() + begin, count), state);
  }
  return logits.flatten();
}

void generate(Model& model, ModelState& state, const std::vector<std::int64_t>& prompt,
              std::int64_t count, const Sampling& sampling,
              const std::function<bool(std::int64_t)>& take) {
  at::Tensor logits = read_prompt(model, state, prompt);
  for (std::int64_t made = 1; made <= count; ++made) {
    const std::int64_t token = next_token(logits, sampling, state.position);
    if (!take(token) || made == count) return;
    logits = model.step(row_of(model, &token, 1), state).flatten();
  }
}

void StreamScore::read(const std::vector<std::int64_t>& tokens) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  const at::Tensor row = row_of(model_, tokens.data(), count);
  const at::Tensor logits = model_.step(row, state_).select(0, 0);
  // The logits that predict these tokens: the last of the previous call, all but the last of this.
  at::Tensor before = logits.narrow(0, 0, count - 1);
  at::Tensor predicted = row.select(0, 0);
  if (last_.defined()) {
    before = at::cat({last_, before}, 0);
  } else {
    predicted = predicted.narrow(0, 1, count - 1);
  }
  last_ = logits.narrow(0, count - 1, 1).clone();
  const at::Tensor each = at::log_softmax(before.to(at::kDouble), 1);
  bits_ -= each.gather(1, predicted.unsqueeze(1)).sum().item<double>() / std::log(2.0);
  scored_ += predicted.size(0);
}

double StreamScore::bits_per_token() const {
  return scored_ == 0 ? 0 : bits_ / static_cast<double>(scored_);
}

}  // namespace attnbench::tasks::training
