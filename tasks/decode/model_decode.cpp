#include "tasks/decode/model_decode.hpp"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <optional>
#include <utility>

#include "attention/layer.hpp"
#include "core/tolerance.hpp"
#include "tasks/check.hpp"
#include "tasks/continuation.hpp"
#include "tasks/forecast.hpp"
#include "tasks/fresh_inputs.hpp"
#include "tasks/output_checks.hpp"
#include "tasks/training/model.hpp"

namespace attnbench::tasks::decode {
namespace {

using training::Model;
using training::ModelOptions;
using training::ModelState;

/// Each block of a model rounds once more, in the step and in the whole pass that it is compared
/// with.
constexpr double rounded_by_blocks = 10;

/// A state that is always at the same addresses after a reset, so that a recorded step reads it
/// there.
class ResettableModelState {
 public:
  explicit ResettableModelState(ModelState saved)
      : saved_(std::move(saved)), home_(saved_.clone()), state_(home_) {}

  void reset() {
    for (std::size_t i = 0; i < saved_.blocks.size(); ++i) {
      for (const auto& [name, tensor] : saved_.blocks[i].tensors) {
        home_.blocks[i].tensors.at(name).copy_(tensor);
      }
    }
    state_ = home_;
  }
  ModelState& state() { return state_; }

 private:
  const ModelState saved_;
  ModelState home_;
  ModelState state_;
};

class ModelDecodeWork final : public Work {
 public:
  ModelDecodeWork(const Registry& registry, const ResolvedCell& cell, const TaskForecast& forecast)
      : registry_(registry),
        cell_(cell),
        forecast_(forecast),
        length_(forecast.problem.length),
        steps_(cell.settings.integer("steps")) {}

  void prepare(Context& context) override {
    const at::NoGradGuard no_grad;
    TaskForecast whole = forecast_;
    whole.problem.length = whole.problem.key_length = length_ + steps_;
    const ModelOptions options = training::model_options_from(cell_.settings);
    at::manual_seed(context.seed());
    model_ = std::make_shared<Model>(mixers(registry_, cell_, whole), options, context.seed());
    ids_ = at::randint(options.vocabulary, {forecast_.problem.batch, length_ + steps_},
                       at::detail::createCPUGenerator(context.seed() + 2), at::kLong)
               .to(at::Device(forecast_.problem.device));
    shape_ = {forecast_.problem.batch, 1, options.vocabulary};
    ModelState state = empty_state();
    prefill_ = model_->read(ids_.narrow(1, 0, length_), state);
    after_context_ = std::make_unique<ResettableModelState>(std::move(state));
  }

  /// The mixes of blocks that stand for all, continued from their states, against their
  /// definition; the logits of the context, the first and the last step against the whole pass.
  Json check(Context& context) override {
    const at::NoGradGuard no_grad;
    AfterCallCheck after_call;
    after_context_->reset();
    const at::Tensor first = step(0);
    if (const std::string why = after_call.failure(first); !why.empty()) return found_wrong(why);
    std::vector<at::Tensor> steps{first};
    for (std::int64_t i = 1; i < steps_; ++i) steps.push_back(step(i));
    CheckSection section;
    const std::vector<std::size_t> blocks = blocks_to_check(forecast_, model_->mixes());
    for (const std::size_t block : blocks) {
      CheckSection one = check_mix_steps(block, context.seed());
      section = block == 0 ? one : worse_of(section, one);
    }
    section.mixes = blocks.size();
    section.add_part("model", check_logits(ids_, steps, std::exchange(prefill_, {})), "model: ");
    section.after_call = after_call.note();
    return section;
  }

