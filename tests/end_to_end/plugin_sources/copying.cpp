// A plugin of a task alone: copying. A value is set at one token and zeros at all others; how much
// of it is there at the last token, in share of its size, is what the mechanism carries that far.
#include <nlohmann/json.hpp>

#include "attention/torch/draw.hpp"
#include "tasks/plugin.hpp"

namespace {

using namespace attnbench;
using tasks::Json;

Problem problem_of(const tasks::ResolvedCell& cell) {
  Problem problem;
  problem.length = problem.key_length = cell.settings.integer("length");
  problem.head_dim = problem.value_dim = 16;
  problem.device = cell.device;
  return problem;
}

class CopyingWork final : public tasks::Work {
 public:
  CopyingWork(const Entry& entry, const Implementation& implementation, Options options,
              Problem problem)
      : implementation_(implementation),
        mechanism_(entry.make(options, problem)),
        problem_(problem) {}

  void prepare(tasks::Context& context) override {
    for (const Role& role : mechanism_->roles()) {
      const std::vector<std::int64_t> shape{1, 1, problem_.length, role.width};
      inputs_.tensors[role.name] = draw_normal(context.seed(), role.name, shape, 1, problem_);
    }
    at::Tensor& value = inputs_.tensors.at("value");
    value.narrow(2, 1, problem_.length - 1).zero_();
  }

  Json check(tasks::Context&) override { return {{"verdict", "ok"}}; }

  Json run(tasks::Context& context) override {
    const at::NoGradGuard no_grad;
    at::Tensor output;
    context.measure("copying",
                    {[&] { output = implementation_.mix(*mechanism_, inputs_, nullptr).output; }});
    const double there = output.select(2, problem_.length - 1).norm().item<double>();
    const double set = inputs_["value"].select(2, 0).norm().item<double>();
    return {{"metrics", {{"carried_share", there / set}}}};
  }

 private:
  Implementation implementation_;
  std::shared_ptr<Mechanism> mechanism_;
  Problem problem_;
  Inputs inputs_;
};

class Copying final : public tasks::Task {
 public:
  std::string name() const override { return "copying"; }
  std::string title() const override {
    return "How much of the first value reaches the last token";
  }
  std::vector<Option> settings() const override {
    return {{"length", OptionType::integer, std::int64_t{64}, "tokens", 2.0, {}, {}}};
  }
  std::vector<std::string> figures() const override { return {"time"}; }
  std::string axis() const override { return "length"; }

  tasks::TaskForecast forecast(const Registry& registry,
                               const tasks::ResolvedCell& cell) const override {
    const Entry& entry = registry.entry(cell.mechanism);
    tasks::TaskForecast forecast;
    forecast.problem = problem_of(cell);
    forecast.options = entry.derive(Options::resolve(entry.options, cell.said), forecast.problem);
    try {
      const Choice choice =
          Registry::choose(entry, cell.implementation, forecast.options, forecast.problem);
      forecast.implementation = choice.implementation->name;
      forecast.choice_reason = choice.reason;
      forecast.cost = choice.implementation->cost(forecast.options, forecast.problem);
    } catch (const UnsupportedError& error) {
      forecast.support = Support::no(error.what());
    }
    return forecast;
  }

  std::unique_ptr<tasks::Work> make(const Registry& registry,
                                    const tasks::ResolvedCell& cell) const override {
    const tasks::TaskForecast planned = forecast(registry, cell);
    if (!planned.support) throw UnsupportedError(planned.support.reason);
    const Entry& entry = registry.entry(cell.mechanism);
    return std::make_unique<CopyingWork>(entry, entry.implementation(planned.implementation),
                                         planned.options, planned.problem);
  }
};

void add_copying(tasks::TaskTaker& taker) { taker.add(std::make_shared<Copying>()); }

}  // namespace

ATTNBENCH_PLUGIN_STAMP
ATTNBENCH_TASKS(add_copying)
