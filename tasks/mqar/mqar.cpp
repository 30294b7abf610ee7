// The mqar task: multi-query associative recall (Arora et al. 2024), trained from scratch. The
// accuracy of recall by mechanism, size and state.
#include <nlohmann/json.hpp>

#include "tasks/mqar/reach.hpp"
#include "tasks/training/task.hpp"

namespace attnbench::tasks {
namespace mqar {
namespace {

class RecallTask final : public training::TrainingTask {
 public:
  std::string name() const override { return "mqar"; }
  std::string title() const override {
    return "Recall of values by their keys, after training (MQAR)";
  }
  std::vector<Departure> differs_from() const override {
    return {
        {"variant=forgetting: all values of a sequence differ, the new ones too; zoology draws "
         "the new values apart, so that 21 % of its examples use a value twice",
         "not offered: with a value used twice, an answer does not tell which pair was found"}};
  }
  std::vector<Option> data_settings() const override { return mqar::data_settings(); }
  std::unique_ptr<training::DataSet> data_set(const Options& settings,
                                              std::uint64_t run_seed) const override {
    return std::make_unique<RecallData>(plan_from(settings, run_seed));
  }
  void fit(const Options& settings, training::ModelOptions& model) const override {
    Recall recall;
    recall.variant = variant_from(settings.text("variant"));
    model.tokens_per_position = tokens_per_position(recall);
  }

  /// The accuracy of a random token (chance) and of a random value of the sequence (guess),
  /// weighted by examples as the accuracy is; for a window also the reach of one look-up.
  void add_facts(const ResolvedCell& cell, const TaskForecast& forecast,
                 const training::DataSet& data, const training::StateBytes& state,
                 result::Training& record) const override {
    const RecallPlan& plan = dynamic_cast<const RecallData&>(data).plan();
    double examples = 0;
    double guesses = 0;
    for (const RecallSegment& segment : plan.test) {
      examples += static_cast<double>(segment.examples);
      guesses += static_cast<double>(segment.examples) / static_cast<double>(segment.pairs);
    }
    record.chance = 1.0 / static_cast<double>(plan.recall.vocabulary);
    record.guess = guesses / examples;
    if (cell.mechanism != "window" || !forecast.stack.empty()) return;
    const training::ModelOptions model = model_options(cell.settings);
    const std::int64_t keys = forecast.options.window("window").left + 1;
    const LookBackShares look_back(plan);
    const auto bytes = [&](const char* part) {
      const auto found = state.find(part);
      return found == state.end() ? 0 : found->second;
    };
    record.reach = look_back.share_within(farthest_found(keys, model));
    record.reach_line = reach_line(look_back, model, training::longest(data), keys,
                                   bytes("mechanism"), bytes("convolution"));
    record.stacked = training::mechanism_blocks(model);
  }
};

}  // namespace
}  // namespace mqar

std::unique_ptr<Task> make_mqar() { return std::make_unique<mqar::RecallTask>(); }

}  // namespace attnbench::tasks