  Json run(Context& context) override {
    const at::NoGradGuard no_grad;
    prefill_.reset();
    RunSections sections;
    sections.chosen = chosen_section(forecast_);
    if (context.round() == 0) sections.memory = metered_step(context.memory());
    try {
      fresh_.emplace(std::vector<CallInput>{{"token ids", ids_, 1}}, context.seed());
    } catch (const std::bad_alloc&) {
    } catch (const c10::OutOfMemoryError&) {
    }
    CheckSection& timed = sections.timed_check.emplace();
    context.measure("step", from_context(1));
    timed.add_part("step", check_timed(), "a timed step: ");
    const double generation = context.measure("generation", from_context(steps_));
    timed.add_part("generation", check_timed(), "a timed generation: ");
    const double prefill = context.measure("prefill", prefill_body());
    timed.add_part("prefill", check_timed(), "a timed prefill: ");
    const auto batch = static_cast<double>(forecast_.problem.batch);
    sections.metrics = {
        {"state_bytes", empty_state(length_).bytes()},
        {"tokens_per_second", batch * static_cast<double>(steps_) / generation},
        {"prefill_tokens_per_second", batch * static_cast<double>(length_) / prefill}};
    return sections;
  }

 private:
  ModelState empty_state(std::optional<std::int64_t> tokens = {}) const {
    return model_->empty_state(forecast_.problem.batch, tokens.value_or(length_ + steps_));
  }

  at::Tensor step(std::int64_t index) {
    return model_->step(ids_.narrow(1, length_ + index, 1), after_context_->state());
  }

  /// Outputs of the context and of each step, from a mechanism of its own with the inputs that this
  /// block's mix has in the model; sampled rows against the definition.
  CheckSection check_mix_steps(std::size_t block, std::uint64_t seed) {
    Mechanism& mechanism = model_->mechanism(block);
    const Inputs inputs = model_->mix_inputs(block, ids_);
    const MixCase mix =
        case_of(registry_, mechanism_of(cell_, forecast_, block), mechanism, inputs, seed);
    const auto part = [&](std::int64_t begin, std::int64_t count) {
      return token_slice(mechanism, inputs, begin, count);
    };
    State state =
        mechanism.empty_state(mix.problem().batch, length_ + steps_,
                              inputs.tensors.begin()->second.options().requires_grad(false));
    const Mix& mixed = mix.implementation.mix;
    std::vector<at::Tensor> outputs{mixed(mechanism, part(0, length_), &state).output};
    for (std::int64_t i = 0; i < steps_; ++i) {
      outputs.push_back(mixed(mechanism, part(length_ + i, 1), &state).output);
    }
    const at::Tensor all = at::cat(outputs, 2);
    if (const std::string bad = not_finite_in(all); !bad.empty())
      return found_wrong("it returned " + bad);
    Rows rows = sampled_rows(mix.problem(), 32, seed);
    const Problem problem = mix.problem();
    for (const std::int64_t token : {length_ - 1, length_, length_ + steps_ - 1}) {
      rows.push_back({problem.batch - 1, problem.heads - 1, token});
    }
    return check_taken_rows(mix, problem, rows, rows_of(all, rows));
  }

  /// Logits that were returned from the state against those of the whole pass over `ids`. An
  /// undefined one was not computed.
  CheckSection check_logits(const at::Tensor& ids, const std::vector<at::Tensor>& steps,
                            const at::Tensor& prefill) {
    const at::Tensor features = model_->features(ids);
    const double bar = rounded_by_blocks * tolerance(forecast_.problem.dtype).value;
    CheckSection section;
    section.rows = 0;
    section.tolerance = bar;
    section.error = 0;
    section.reference = "the whole pass";
    const auto compare = [&](const at::Tensor& got, std::int64_t token) {
      if (!got.defined() || !section.ok()) return;
      const std::string form =
          form_mismatch(got, shape_, scalar_type(forecast_.problem.dtype), ids.device());
      if (!form.empty()) return section.mark_wrong("the model returned " + form);
      const double error =
          relative_rms(doubles(got), doubles(model_->head(features.narrow(1, token, 1))));
      section.rows = *section.rows + static_cast<std::size_t>(got.size(0));
      section.error = std::max(*section.error, std::isfinite(error) ? error : 0);
      if (error <= bar) return;
      section.mark_wrong("the logits of token " + std::to_string(token) +
                         " differ from those of the whole pass");
    };
    compare(prefill, length_ - 1);
    if (!steps.empty()) {
      compare(steps.front(), length_);
      compare(steps.back(), length_ + steps_ - 1);
    }
    return section;
  }

