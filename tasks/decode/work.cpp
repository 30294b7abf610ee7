#include "tasks/decode/work.hpp"

#include <algorithm>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "attention/layer.hpp"
#include "tasks/aftermath.hpp"
#include "tasks/bits.hpp"
#include "tasks/check.hpp"
#include "tasks/forecast.hpp"
#include "tasks/fresh_inputs.hpp"

namespace attnbench::tasks::decode {
namespace {

/// What the definition may take to answer for rows of the context.
constexpr double prefill_seconds = 0.1;

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
    if (context.round() == 0) read_.emplace(read_by(*mechanism_, inputs_));
    prefill_output_ = mix(before_, prefilled_);
    if (context.round() > 0) prefill_output_.reset();
    working_ = std::make_unique<Resettable>(prefilled_);
  }

  /// The context's output, and those of the first and the last token that are generated.
  Json check(Context& context) override {
    const at::NoGradGuard no_grad;
    Aftermath aftermath;
    working_->reset();
    const at::Tensor first = mix(tokens_.front(), working_->state());
    if (const std::string seen = aftermath.after(first); !seen.empty()) return found_wrong(seen);
    working_->reset();
    std::vector<at::Tensor> outputs;
    for (const Inputs& token : tokens_) outputs.push_back(mix(token, working_->state()));
    if (const std::string name = read_->changed(); !name.empty()) {
      return found_wrong("it changed its input \"" + name + "\" in place");
    }
    read_.reset();
    const at::Tensor prefill = std::exchange(prefill_output_, {});
    for (const auto& [output, length] :
         {std::pair{prefill, context_length_}, std::pair{outputs.front(), std::int64_t{1}},
          std::pair{outputs.back(), std::int64_t{1}}}) {
      if (const std::string form = departure(output, length); !form.empty()) {
        return found_wrong(form);
      }
    }
    const MixCase mix_case = case_of(inputs_, context);
    Taken taken;
    taken.add(*this, outputs, 0);
    if (steps_ > 1) taken.add(*this, outputs, steps_ - 1);
    Json section = check_rows(mix_case, whole_problem(), taken.rows, taken.values);
    Json of_context = check_output(mix_case, context_problem(), prefill, {}, prefill_seconds);
    if (section["verdict"] == "ok" && of_context["verdict"] != "ok") {
      section["verdict"] = "wrong";
      section["reason"] = "prefill: " + of_context.value("reason", "its values are wrong");
    }
    section["prefill"] = std::move(of_context);
    if (!aftermath.said().empty()) section["after_call"] = aftermath.said();
    return section;
  }

