#include "tasks/decode/work.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "attention/layer.hpp"
#include "tasks/check.hpp"
#include "tasks/forecast.hpp"

namespace attnbench::tasks::decode {
namespace {

/// `count` tokens of every role that has tokens, from token `begin` on, without a copy.
Inputs slice(const Mechanism& mechanism, const Inputs& inputs, std::int64_t begin,
             std::int64_t count) {
  Inputs some = inputs;
  for (const Role& role : mechanism.roles()) {
    if (role.source == Source::latent_stream) continue;
    some.tensors[role.name] = inputs[role.name].narrow(2, begin, count);
  }
  return some;
}

/// A state that is taken back to what it was, always in the same memory: a step that was recorded
/// reads it there, even of a mechanism that keeps new tensors in place of the old ones.
class Resettable {
 public:
  explicit Resettable(const State& saved) : saved_(saved), home_(saved.clone()) { reset(); }

  void reset() {
    for (const auto& [name, tensor] : saved_.tensors) home_.tensors.at(name).copy_(tensor);
    state_ = home_;
  }
  State& state() { return state_; }

 private:
  const State& saved_;
  const State home_;
  State state_;  ///< the one that steps advance
};

class DecodeWork final : public Work {
 public:
  DecodeWork(const Registry& registry, const Cell& cell, const Forecast& forecast)
      : registry_(registry),
        cell_(cell),
        forecast_(forecast),
        context_length_(forecast.problem.length),
        steps_(cell.settings.integer("steps")),
        implementation_(chosen(registry, cell, forecast)) {}

  void prepare(Context& context) override {
    const at::NoGradGuard no_grad;
    at::manual_seed(context.seed());
    Forecast whole = forecast_;
    whole.problem.length = whole.problem.key_length = context_length_ + steps_;
    mechanism_ = make_mechanism(registry_, cell_, whole);
    inputs_ = random_inputs(*mechanism_, context.seed(), cell_.settings.number("input_scale"),
                            /*requires_grad=*/false);
    before_ = slice(*mechanism_, inputs_, 0, context_length_);
    for (std::int64_t i = 0; i < steps_; ++i) {
      tokens_.push_back(slice(*mechanism_, inputs_, context_length_ + i, 1));
    }
    prefilled_ = empty_state(context_length_ + steps_);
    mix(before_, prefilled_);
    working_ = std::make_unique<Resettable>(prefilled_);
  }

  /// The first and the last token that are generated.
  Json check(Context& context) override {
    const at::NoGradGuard no_grad;
    working_->reset();
    Problem problem = forecast_.problem;
    problem.length = problem.key_length = context_length_ + steps_;
    Rows rows;
    std::vector<double> got;
    for (std::int64_t i = 0; i < steps_; ++i) {
      const at::Tensor output = mix(tokens_[static_cast<std::size_t>(i)], working_->state());
      if (i != 0 && i != steps_ - 1) continue;
      Rows only;
      for (std::int64_t b = 0; b < problem.batch; ++b) {
        for (std::int64_t h = 0; h < problem.heads; ++h) {
          rows.push_back({b, h, context_length_ + i});
          only.push_back({b, h, 0});
        }
      }
      for (const double value : rows_of(output, only)) got.push_back(value);
    }
    return check_rows({registry_.entry(cell_.mechanism), implementation_,
                       registry_.reference(cell_.mechanism), *mechanism_, inputs_, context.seed()},
                      problem, rows, got);
  }

  Json run(Context& context) override {
    const at::NoGradGuard no_grad;
    Json sections = {
        {"chosen",
         {{"implementation", forecast_.implementation}, {"reason", forecast_.choice_reason}}}};
    if (context.round() == 0) sections["memory"] = metered_step(context.memory());
    time_step(context);
    const double generation = time_generation(context);
    const double prefill = time_prefill(context);
    const auto batch = static_cast<double>(forecast_.problem.batch);
    sections["metrics"] = {
        {"state_bytes", empty_state(context_length_).bytes()},
        {"tokens_per_second", batch * static_cast<double>(steps_) / generation},
        {"prefill_tokens_per_second", batch * static_cast<double>(context_length_) / prefill}};
    return sections;
  }

 private:
  /// With room for `tokens`; what a state weighs is said of the context alone.
  State empty_state(std::int64_t tokens) const {
    const auto type = at::TensorOptions(scalar_type(forecast_.problem.dtype))
                          .device(at::Device(forecast_.problem.device));
    return mechanism_->empty_state(forecast_.problem.batch, tokens, type);
  }

  at::Tensor mix(const Inputs& inputs, State& state) {
    return implementation_.mix(*mechanism_, inputs, &state).output;
  }

  Json metered_step(MemoryMeter& meter) {
    working_->reset();
    std::int64_t input_bytes = 0;
    for (const auto& [role, tensor] : tokens_.front().tensors) {
      input_bytes += static_cast<std::int64_t>(tensor.nbytes());
    }
    const std::int64_t before = meter.live_bytes();
    meter.reset_peak();
    const at::Tensor output = mix(tokens_.front(), working_->state());
    const std::int64_t peak = meter.peak_bytes();
    const auto output_bytes = static_cast<std::int64_t>(output.nbytes());
    return {{"input_bytes", input_bytes},
            {"output_bytes", output_bytes},
            {"workspace_bytes", std::max<std::int64_t>(0, peak - before - output_bytes)},
            {"peak_bytes", peak}};
  }

  /// From the prefilled state, whose position decides what is done: it is the same each time.
  Body from_prefilled(std::function<void()> call) {
    return {std::move(call), [this] { working_->reset(); }, /*recordable=*/true};
  }

  void time_step(Context& context) {
    context.measure("step", from_prefilled([this] { mix(tokens_.front(), working_->state()); }));
  }

  double time_generation(Context& context) {
    return context.measure("generation", from_prefilled([this] {
                             for (const Inputs& token : tokens_) mix(token, working_->state());
                           }));
  }

  double time_prefill(Context& context) {
    State state;
    return context.measure("prefill", {[&] { mix(before_, state); },
                                       [&] { state = empty_state(context_length_ + steps_); }});
  }

  const Registry& registry_;
  const Cell cell_;
  const Forecast forecast_;
  const std::int64_t context_length_;
  const std::int64_t steps_;
  const Implementation implementation_;
  std::shared_ptr<Mechanism> mechanism_;
  Inputs inputs_;               ///< of the context and all steps
  Inputs before_;               ///< of the context
  std::vector<Inputs> tokens_;  ///< of each step
  State prefilled_;
  std::unique_ptr<Resettable> working_;
};

}  // namespace

std::unique_ptr<Work> make_work(const Registry& registry, const Cell& cell,
                                const Forecast& forecast) {
  return std::make_unique<DecodeWork>(registry, cell, forecast);
}

}  // namespace attnbench::tasks::decode