  static std::vector<double> doubles(const at::Tensor& tensor) {
    const at::Tensor wide = tensor.to(at::kCPU, at::kDouble).contiguous();
    return {wide.data_ptr<double>(), wide.data_ptr<double>() + wide.numel()};
  }

  Values metered_step(MemoryMeter& meter) {
    after_context_->reset();
    const std::int64_t before = meter.live_bytes();
    meter.reset_peak();
    const at::Tensor output = step(0);
    const std::int64_t peak = meter.peak_bytes();
    const auto output_bytes = static_cast<std::int64_t>(output.nbytes());
    return {{"input_bytes", forecast_.problem.batch * 8},
            {"output_bytes", output_bytes},
            {"workspace_bytes", std::max<std::int64_t>(0, peak - before - output_bytes)},
            {"peak_bytes", peak}};
  }

  /// Renews `count` token ids from `begin` on before each call.
  std::function<void()> refresh(std::int64_t begin, std::int64_t count) {
    if (fresh_) fresh_->limit(begin, begin + count);
    timed_steps_.assign(static_cast<std::size_t>(steps_), {});
    timed_prefill_.reset();
    return [this] {
      if (forecast_.problem.device == "cpu") {
        for (at::Tensor& output : timed_steps_) output.reset();
      }
      if (fresh_) fresh_->renew();
    };
  }

  Body from_context(std::int64_t steps) {
    const auto call = [this, steps] {
      for (std::int64_t i = 0; i < steps; ++i) timed_steps_[static_cast<std::size_t>(i)] = step(i);
    };
    return {call, [this] { after_context_->reset(); }, /*recordable=*/true,
            refresh(length_, steps)};
  }

  Body prefill_body() {
    const auto state = std::make_shared<ModelState>();
    return {[this, state] { timed_prefill_ = model_->read(ids_.narrow(1, 0, length_), *state); },
            [this, state] { *state = empty_state(); },
            /*recordable=*/false, refresh(0, length_)};
  }

  /// What the last timed calls returned, on the inputs that they had.
  CheckSection check_timed() {
    if (!fresh_ || (!timed_steps_.front().defined() && !timed_prefill_.defined())) {
      return check_skipped("copies of its inputs did not fit in memory");
    }
    if (const std::string name = fresh_->changed(); !name.empty()) {
      return found_wrong("it changed its input \"" + name + "\" in place");
    }
    try {
      return check_logits(fresh_->copies().front().tensor, timed_steps_, timed_prefill_);
    } catch (const std::bad_alloc&) {
    } catch (const c10::OutOfMemoryError&) {
    }
    return check_skipped("the whole pass did not fit in memory");
  }

  const Registry& registry_;
  const ResolvedCell cell_;
  const TaskForecast forecast_;
  const std::int64_t length_;
  const std::int64_t steps_;
  std::shared_ptr<Model> model_;
  at::Tensor ids_;                   ///< [B, length + steps]
  std::vector<std::int64_t> shape_;  ///< of one step's logits
  at::Tensor prefill_;               ///< logits after the context, until they are checked
  std::unique_ptr<ResettableModelState> after_context_;
  std::optional<FreshInputs> fresh_;  ///< none where copies do not fit
  std::vector<at::Tensor> timed_steps_;
  at::Tensor timed_prefill_;
};

}  // namespace

std::unique_ptr<Work> make_model_decode(const Registry& registry, const ResolvedCell& cell,
                                        const TaskForecast& forecast) {
  return std::make_unique<ModelDecodeWork>(registry, cell, forecast);
}

}  // namespace attnbench::tasks::decode
