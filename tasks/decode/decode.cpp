// The decode task: one token at a time from a state. The time of a step and the size of the state
// against the length of the context, with prefill and generation beside them.
#include <algorithm>
#include <functional>
#include <utility>

#include "attention/layer.hpp"
#include "tasks/check.hpp"
#include "tasks/continuation.hpp"
#include "tasks/decode/generation.hpp"
#include "tasks/decode/model_decode.hpp"
#include "tasks/forecast.hpp"
#include "tasks/output_checks.hpp"
#include "tasks/ragged.hpp"
#include "tasks/settings.hpp"

namespace attnbench::tasks {
namespace decode {
namespace {

/// The time that the definition may take for rows of the context.
constexpr double prefill_seconds = 0.1;

/// The cost of one more token; its few exponentials are not counted.
Cost step_cost(const Implementation& implementation, const Options& options,
               const Problem& context) {
  return continued_cost(implementation, options, context, 1);
}

/// The cost of all steps: a state that grows is read at its mean size, that of the middle step.
Cost steps_cost(const Implementation& implementation, const Options& options,
                const Problem& context, std::int64_t steps) {
  Cost cost = step_cost(implementation, options, longer_by(context, steps / 2));
  for (double* const part : {&cost.model_flops, &cost.executed_flops, &cost.minimal_bytes}) {
    *part *= static_cast<double>(steps);
  }
  return cost;
}

/// What rotating the queries and keys of a context takes at its peak: copies in float32 at least.
double rotation_bytes(const Mechanism& mechanism) {
  double numbers = 0;
  for (const RotatedPart& part : rotated_parts(mechanism)) {
    for (const Role& role : mechanism.roles()) {
      if (role.name != part.role) continue;
      const auto shape = mechanism.shape_of(role);
      numbers += static_cast<double>(shape[0] * shape[1] * shape[2] * shape[3]);
    }
  }
  const Dtype dtype = mechanism.problem.dtype;
  return 4 * numbers * static_cast<double>(std::max<std::int64_t>(4, bytes_of(dtype)));
}

/// Rows of the outputs of single tokens, and their places in the sequence.
struct StepRows {
  Rows rows;
  std::vector<double> values;

  void add(const Generation& generation, const std::vector<at::Tensor>& outputs,
           std::int64_t step) {
    const Problem problem = generation.problem_of(1);
    Rows of_output;
    for (std::int64_t b = 0; b < problem.batch; ++b) {
      for (std::int64_t h = 0; h < problem.heads; ++h) {
        rows.push_back({b, h, generation.context_length() + step});
        of_output.push_back({b, h, 0});
      }
    }
    for (const double value : rows_of(outputs[static_cast<std::size_t>(step)], of_output)) {
      values.push_back(value);
    }
  }
};

class DecodeWork final : public Work {
 public:
  DecodeWork(const Registry& registry, const ResolvedCell& cell, const TaskForecast& forecast)
      : registry_(registry),
        cell_(cell),
        forecast_(forecast),
        implementation_(chosen(registry, cell, forecast)) {}

  void prepare(Context& context) override {
    const at::NoGradGuard no_grad;
    generation_.emplace(registry_, cell_, forecast_, context.seed());
    if (context.round() == 0) {
      before_.emplace(read_by(generation_->mechanism(), generation_->inputs()));
    }
    const at::Tensor output = generation_->read_context();
    if (context.round() == 0) prefill_output_ = output;
  }

  /// The output of the context, and those of the first and the last generated token.
  Json check(Context& context) override {
    const at::NoGradGuard no_grad;
    AfterCallCheck after_call;
    const at::Tensor first = generation_->first_step();
    if (const std::string why = after_call.failure(first); !why.empty()) return found_wrong(why);
    const std::vector<at::Tensor> outputs = generation_->all_steps();
    if (const std::string name = before_->changed(); !name.empty()) {
      return found_wrong("it changed its input \"" + name + "\" in place");
    }
    before_.reset();
    const at::Tensor prefill = std::exchange(prefill_output_, {});
    for (const auto& [output, length] : {std::pair{prefill, generation_->context_length()},
                                         std::pair{outputs.front(), std::int64_t{1}},
                                         std::pair{outputs.back(), std::int64_t{1}}}) {
      if (const std::string wrong = mismatch(output, length); !wrong.empty()) {
        return found_wrong(wrong);
      }
    }
    const Inputs inputs = generation_->mixed_inputs();
    const MixCase mix = case_of(inputs, context);
    const std::int64_t steps = generation_->steps();
    StepRows taken;
    taken.add(*generation_, outputs, 0);
    if (steps > 1) taken.add(*generation_, outputs, steps - 1);
    CheckSection section = check_taken_rows(mix, whole_problem(), taken.rows, taken.values);
    section.add_part("prefill",
                     check_output(mix, generation_->problem_of(generation_->context_length()),
                                  prefill, {}, prefill_seconds),
                     "prefill: ");
    section.after_call = after_call.note();
    return section;
  }

