// The decode task: one token at a time from a state. What a step costs and what the state weighs,
// against the length of the context; prefill and generation beside them.
#include "tasks/decode/work.hpp"
#include "tasks/forecast.hpp"
#include "tasks/reference_rows.hpp"
#include "tasks/sizes.hpp"

namespace attnbench::tasks {
namespace decode {
namespace {

/// What `cost` says of the context with one token more, less the context itself, is the step's own.
/// It must read the state, and a token in and out; its few exponentials hide behind that.
Cost step_cost(const Implementation& implementation, const Options& options,
               const Problem& context) {
  Problem longer = context;
  longer.length = longer.key_length = context.length + 1;
  const Cost before = implementation.cost(options, context);
  const Cost after = implementation.cost(options, longer);
  Cost cost;
  cost.model_flops = after.model_flops - before.model_flops;
  cost.executed_flops = cost.model_flops;
  cost.minimal_bytes = before.state_bytes + after.minimal_bytes - before.minimal_bytes;
  cost.state_bytes = before.state_bytes;
  return cost;
}

/// Asked with room for one token, so that the answer costs nothing.
Support has_state(const Mechanism& mechanism, const Problem& problem) {
  try {
    mechanism.empty_state(problem.batch, 1, at::TensorOptions().dtype(scalar_type(problem.dtype)));
    return {};
  } catch (const UnsupportedError& error) {
    return Support::no(error.what());
  }
}

class DecodeTask final : public Task {
 public:
  std::string name() const override { return "decode"; }
  std::string title() const override { return "Time per token and state after a context"; }
  std::vector<Option> settings() const override {
    std::vector<Option> declared = size_settings();
    declared.push_back({"length",
                        OptionType::integer,
                        std::int64_t{1024},
                        "tokens of context before the step",
                        1.0,
                        {},
                        {}});
    declared.push_back({"steps",
                        OptionType::integer,
                        std::int64_t{16},
                        "tokens generated one after the other",
                        1.0,
                        {},
                        {}});
    return declared;
  }
  std::vector<std::string> figures() const override { return {"step_time", "state"}; }
  std::vector<std::string> further_figures() const override {
    return {"prefill_time", "generation_time", "generation_speedup"};
  }
  std::string axis() const override { return "length"; }

  Forecast forecast(const Registry& registry, const Cell& cell) const override {
    Forecast forecast = forecast_mix(registry, cell, problem_from(cell.settings));
    if (!forecast.support) return forecast;
    {
      const SingleThread alone;
      forecast.support = has_state(*make_on_cpu(registry, cell, forecast), forecast.problem);
    }
    if (!forecast.support) return forecast;
    const Implementation& implementation = chosen(registry, cell, forecast);
    const Cost prefill = forecast.cost;
    forecast.cost = step_cost(implementation, forecast.options, forecast.problem);
    // Inputs of the steps beside those of the context, its output, and a state saved and one at
    // work.
    const double more = static_cast<double>(cell.settings.integer("steps")) /
                        static_cast<double>(forecast.problem.length);
    forecast.peak_bytes =
        (1 + more) * (prefill.minimal_bytes + 2 * prefill.state_bytes) + prefill.workspace_bytes;
    return forecast;
  }

  std::unique_ptr<Work> make(const Registry& registry, const Cell& cell) const override {
    const Forecast known = forecast(registry, cell);
    if (!known.support) throw UnsupportedError(known.support.reason);
    return make_work(registry, cell, known);
  }
};

}  // namespace
}  // namespace decode

std::unique_ptr<Task> make_decode() { return std::make_unique<decode::DecodeTask>(); }

}  // namespace attnbench::tasks
