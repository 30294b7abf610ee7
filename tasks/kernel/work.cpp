#include "tasks/kernel/work.hpp"

#include <nlohmann/json.hpp>

#include "tasks/call/subject.hpp"

namespace attnbench::tasks::kernel {
namespace {

class KernelWork final : public Work {
 public:
  KernelWork(const Registry& registry, const Cell& cell, const Forecast& forecast)
      : settings_(call::settings_from(cell.settings)),
        subject_(registry, cell, forecast, settings_) {}

  void prepare(Context& context) override { subject_.prepare(context.seed()); }

  Json check(Context& context) override { return subject_.check(context.seed()); }

  Json run(Context& context) override {
    const Forecast& forecast = subject_.forecast();
    Json sections = {
        {"chosen",
         {{"implementation", forecast.implementation}, {"reason", forecast.choice_reason}}}};
    if (context.round() == 0) sections["memory"] = subject_.metered(context.memory());
    context.measure(to_string(settings_.pass), subject_.body());
    sections["timed_check"] = subject_.timed_check(context.seed(), context.round());
    return sections;
  }

 private:
  const call::Settings settings_;
  call::Subject subject_;
};

}  // namespace

std::unique_ptr<Work> make_work(const Registry& registry, const Cell& cell,
                                const Forecast& forecast) {
  return std::make_unique<KernelWork>(registry, cell, forecast);
}

}  // namespace attnbench::tasks::kernel
