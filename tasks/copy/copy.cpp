// The copy task: accuracy and loss curve of learning to repeat a sequence (Katharopoulos et al.
// 2020, Figure 2).
#include <nlohmann/json.hpp>

#include "tasks/copy/data.hpp"
#include "tasks/settings.hpp"
#include "tasks/training/task.hpp"

namespace attnbench::tasks {
namespace copy {
namespace {

class CopyTask final : public training::TrainingTask {
 public:
  std::string name() const override { return "copy"; }
  std::string title() const override { return "Repeating a sequence of symbols, after training"; }
  std::vector<Option> data_settings() const override {
    return {integer_setting("vocabulary", 11, "the separator and the symbols", 3),
            integer_setting("length", 128, "tokens T: a sequence, its copy and padding", 4),
            integer_setting("train_examples", 6400, "examples of an epoch"),
            integer_setting("validation_examples", 1280, "they decide the learning rate"),
            integer_setting("test_examples", 1280, "scored at the end")};
  }
  std::unique_ptr<training::DataSet> data_set(const Options& settings,
                                              std::uint64_t run_seed) const override {
    CopyPlan plan;
    plan.length = settings.integer("length");
    plan.vocabulary = settings.integer("vocabulary");
    plan.train = settings.integer("train_examples");
    plan.validation = settings.integer("validation_examples");
    plan.test = settings.integer("test_examples");
    plan.seed = training::data_seed(settings, run_seed);
    return std::make_unique<CopyData>(plan);
  }
  std::vector<std::string> figures() const override {
    return {"loss_curves", "learning_curves", "accuracy", "accuracy_over_learning_rate",
            "accuracy_over_state"};
  }
  std::vector<std::string> further_figures() const override { return {"accuracy_by_look_back"}; }

  /// Symbols are uniform: chance is the accuracy of any constant answer.
  void add_facts(const ResolvedCell&, const TaskForecast&, const training::DataSet& data,
                 const training::StateBytes&, result::Training& record) const override {
    const CopyPlan& plan = dynamic_cast<const CopyData&>(data).plan();
    record.chance = 1.0 / static_cast<double>(plan.vocabulary - 1);
  }
};

}  // namespace
}  // namespace copy

std::unique_ptr<Task> make_copy() { return std::make_unique<copy::CopyTask>(); }

}  // namespace attnbench::tasks
