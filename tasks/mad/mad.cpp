// The mad task: one of six small exercises, each of which asks for one thing that a mechanism has
// to be able to do (Poli et al. 2024, Mechanistic Design and Scaling of Hybrid Architectures).
#include <nlohmann/json.hpp>

#include "tasks/training/task.hpp"
#include "tasks/mad/data.hpp"

namespace attnbench::tasks {
namespace mad {
namespace {

Option count(const char* name, std::int64_t fallback, const char* meaning) {
  return {name, OptionType::integer, fallback, meaning, 0.0, {}, {}};
}

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

class MadTask final : public learning::TrainingTask {
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
    Option positive = count("validation_examples", 1280, "by which learning rates are chosen");
    Option test = count("test_examples", 1280, "scored at the end");
    positive.minimum = test.minimum = 1;
    return {{"exercise",
             OptionType::text,
             std::string("in_context_recall"),
             "what is to be learned",
             {},
             {},
             exercise_words()},
            count("vocabulary", 0, "different tokens; 0 = the exercise's own, as all zeros here"),
            count("length", 0, "tokens T of a sequence"),
            count("train_examples", 0, "different examples to learn from"),
            positive,
            test,
            count("noise_tokens", 0, "of noisy_recall: so many of the vocabulary are noise"),
            {"noise",
             OptionType::number,
             0.0,
             "of noisy_recall: share of the pairs that are noise",
             0.0,
             0.99,
             {}},
            count("motif", 0, "of fuzzy_recall: most tokens of a key or a value"),
            count("symbols", 0, "of selective_copying: how many are to be copied"),
            {"pattern",
             OptionType::text,
             std::string("causal"),
             "bidirectional is for compression alone: elsewhere the answer would be seen",
             {},
             {},
             {"causal", "bidirectional"}}};
  }

  std::unique_ptr<learning::DataSet> data_set(const Options& settings,
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
    plan.seed =
        learning::key_of({run_seed, static_cast<std::uint64_t>(settings.integer("data_seed"))});
    return std::make_unique<MadData>(plan);
  }

  void fit(const Options& settings, learning::ModelOptions& model) const override {
    const Rules rules = rules_from(settings);
    model.vocabulary = rules.vocabulary;
    model.decoder = rules.exercise == Exercise::compression;
  }

  Json facts(const Cell&, const Forecast&, const learning::DataSet& data,
             const learning::StateBytes&) const override {
    const Rules& rules = dynamic_cast<const MadData&>(data).plan().rules;
    return {{"chance", 1.0 / static_cast<double>(answers(rules))},
            {"rules",
             {{"vocabulary", rules.vocabulary},
              {"length", rules.length},
              {"train_examples", rules.train},
              {"noise_tokens", rules.noise_tokens},
              {"noise", rules.noise},
              {"motif", rules.motif},
              {"symbols", rules.symbols}}}};
  }
};

}  // namespace
}  // namespace mad

std::unique_ptr<Task> make_mad() { return std::make_unique<mad::MadTask>(); }

}  // namespace attnbench::tasks
