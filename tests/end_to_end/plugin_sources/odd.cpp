// A plugin of a task that hands back whatever sections it is told to.
#include <nlohmann/json.hpp>

#include "tasks/plugin.hpp"

namespace {

using namespace attnbench;
using tasks::Json;

class OddWork final : public tasks::Work {
 public:
  explicit OddWork(std::string sections) : sections_(std::move(sections)) {}
  void prepare(tasks::Context&) override {}
  Json check(tasks::Context&) override { return {{"verdict", "ok"}}; }
  Json run(tasks::Context&) override { return Json::parse(sections_); }

 private:
  std::string sections_;
};

class Odd final : public tasks::Task {
 public:
  std::string name() const override { return "odd"; }
  std::string title() const override { return "Whatever it is told"; }
  std::vector<Option> settings() const override {
    return {{"sections", OptionType::text, std::string("{}"), "its record, as JSON", {}, {}, {}}};
  }
  std::vector<std::string> figures() const override { return {"time"}; }
  std::string axis() const override { return "sections"; }
  tasks::TaskForecast forecast(const Registry& registry,
                               const tasks::ResolvedCell& cell) const override {
    tasks::TaskForecast forecast;
    const Entry& entry = registry.entry(cell.mechanism);
    forecast.options = Options::resolve(entry.options, cell.said);
    return forecast;
  }
  std::unique_ptr<tasks::Work> make(const Registry&,
                                    const tasks::ResolvedCell& cell) const override {
    return std::make_unique<OddWork>(cell.settings.text("sections"));
  }
};

void add_odd(tasks::TaskTaker& taker) { taker.add(std::make_shared<Odd>()); }

}  // namespace

ATTNBENCH_PLUGIN_STAMP
ATTNBENCH_TASKS(add_odd)
