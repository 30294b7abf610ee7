// The mad task: one of six small exercises, each of which tests one ability of a mechanism (Poli et
// al. 2024, Mechanistic Design and Scaling of Hybrid Architectures).
#include <nlohmann/json.hpp>

#include "tasks/mad/exercise.hpp"
#include "tasks/settings.hpp"
#include "tasks/training/task.hpp"

namespace attnbench::tasks {
namespace mad {
namespace {

/// 0 = the exercise's own.
Option count(const char* name, const char* meaning) { return integer_setting(name, 0, meaning, 0); }

/// The number of examples of each split, and what they have in common.
struct Plan : training::BySplit<std::int64_t> {
  Rules rules;
  std::uint64_t seed = 0;
};

class MadData final : public training::ExampleDataSet {
 public:
  /// Throws UsageError where the rules cannot be kept.
  explicit MadData(const Plan& plan) : plan_(plan) { check(plan.rules); }
  std::vector<training::SegmentSize> segments(Split split) const override {
    const Rules& rules = plan_.rules;
    return {{to_string(rules.exercise), rules.length, plan_.of(split), labels(rules)}};
  }
  const Rules& rules() const { return plan_.rules; }

 private:
  Example scored(Split split, std::size_t, std::uint64_t number) const override {
    return make_example(plan_.rules, plan_.seed, split, number);
  }
  Example learned(Split split, std::size_t segment, std::uint64_t number) const override {
    return with_learned_labels(plan_.rules, scored(split, segment, number));
  }

  Plan plan_;
};

Rules rules_from(const Options& settings) {
  Rules rules = baseline(exercise_from(settings.text("exercise")));
  const auto take = [&](const char* name, std::int64_t& into) {
    if (settings.integer(name) != 0) into = settings.integer(name);
  };
  take("vocabulary", rules.vocabulary);
  take("length", rules.length);
  take("train_examples", rules.train);
  if (rules.exercise == Exercise::noisy_recall) {
    take("noise_tokens", rules.noise_tokens);
    if (settings.number("noise") > 0) rules.noise = settings.number("noise");
  }
  if (rules.exercise == Exercise::fuzzy_recall) take("motif", rules.motif);
  if (rules.exercise == Exercise::selective_copying) take("symbols", rules.symbols);
  return rules;
}

class MadTask final : public training::TrainingTask {
 public:
  std::string name() const override { return "mad"; }
  std::string title() const override {
    return "Recall, copying, compression, memorization: six exercises, after training (MAD)";
  }
  std::string axis() const override { return "exercise"; }
  std::vector<Departure> differs_from() const override {
    return {
        {"in-context and noisy recall have one token more than mad-lab's, the last value, which "
         "mad-lab cuts off; fuzzy recall has as many, one of padding less",
         "nothing is asked of it"},
        {"fuzzy recall shows the probe before it asks for it; mad-lab's may come too late",
         "not offered: what was never shown cannot be recalled"},
        {"compression does not ask for the sign itself, which mad-lab counts as right",
         "not offered"}};
  }
  std::vector<std::string> figures() const override {
    return {"accuracy", "accuracy_over_learning_rate", "learning_curves"};
  }
  std::vector<std::string> further_figures() const override {
    return {"loss_curves", "accuracy_over_state", "accuracy_by_look_back"};
  }

  std::vector<Option> data_settings() const override {
    return {
        text_setting("exercise", "in_context_recall", "what is to be learned", exercise_names()),
        count("vocabulary", "different tokens; 0 = the exercise's own, as for every 0 here"),
        count("length", "tokens T of a sequence"),
        count("train_examples", "different training examples"),
        integer_setting("validation_examples", 1280, "they decide the learning rate"),
        integer_setting("test_examples", 1280, "scored at the end"),
        count("noise_tokens", "of noisy_recall: tokens of the vocabulary that are noise"),
        number_setting("noise", 0, "of noisy_recall: share of the pairs that are noise", 0, 0.99),
        count("motif", "of fuzzy_recall: most tokens of a key or a value"),
        count("symbols", "of selective_copying: number of symbols to copy"),
        text_setting("pattern", "causal",
                     "bidirectional is for compression alone: elsewhere the answer would be seen",
                     {"causal", "bidirectional"})};
  }

  std::unique_ptr<training::DataSet> data_set(const Options& settings,
                                              std::uint64_t run_seed) const override {
    Plan plan;
    plan.rules = rules_from(settings);
    if (settings.text("pattern") != "causal" && plan.rules.exercise != Exercise::compression) {
      throw UsageError(std::string(to_string(plan.rules.exercise)) +
                       " is causal: a model that looks ahead would see the answers");
    }
    plan.train = plan.rules.train;
    plan.validation = settings.integer("validation_examples");
    plan.test = settings.integer("test_examples");
    plan.seed = training::data_seed(settings, run_seed);
    return std::make_unique<MadData>(plan);
  }

  void fit(const Options& settings, training::ModelOptions& model) const override {
    const Rules rules = rules_from(settings);
    model.vocabulary = rules.vocabulary;
    model.decoder = rules.exercise == Exercise::compression;
  }

  void add_facts(const ResolvedCell&, const TaskForecast&, const training::DataSet& data,
                 const training::StateBytes&, result::Training& record) const override {
    const Rules& rules = dynamic_cast<const MadData&>(data).rules();
    record.chance = 1.0 / static_cast<double>(answers(rules));
    record.rules = {{"vocabulary", rules.vocabulary}, {"length", rules.length},
                    {"train_examples", rules.train},  {"noise_tokens", rules.noise_tokens},
                    {"noise", rules.noise},           {"motif", rules.motif},
                    {"symbols", rules.symbols}};
  }
};

}  // namespace
}  // namespace mad

std::unique_ptr<Task> make_mad() { return std::make_unique<mad::MadTask>(); }

}  // namespace attnbench::tasks
