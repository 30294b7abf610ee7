// The mqar task: multi-query associative recall (Arora et al. 2024), trained from nothing. How many
// of the values that it was shown a model finds again, by mechanism, size and state.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tasks/learning/task.hpp"
#include "tasks/mqar/settings.hpp"

namespace attnbench::tasks {
namespace mqar {
namespace {

/// Of the test's questions, weighted by examples, those whose answer is at most so far back.
double share_within(const Plan& plan, std::int64_t farthest) {
  double sum = 0;
  double examples = 0;
  for (std::size_t i = 0; i < plan.test.size(); ++i) {
    const Segment& shape = plan.test[i];
    std::int64_t near = 0;
    for (std::int64_t j = 0; j < shape.examples; ++j) {
      const Example example = make_example(plan.recall, shape, plan.seed, Split::test, i,
                                           static_cast<std::uint64_t>(j));
      for (const Question& question : example.questions) near += question.distance <= farthest;
    }
    sum += static_cast<double>(near) / static_cast<double>(shape.pairs);
    examples += static_cast<double>(shape.examples);
  }
  return sum / examples;
}

class RecallTask final : public learning::TrainingTask {
 public:
  std::string name() const override { return "mqar"; }
  std::string title() const override {
    return "Recall of values by their keys, after training (MQAR)";
  }
  std::vector<Option> data_settings() const override { return mqar::data_settings(); }
  std::unique_ptr<learning::DataSet> data_set(const Options& settings,
                                              std::uint64_t run_seed) const override {
    return std::make_unique<RecallData>(plan_from(settings, run_seed));
  }
  void fit(const Options& settings, learning::ModelOptions& model) const override {
    Recall recall;
    recall.variant = variant_from(settings.text("variant"));
    model.tokens_per_position = tokens_per_position(recall);
  }

  /// What those reach who know nothing, and who know which values the sequence holds, weighted as
  /// accuracy is, by examples; and what one look-up into a window reaches.
  Json facts(const Cell& cell, const Forecast& forecast,
             const learning::DataSet& data) const override {
    const Plan& plan = dynamic_cast<const RecallData&>(data).plan();
    double examples = 0;
    double guesses = 0;
    for (const Segment& segment : plan.test) {
      examples += static_cast<double>(segment.examples);
      guesses += static_cast<double>(segment.examples) / static_cast<double>(segment.pairs);
    }
    Json facts = {{"chance", 1.0 / static_cast<double>(plan.recall.vocabulary)},
                  {"guess", guesses / examples}};
    const learning::ModelOptions model = model_options(cell.settings);
    if (cell.mechanism != "window" || learning::mechanism_blocks(model) != 1) return facts;
    // A convolution below puts key and value at the positions after the value's, too, up to the
    // last that still holds the key.
    const bool shifted = model.layout == learning::Layout::convolution_first;
    const std::int64_t farthest = forecast.options.window("window").left +
                                  (shifted ? std::max<std::int64_t>(0, model.taps - 2) : 0);
    facts["reach"] = share_within(plan, farthest);
    return facts;
  }
};

}  // namespace
}  // namespace mqar

std::unique_ptr<Task> make_mqar() { return std::make_unique<mqar::RecallTask>(); }

}  // namespace attnbench::tasks
