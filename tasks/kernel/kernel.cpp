// The kernel task: one mechanism at one size. Time per pass and scope, memory, correctness at the
// timed size; growth and roofline share follow from those.
#include "tasks/call/cost.hpp"
#include "tasks/call/settings.hpp"
#include "tasks/forecast.hpp"
#include "tasks/kernel/work.hpp"

namespace attnbench::tasks {
namespace kernel {
namespace {

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

  Forecast forecast(const Registry& registry, const Cell& cell) const override {
    const call::Settings settings = call::settings_from(cell.settings);
    Forecast forecast = forecast_mix(registry, cell, settings.problem);
    call::price(forecast, registry, cell, settings);
    return forecast;
  }

  std::unique_ptr<Work> make(const Registry& registry, const Cell& cell) const override {
    const Forecast known = forecast(registry, cell);
    if (!known.support) throw UnsupportedError(known.support.reason);
    return make_work(registry, cell, known);
  }
};

}  // namespace
}  // namespace kernel

std::unique_ptr<Task> make_kernel() { return std::make_unique<kernel::KernelTask>(); }

}  // namespace attnbench::tasks