  Json run(Context& context) override {
    const at::NoGradGuard no_grad;
    RunSections sections;
    sections.chosen = chosen_section(forecast_);
    if (context.round() == 0) sections.memory = generation_->metered_step(context.memory());
    generation_->make_fresh(context.seed());
    CheckSection& timed = sections.timed_check.emplace();
    context.measure("step", generation_->step_body());
    timed.add_part("step", check_step(context), "a timed step: ");
    const double generation = context.measure("generation", generation_->generation_body());
    timed.add_part("generation", check_generation(context), "a timed generation: ");
    const double prefill = context.measure("prefill", generation_->prefill_body());
    timed.add_part("prefill", check_prefill(context), "a timed prefill: ");
    const auto batch = static_cast<double>(forecast_.problem.batch);
    const auto steps = static_cast<double>(generation_->steps());
    const auto context_tokens = static_cast<double>(generation_->context_tokens());
    sections.metrics = padding_metrics(generation_->lengths());
    sections.metrics["state_bytes"] =
        generation_->empty_state(generation_->context_length()).bytes();
    sections.metrics["tokens_per_second"] = batch * steps / generation;
    sections.metrics["prefill_tokens_per_second"] = context_tokens / prefill;
    return sections;
  }

 private:
  Problem whole_problem() const {
    return generation_->problem_of(generation_->context_length() + generation_->steps());
  }

  MixCase case_of(const Inputs& inputs, const Context& context) const {
    return {registry_.entry(cell_.mechanism),
            implementation_,
            registry_.reference(cell_.mechanism),
            generation_->mechanism(),
            inputs,
            context.seed() + 1000 * static_cast<std::uint64_t>(context.round())};
  }

  /// A sequence without padding.
  std::int64_t longest_context() const {
    const std::vector<std::int64_t>& lengths = generation_->lengths();
    if (lengths.empty()) return forecast_.problem.batch - 1;
    return std::max_element(lengths.begin(), lengths.end()) - lengths.begin();
  }

  /// How an output of `length` tokens differs from the expected form; empty if it does not.
  std::string mismatch(const at::Tensor& output, std::int64_t length) const {
    const Problem& problem = forecast_.problem;
    const std::vector<std::int64_t> shape{problem.batch, problem.heads, length, problem.value_dim};
    const std::string found =
        form_mismatch(output, shape, scalar_type(problem.dtype), at::Device(problem.device));
    return found.empty() ? "" : cell_.mechanism + "/" + implementation_.name + " returned " + found;
  }

  /// The result where the outputs of the last call cannot be checked.
  std::optional<CheckSection> early_result() const {
    if (!generation_->fresh() || !generation_->outputs().front().defined()) {
      return check_skipped("copies of its inputs did not fit in memory");
    }
    const std::string name = generation_->fresh()->changed();
    if (!name.empty()) return found_wrong("it changed its input \"" + name + "\" in place");
    return std::nullopt;
  }

  CheckSection check_step(Context& context) {
    if (const auto early = early_result()) return *early;
    const std::vector<at::Tensor>& outputs = generation_->outputs();
    if (const std::string wrong = mismatch(outputs[0], 1); !wrong.empty()) {
      return found_wrong(wrong);
    }
    const Inputs inputs = generation_->last_inputs();
    StepRows taken;
    taken.add(*generation_, outputs, 0);
    CheckSection found =
        check_taken_rows(case_of(inputs, context), whole_problem(), taken.rows, taken.values);
    if (!found.ok()) return found;
    AfterCallCheck after_call;
    const at::Tensor repeated = generation_->first_step();
    const std::string why = after_call.failure(repeated);
    if (!why.empty()) return found_wrong(why);
    found.after_call = after_call.note();
    return found;
  }

  CheckSection check_generation(Context& context) {
    if (const auto early = early_result()) return *early;
    const std::vector<at::Tensor>& outputs = generation_->outputs();
    for (const at::Tensor& output : outputs) {
      if (const std::string wrong = mismatch(output, 1); !wrong.empty()) return found_wrong(wrong);
      if (count_not_finite(output) == 0) continue;
      return found_wrong("it returned numbers that are not finite");
    }
    const Inputs inputs = generation_->last_inputs();
    const std::int64_t steps = generation_->steps();
    StepRows taken;
    taken.add(*generation_, outputs, 0);
    if (steps > 2) taken.add(*generation_, outputs, 1 + context.round() % (steps - 2));
    if (steps > 1) taken.add(*generation_, outputs, steps - 1);
    return check_taken_rows(case_of(inputs, context), whole_problem(), taken.rows, taken.values);
  }

  CheckSection check_prefill(Context& context) {
    if (const auto early = early_result()) return *early;
    const std::int64_t length = generation_->context_length();
    const at::Tensor& output = generation_->outputs()[0];
    if (const std::string wrong = mismatch(output, length); !wrong.empty()) {
      return found_wrong(wrong);
    }
    const Inputs inputs = generation_->last_inputs();
    const Problem problem = generation_->problem_of(length);
    const FreshInputs& fresh = *generation_->fresh();
    Rows renewed;
    for (std::size_t i = 0; i < fresh.copies().size(); ++i) {
      renewed.push_back({longest_context(), problem.heads - 1, fresh.last_token(i)});
    }
    return check_output(case_of(inputs, context), problem, output, renewed, prefill_seconds);
  }

