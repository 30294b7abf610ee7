// The copy task: does a mechanism learn to repeat a sequence, and how fast does its loss fall
// (Katharopoulos et al. 2020, Figure 2)?
#include <nlohmann/json.hpp>

#include "tasks/copy/data.hpp"
#include "tasks/training/draws.hpp"
#include "tasks/training/task.hpp"

namespace attnbench::tasks {
namespace copy {
namespace {

Option count(const char* name, std::int64_t fallback, const char* meaning, double least = 1) {
  return {name, OptionType::integer, fallback, meaning, least, {}, {}};
}

class CopyTask final : public learning::TrainingTask {
 public:
  std::string name() const override { return "copy"; }
  std::string title() const override { return "Repeating a sequence of symbols, after training"; }
  std::vector<Option> data_settings() const override {
    return {count("vocabulary", 11, "the separator and the symbols", 3),
            count("length", 128, "tokens T of a sequence with its copy and what fills it up", 4),
            count("train_examples", 6400, "examples of an epoch"),
            count("validation_examples", 1280, "for the choice of the learning rate"),
            count("test_examples", 1280, "scored at the end")};
  }
  std::unique_ptr<learning::DataSet> data_set(const Options& settings,
                                              std::uint64_t run_seed) const override {
    Plan plan;
    plan.length = settings.integer("length");
    plan.vocabulary = settings.integer("vocabulary");
    plan.train = settings.integer("train_examples");
    plan.validation = settings.integer("validation_examples");
    plan.test = settings.integer("test_examples");
    plan.seed =
        learning::key_of({run_seed, static_cast<std::uint64_t>(settings.integer("data_seed"))});
    return std::make_unique<CopyData>(plan);
  }
  std::vector<std::string> figures() const override {
    return {"loss_curves", "learning_curves", "accuracy", "accuracy_over_learning_rate",
            "accuracy_over_state"};
  }
  std::vector<std::string> further_figures() const override { return {"accuracy_by_look_back"}; }

  /// Symbols are uniform: who knows nothing of the sequence finds one of them by chance.
  Json facts(const Cell&, const Forecast&, const learning::DataSet& data,
             const learning::StateBytes&) const override {
    const Plan& plan = dynamic_cast<const CopyData&>(data).plan();
    return {{"chance", 1.0 / static_cast<double>(plan.vocabulary - 1)}};
  }
};

}  // namespace
}  // namespace copy

std::unique_ptr<Task> make_copy() { return std::make_unique<copy::CopyTask>(); }

}  // namespace attnbench::tasks
