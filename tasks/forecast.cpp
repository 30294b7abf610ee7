#include "tasks/forecast.hpp"

#include "attention/layer.hpp"

namespace attnbench::tasks {

SingleThread::SingleThread() : threads_(at::get_num_threads()) { at::set_num_threads(1); }

SingleThread::~SingleThread() { at::set_num_threads(threads_); }

TaskForecast forecast_mix(const Registry& registry, const ResolvedCell& cell,
                          const Problem& problem) {
  const Entry& entry = registry.entry(cell.mechanism);
  TaskForecast forecast;
  forecast.problem = problem;
  forecast.problem.device = cell.device;
  forecast.options = Options::resolve(entry.options, cell.said);
  try {
    forecast.options = entry.derive(forecast.options, forecast.problem);
    const Choice choice =
        Registry::choose(entry, cell.implementation, forecast.options, forecast.problem);
    forecast.implementation = choice.implementation->name;
    forecast.choice_reason = choice.reason;
    const Implementation& chosen = *choice.implementation;
    forecast.growth = chosen.growth_with ? chosen.growth_with(forecast.options) : chosen.growth;
    forecast.cost = choice.implementation->cost(forecast.options, forecast.problem);
    if (problem.width() != problem.heads * problem.head_dim) {
      const SingleThread alone;
      forecast.support = key_dim_support(*make_on_cpu(registry, cell, forecast));
    }
  } catch (const UnsupportedError& error) {
    forecast.support = Support::no(error.what());
  }
  return forecast;
}

TaskForecast supported_forecast(const Task& task, const Registry& registry,
                                const ResolvedCell& cell) {
  TaskForecast forecast = task.forecast(registry, cell);
  if (!forecast.support) throw UnsupportedError(forecast.support.reason);
  return forecast;
}

result::Chosen chosen_section(const TaskForecast& forecast) {
  return {forecast.implementation, forecast.choice_reason};
}

std::int64_t output_elements(const Problem& problem) {
  return problem.batch * problem.heads * problem.length * problem.value_dim;
}

std::shared_ptr<Mechanism> make_mechanism(const Registry& registry, const ResolvedCell& cell,
                                          const TaskForecast& forecast) {
  return registry.entry(cell.mechanism).make(forecast.options, forecast.problem);
}

std::shared_ptr<Mechanism> make_on_cpu(const Registry& registry, const ResolvedCell& cell,
                                       const TaskForecast& forecast) {
  Problem problem = forecast.problem;
  problem.device = "cpu";
  return registry.entry(cell.mechanism).make(forecast.options, problem);
}

std::int64_t stream_tokens(const Mechanism& mechanism) {
  for (const Role& role : mechanism.roles()) {
    if (role.source == Source::latent_stream) return mechanism.shape_of(role)[2];
  }
  return 0;
}

const Implementation& chosen(const Registry& registry, const ResolvedCell& cell,
                             const TaskForecast& forecast) {
  return registry.entry(cell.mechanism).implementation(forecast.implementation);
}

}  // namespace attnbench::tasks
