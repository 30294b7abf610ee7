// The kernel task: one mechanism at one size. Time per pass and scope, memory, correctness at the
// timed size; growth and roofline share are derived from those.

#include "tasks/call/settings.hpp"
#include "tasks/call/timed_call.hpp"
#include "tasks/forecast.hpp"

namespace attnbench::tasks {
namespace kernel {
namespace {

class KernelWork final : public Work {
 public:
  KernelWork(const Registry& registry, const ResolvedCell& cell, const TaskForecast& forecast)
      : settings_(call::settings_from(cell.settings)),
        timed_call_(registry, cell, forecast, settings_) {}

  void prepare(Context& context) override { timed_call_.prepare(context.seed()); }

  Json check(Context& context) override { return timed_call_.check(context.seed()); }

  Json run(Context& context) override {
    RunSections sections;
    sections.chosen = chosen_section(timed_call_.forecast());
    if (context.round() == 0) sections.memory = timed_call_.metered(context.memory());
    sections.metrics = timed_call_.metrics();
    context.measure(to_string(settings_.pass), timed_call_.body());
    sections.timed_check = timed_call_.timed_check(context.seed(), context.round());
    return sections;
  }

 private:
  const call::CallSettings settings_;
  call::TimedCall timed_call_;
};

class KernelTask final : public Task {
 public:
  std::string name() const override { return "kernel"; }
  std::string title() const override {
    return "Time, memory and correctness of one attention call";
  }
  std::vector<Option> settings() const override { return call::declared_settings(); }
  std::vector<std::string> figures() const override {
    return {"time", "memory", "slopes", "roofline"};
  }
  std::vector<std::string> further_figures() const override { return {"memory_slopes", "speedup"}; }
  std::string axis() const override { return "length"; }

  TaskForecast forecast(const Registry& registry, const ResolvedCell& cell) const override {
    return call::forecast_call(registry, cell, call::settings_from(cell.settings));
  }

  std::unique_ptr<Work> make(const Registry& registry, const ResolvedCell& cell) const override {
    return std::make_unique<KernelWork>(registry, cell, supported_forecast(*this, registry, cell));
  }
};

}  // namespace
}  // namespace kernel

std::unique_ptr<Task> make_kernel() { return std::make_unique<kernel::KernelTask>(); }

}  // namespace attnbench::tasks