  const Registry& registry_;
  const ResolvedCell cell_;
  const TaskForecast forecast_;
  const Implementation implementation_;
  std::optional<Generation> generation_;
  std::optional<Snapshot> before_;  ///< the inputs before the context was read, in the first round
  at::Tensor prefill_output_;       ///< until it is checked
};

class DecodeTask final : public Task {
 public:
  std::string name() const override { return "decode"; }
  std::string title() const override { return "Time per token and state after a context"; }
  std::vector<Option> settings() const override {
    std::vector<Option> declared = size_settings();
    declared.push_back(integer_setting("length", 1024, "tokens of context before the step"));
    declared.push_back(lengths_setting());
    declared.push_back(integer_setting("steps", 16, "tokens generated one after the other"));
    declared.push_back(text_setting("scope", "mix",
                                    "mix: the mixing alone, from its own state; model: a whole "
                                    "model from token ids to logits, from the states of its blocks",
                                    {"mix", "model"}));
    declared.push_back(text_setting(
        "positions", "none",
        "rotary: queries and keys are rotated to their positions before each mix, inside the "
        "clock; learned or sinusoidal: added to the embedding, for the scope model",
        {"none", "learned", "sinusoidal", "rotary"}));
    append(declared, model_decode_settings());
    return declared;
  }
  std::vector<std::string> figures() const override { return {"step_time", "state"}; }
  std::vector<std::string> further_figures() const override {
    return {"prefill_time", "generation_time", "generation_speedup"};
  }
  std::string axis() const override { return "length"; }

  TaskForecast forecast(const Registry& registry, const ResolvedCell& cell) const override {
    return forecast_stack(registry, cell, cell.settings.integer("layers"),
                          [&](const ResolvedCell& one) { return forecast_alone(registry, one); });
  }

  std::unique_ptr<Work> make(const Registry& registry, const ResolvedCell& cell) const override {
    const TaskForecast forecast = supported_forecast(*this, registry, cell);
    if (decodes_model(cell)) return make_model_decode(registry, cell, forecast);
    return std::make_unique<DecodeWork>(registry, cell, forecast);
  }

 private:
  static TaskForecast forecast_alone(const Registry& registry, const ResolvedCell& cell) {
    const bool model = decodes_model(cell);
    const std::string positions = cell.settings.text("positions");
    const bool rotary = positions == "rotary" && !model;
    TaskForecast forecast = forecast_mix(registry, cell, problem_from(cell.settings));
    const std::vector<std::int64_t> lengths = lengths_from(cell.settings, forecast.problem);
    if (model && !lengths.empty()) {
      throw UsageError(
          "contexts of several lengths are decoded by the mix alone, and the scope is model: say "
          "scope mix, or leave lengths out");
    }
    if (!forecast.support) return forecast;
    if (!model && positions != "none" && !rotary) {
      forecast.support = Support::no(positions +
                                     " positions are added to an embedding, which the scope model "
                                     "alone has: say scope model, or positions none or rotary");
      return forecast;
    }
    double rotation = 0;
    {
      const SingleThread alone;
      const auto mechanism = make_on_cpu(registry, cell, forecast);
      forecast.support = has_state(*mechanism, forecast.problem);
      if (forecast.support && rotary) {
        forecast.support = rotary_support(*mechanism);
        rotation = rotation_bytes(*mechanism);
      }
    }
    if (!forecast.support) return forecast;
    const Implementation& implementation = chosen(registry, cell, forecast);
    const Options& options = forecast.options;
    const double reading_bytes = forecast.cost.workspace_bytes;
    forecast.calls = cell.settings.integer("steps");
    const auto cost_by = [&](const std::function<Cost(const Problem&)>& of) {
      return ragged_cost(forecast.problem, lengths, of);
    };
    forecast.prefill_cost =
        cost_by([&](const Problem& some) { return implementation.cost(options, some); });
    forecast.cost =
        cost_by([&](const Problem& some) { return step_cost(implementation, options, some); });
    forecast.calls_cost = cost_by([&](const Problem& some) {
      return steps_cost(implementation, options, some, forecast.calls);
    });
    // Inputs and outputs of context and steps, a saved state and a working one.
    const Cost whole = implementation.cost(options, longer_by(forecast.problem, forecast.calls));
    forecast.peak_bytes = whole.minimal_bytes + 2 * whole.state_bytes + reading_bytes + rotation;
    if (model) return forecast_model_decode(registry, cell, std::move(forecast));
    return forecast;
  }
};

}  // namespace
}  // namespace decode

std::unique_ptr<Task> make_decode() { return std::make_unique<decode::DecodeTask>(); }

}  // namespace attnbench::tasks
