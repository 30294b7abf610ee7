// The task lm: bits per byte of a language model over the bytes of a text, or perplexity over its
// tokens, at the length of training and at longer ones. The text is prepared by `attnbench data
// lm`; a cell without it is skipped.
#include <nlohmann/json.hpp>

#include "tasks/data/data_task.hpp"
#include "tasks/data/lm/lm_data_task.hpp"
#include "tasks/lm/latents.hpp"
#include "tasks/lm/sequences.hpp"
#include "tasks/settings.hpp"
#include "tasks/training/data_outline.hpp"
#include "tasks/training/task.hpp"

namespace attnbench::tasks {
namespace lm {
namespace {

/// The only text of `folder` that is wanted. Throws MissingData, and UsageError where it may be one
/// of several.
std::shared_ptr<const tasks::data::Cache> the_text(const tasks::data::Wanted& wanted) {
  const std::filesystem::path folder = tasks::data::data_folder();
  std::shared_ptr<const tasks::data::Cache> found = tasks::data::find_cache(folder, wanted);
  for (const tasks::data::PreparedFile& file : tasks::data::caches_in(folder)) {
    if (!file.cache || !difference(*file.cache, wanted).empty()) continue;
    if (file.cache->content_hash() == found->content_hash()) continue;
    const auto name = [](const tasks::data::Cache& cache) {
      return cache.description().settings.value("text", "");
    };
    throw UsageError(folder.string() + ": several texts are prepared, among them " + name(*found) +
                     " and " + name(*file.cache) + ": set text to the name of one");
  }
  return found;
}

class LmTask final : public training::TrainingTask {
 public:
  std::string name() const override { return "lm"; }
  std::string title() const override {
    return "The next byte or token of a text, after training: bits per byte, or perplexity";
  }
  std::vector<std::string> figures() const override {
    return {"bits_per_byte",
            "bits_per_byte_over_length",
            "bits_per_byte_over_steps",
            "bits_per_byte_over_state",
            "bits_per_byte_over_time",
            "bits_per_byte_over_memory",
            "bits_per_byte_over_learning_rate",
            "latent_probabilities"};
  }
  std::vector<std::string> further_figures() const override {
    return {"loss_curves", "learning_curves"};
  }
  std::vector<Departure> differs_from() const override {
    return {
        {"tokens are bytes by default; language models of the papers have tokens of some four "
         "letters, whose perplexity cannot be compared with that of a byte",
         "tokens reads ids that a tokeniser wrote, or words; no tokeniser is offered"},
        {"a sequence sees nothing of the one before, in training and in the test",
         "not offered in a run; a state continues through a whole text in `attnbench generate`"}};
  }
  std::vector<Option> settings() const override;
  std::vector<Option> data_settings() const override;
  std::unique_ptr<training::DataSet> data_set(const Options& settings,
                                              std::uint64_t run_seed) const override;
  std::unique_ptr<training::DataSet> outline(const Options& settings) const override;
  void fit(const Options& settings, training::ModelOptions& model) const override;
  void add_facts(const ResolvedCell& cell, const TaskForecast& forecast,
                 const training::DataSet& data, const training::StateBytes& state,
                 result::Training& record) const override;
  void add_findings(const ResolvedCell& cell, const training::DataSet& data, training::Model& model,
                    result::Training& record) const override;
  /// Prepared in the program, not written by the worker.
  const TaskData* data() const override { return nullptr; }
};

std::vector<Option> LmTask::settings() const {
  std::vector<Option> declared = TrainingTask::settings();
  const auto set = [&](const char* name, OptionValue fallback) {
    for (Option& one : declared) {
      if (one.name == name) one.fallback = std::move(fallback);
    }
  };
  set("batch", std::int64_t{16});
  set("heads", std::int64_t{2});
  set("order", std::string("fresh"));
  set("steps", std::int64_t{2000});
  set("evaluate_every", std::int64_t{200});
  declared.push_back(integer_setting(
      "latent_probabilities", 0,
      "of mixtures of latents: the first tokens of the test for which the record holds "
      "the probabilities of the states, in the last block's first head; 0 = none",
      0));
  return declared;
}

std::vector<Option> LmTask::data_settings() const {
  std::vector<Option> settings = tasks::data::find_data_task("lm")->settings;
  append(settings,
         {integer_setting("length", 256, "tokens T of a training sequence"),
          text_setting("segments", "1, 1.5, 2, 4",
                       "lengths that the test is scored at, as multiples of the training length"),
          integer_setting("validation_bytes", 0,
                          "the first of the split, bytes or other tokens; 0 = all", 0),
          integer_setting("test_bytes", 0, "the first of the split, bytes or other tokens; 0 = all",
                          0),
          text_setting("positions_beyond", "refused",
                       "of learned positions in segments longer than training: refused, or "
                       "untrained, as they were drawn",
                       {"refused", "untrained"})});
  return settings;
}

std::unique_ptr<training::DataSet> LmTask::outline(const Options& settings) const {
  tasks::data::lm::expect_vocabulary(settings);
  const auto expected = tasks::data::find_data_task("lm")->expected(settings);
  // Where steps are counted, a training costs the same on a text of any size.
  if (!expected && settings.integer("steps") == 0) return nullptr;
  Cutting cutting;
  cutting.length = settings.integer("length");
  cutting.segments = segments_from(settings.text("segments"));
  const std::int64_t least = cutting.length * settings.integer("batch") + 1;
  const auto sizes = [&](training::Split split, std::int64_t tokens) {
    return cut_into(cutting, split, expected ? tokens : least);
  };
  const tasks::data::SplitCounts tokens = expected ? expected->rows : tasks::data::SplitCounts{};
  training::DataOutline::Sizes outlined;
  outlined.segments.train = sizes(training::Split::train, tokens.train);
  outlined.segments.validation = sizes(training::Split::validation, tokens.validation);
  outlined.segments.test = sizes(training::Split::test, tokens.test);
  if (outlined.segments.train.front().examples <= 0) return nullptr;
  return std::make_unique<training::DataOutline>(std::move(outlined));
}

std::unique_ptr<training::DataSet> LmTask::data_set(const Options& settings,
                                                    std::uint64_t run_seed) const {
  tasks::data::lm::expect_vocabulary(settings);
  Cutting cutting;
  cutting.length = settings.integer("length");
  cutting.segments = segments_from(settings.text("segments"));
  cutting.validation_bytes = settings.integer("validation_bytes");
  cutting.test_bytes = settings.integer("test_bytes");
  cutting.seed = training::data_seed(settings, run_seed);
  return std::make_unique<Sequences>(
      the_text(wanted_of(*tasks::data::find_data_task("lm"), settings)), cutting);
}

void LmTask::fit(const Options& settings, training::ModelOptions& model) const {
  const bool longer = segments_from(settings.text("segments")).size() > 1;
  if (model.positions == training::Positions::learned && longer &&
      settings.text("positions_beyond") == "refused") {
    throw UsageError("learned positions end with the training length, " +
                     std::to_string(settings.integer("length")) +
                     ", and segments go beyond it: set segments to \"1\", or positions_beyond to "
                     "untrained");
  }
  const std::int64_t length = settings.integer("length");
  const std::int64_t shown = settings.integer("latent_probabilities");
  if (shown > length) {
    throw UsageError("latent_probabilities is " + std::to_string(shown) +
                     ", and a test sequence has " + std::to_string(length) +
                     " tokens: set it to at most that, or a greater length");
  }
}

void LmTask::add_facts(const ResolvedCell&, const TaskForecast&, const training::DataSet& data,
                       const training::StateBytes&, result::Training& record) const {
  const auto& sequences = dynamic_cast<const Sequences&>(data);
  record.data = sequences.facts();
  if (sequences.text().encoding() != tasks::data::lm::Encoding::bytes) return;
  for (const tasks::data::lm::Level& level :
       tasks::data::lm::counted_levels(sequences.text(), sequences.cutting().test_bytes)) {
    record.levels.push_back({level.context, level.bits_per_byte});
  }
}

void LmTask::add_findings(const ResolvedCell& cell, const training::DataSet& data,
                          training::Model& model, result::Training& record) const {
  const bool of_bytes = cell.settings.text("tokens") == "bytes";
  record.latent_probabilities = latent_probabilities(
      model, data, cell.settings.integer("latent_probabilities"), of_bytes ? byte_text : id_text);
}

}  // namespace
}  // namespace lm

std::unique_ptr<Task> make_lm() { return std::make_unique<lm::LmTask>(); }

}  // namespace attnbench::tasks