  Json run(Context& context) override {
    const at::NoGradGuard no_grad;
    Json sections = {
        {"chosen",
         {{"implementation", forecast_.implementation}, {"reason", forecast_.choice_reason}}}};
    if (context.round() == 0) sections["memory"] = metered_step(context.memory());
    make_fresh(context.seed());
    Json timed = {{"verdict", "ok"}};
    time_step(context);
    note(timed, "step", timed_step(context));
    const double generation = time_generation(context);
    note(timed, "generation", timed_generation(context));
    const double prefill = time_prefill(context);
    note(timed, "prefill", timed_prefill(context));
    sections["timed_check"] = std::move(timed);
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

  /// Rows of outputs of single tokens, and their places in the sequence.
  struct Taken {
    Rows rows;
    std::vector<double> values;
    void add(const DecodeWork& work, const std::vector<at::Tensor>& outputs, std::int64_t step) {
      Rows only;
      for (std::int64_t b = 0; b < work.forecast_.problem.batch; ++b) {
        for (std::int64_t h = 0; h < work.forecast_.problem.heads; ++h) {
          rows.push_back({b, h, work.context_length_ + step});
          only.push_back({b, h, 0});
        }
      }
      for (const double value : rows_of(outputs[static_cast<std::size_t>(step)], only)) {
        values.push_back(value);
      }
    }
  };

  Problem whole_problem() const {
    Problem problem = forecast_.problem;
    problem.length = problem.key_length = context_length_ + steps_;
    return problem;
  }
  Problem context_problem() const {
    Problem problem = forecast_.problem;
    problem.length = problem.key_length = context_length_;
    return problem;
  }

  MixCase case_of(const Inputs& inputs, const Context& context) const {
    return {registry_.entry(cell_.mechanism),
            implementation_,
            registry_.reference(cell_.mechanism),
            *mechanism_,
            inputs,
            context.seed() + 1000 * static_cast<std::uint64_t>(context.round())};
  }

  std::string departure(const at::Tensor& output, std::int64_t length) const {
    const Problem& problem = forecast_.problem;
    const std::vector<std::int64_t> shape{problem.batch, problem.heads, length, problem.value_dim};
    const std::string found =
        departure_from(output, shape, scalar_type(problem.dtype), at::Device(problem.device));
    return found.empty() ? "" : cell_.mechanism + "/" + implementation_.name + " returned " + found;
  }

  /// A latent stream is a part of the state already.
  void make_fresh(std::uint64_t seed) {
    std::vector<Given> given;
    for (const Role& role : mechanism_->roles()) {
      if (role.source != Source::latent_stream) given.push_back({role.name, inputs_[role.name], 2});
    }
    try {
      fresh_.emplace(std::move(given), seed);
    } catch (const std::bad_alloc&) {
    } catch (const c10::OutOfMemoryError&) {
    }
  }

  /// What comes first before each call: other numbers in the tokens from `begin` on, and no outputs
  /// of the call before, except on a device, where a recording writes them.
  std::function<void()> refresh(std::int64_t begin, std::int64_t count) {
    if (fresh_) fresh_->limit(begin, begin + count);
    outputs_.assign(static_cast<std::size_t>(steps_), {});
    return [this] {
      if (forecast_.problem.device == "cpu") {
        for (at::Tensor& output : outputs_) output.reset();
      }
      if (fresh_) fresh_->renew();
    };
  }

  /// From the prefilled state, whose position decides what is done: it is the same each time.
  Body from_prefilled(std::function<void()> call, std::int64_t tokens) {
    return {std::move(call), [this] { working_->reset(); }, /*recordable=*/true,
            refresh(context_length_, tokens)};
  }

  void time_step(Context& context) {
    const auto call = [this] { outputs_[0] = mix(tokens_.front(), working_->state()); };
    context.measure("step", from_prefilled(call, 1));
  }

  double time_generation(Context& context) {
    const auto call = [this] {
      for (std::size_t i = 0; i < tokens_.size(); ++i) {
        outputs_[i] = mix(tokens_[i], working_->state());
      }
    };
    return context.measure("generation", from_prefilled(call, steps_));
  }

  double time_prefill(Context& context) {
    State state;
    return context.measure("prefill", {[&] { outputs_[0] = mix(before_, state); },
                                       [&] { state = empty_state(context_length_ + steps_); },
                                       /*recordable=*/false, refresh(0, context_length_)});
  }

  /// Adds what was found of one kind of call to what is said of all.
  static void note(Json& timed, const char* what, Json found) {
    if (timed["verdict"] == "ok" && found["verdict"] != "ok") {
      timed["verdict"] = "wrong";
      timed["reason"] =
          std::string("a timed ") + what + ": " + found.value("reason", "its values are wrong");
    }
    timed[what] = std::move(found);
  }

  /// The inputs as they were for the last call.
  Inputs kept_inputs() const {
    Inputs kept = inputs_;
    for (const Given& each : fresh_->kept()) kept.tensors[each.name] = each.tensor;
    return kept;
  }

  /// What forbids to look at the outputs of the last call; null where nothing does.
  Json refusal() const {
    if (!fresh_ || !outputs_.front().defined()) {
      return {{"verdict", "ok"}, {"skipped", "copies of its inputs did not fit in memory"}};
    }
    const std::string name = fresh_->changed();
    if (!name.empty()) return found_wrong("it changed its input \"" + name + "\" in place");
    return nullptr;
  }

  Json timed_step(Context& context) {
    if (Json refused = refusal(); !refused.is_null()) return refused;
    if (const std::string form = departure(outputs_[0], 1); !form.empty()) return found_wrong(form);
    const Inputs kept = kept_inputs();
    Taken taken;
    taken.add(*this, outputs_, 0);
    Json found =
        check_taken_rows(case_of(kept, context), whole_problem(), taken.rows, taken.values);
    if (found["verdict"] != "ok") return found;
    Aftermath aftermath;
    working_->reset();
    const at::Tensor once_more = mix(tokens_.front(), working_->state());
    const std::string seen = aftermath.after(once_more);
    if (!seen.empty()) return found_wrong(seen);
    if (!aftermath.said().empty()) found["after_call"] = aftermath.said();
    return found;
  }

  Json timed_generation(Context& context) {
    if (Json refused = refusal(); !refused.is_null()) return refused;
    for (const at::Tensor& output : outputs_) {
      if (const std::string form = departure(output, 1); !form.empty()) return found_wrong(form);
      if (count_not_finite(output) == 0) continue;
      return found_wrong("it returned numbers that are not finite");
    }
    const Inputs kept = kept_inputs();
    Taken taken;
    taken.add(*this, outputs_, 0);
    if (steps_ > 2) taken.add(*this, outputs_, 1 + context.round() % (steps_ - 2));
    if (steps_ > 1) taken.add(*this, outputs_, steps_ - 1);
    return check_taken_rows(case_of(kept, context), whole_problem(), taken.rows, taken.values);
  }

  Json timed_prefill(Context& context) {
    if (Json refused = refusal(); !refused.is_null()) return refused;
    if (const std::string form = departure(outputs_[0], context_length_); !form.empty()) {
      return found_wrong(form);
    }
    const Inputs kept = kept_inputs();
    const Problem problem = context_problem();
    Rows renewed;
    for (std::size_t i = 0; i < fresh_->kept().size(); ++i) {
      renewed.push_back({problem.batch - 1, problem.heads - 1, fresh_->last_token(i)});
    }
    return check_output(case_of(kept, context), problem, outputs_[0], renewed, prefill_seconds);
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
  std::optional<Snapshot> read_;      ///< before the context was read, in the first round
  at::Tensor prefill_output_;         ///< until it is checked
  std::optional<FreshInputs> fresh_;  ///< none where copies do not fit
  std::vector<at::Tensor> outputs_;   ///< of the last timed call
};

}  // namespace

std::unique_ptr<Work> make_work(const Registry& registry, const Cell& cell,
                                const Forecast& forecast) {
  return std::make_unique<DecodeWork>(registry, cell, forecast);
}

}  // namespace attnbench::tasks::decode
