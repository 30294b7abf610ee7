// The tasks of Long Range Arena (Tay et al. 2021): classification of long sequences. The data are
// prepared by `attnbench data`; a cell whose data are not there is skipped.
#include <algorithm>

#include "tasks/data/data_task.hpp"
#include "tasks/lra/prepared_rows.hpp"
#include "tasks/settings.hpp"
#include "tasks/training/data_outline.hpp"
#include "tasks/training/task.hpp"

namespace attnbench::tasks {
namespace lra {
namespace {

std::int64_t square(std::int64_t side) { return side * side; }

/// What a task adds to the settings of its data.
struct Sequences {
  std::int64_t length;  ///< the default; 0 = that of the images
  bool truncate;        ///< the default where rows differ in length
};

class LraTask final : public training::TrainingTask {
 public:
  LraTask(const DataTask& data, const Sequences& sequences) : data_(data), sequences_(sequences) {}

  std::string name() const override { return data_.name; }
  std::string title() const override { return data_.title + ", after training"; }
  std::vector<std::string> figures() const override {
    return {"accuracy",
            "accuracy_over_state",
            "accuracy_over_time",
            "accuracy_over_memory",
            "accuracy_over_learning_rate",
            "learning_curves",
            "confusion"};
  }
  bool classifies() const override { return true; }
  std::vector<Option> data_settings() const override;
  std::vector<Departure> differs_from() const override;
  std::unique_ptr<training::DataSet> data_set(const Options& settings,
                                              std::uint64_t run_seed) const override;
  std::unique_ptr<training::DataSet> outline(const Options& settings) const override;
  void fit(const Options& settings, training::ModelOptions& model) const override;
  void add_facts(const ResolvedCell& cell, const TaskForecast& forecast,
                 const training::DataSet& data, const training::StateBytes& state,
                 result::Training& record) const override;
  /// Prepared in the program, not written by the worker.
  const TaskData* data() const override { return nullptr; }

 private:
  bool zero_is_padding(const Options& settings) const {
    return !data_.padded && settings.text("image_mask") == "zero_is_pad";
  }

  const DataTask& data_;
  Sequences sequences_;
};

std::vector<Option> LraTask::data_settings() const {
  std::vector<Option> settings;
  for (const Option& setting : data_.settings) {
    if (setting.name != "data_seed") settings.push_back(setting);  // every training has it
  }
  if (data_.setting("train_examples") == nullptr) {
    append(settings, {integer_setting("train_examples", 0, "the first of them; 0 = all", 0),
                      integer_setting("validation_examples", 0, "the first of them; 0 = all", 0),
                      integer_setting("test_examples", 0, "the first of them; 0 = all", 0)});
  }
  if (data_.padded) {
    append(settings,
           {integer_setting("length", sequences_.length, "tokens T that rows are padded to"),
            boolean_setting("truncate", sequences_.truncate,
                            "longer rows lose their end; otherwise they are refused")});
  } else {
    append(settings, {integer_setting("length", 0, "tokens T: 0 = the pixels of an image", 0)});
  }
  append(
      settings,
      {integer_setting("vocabulary", 0, "rows of the embedding; 0 = as many as ids of tokens", 0),
       text_setting("validation", "held_out",
                    "rows that decide: held out, or the test's, as published protocols do",
                    {"held_out", "test"})});
  if (!data_.padded) {
    append(settings,
           {training::input_setting(),
            text_setting("image_mask", "none",
                         "zero_is_pad: black pixels are masked and left out of the pooling, as in "
                         "the original and what follows it",
                         {"none", "zero_is_pad"})});
  }
  return settings;
}

std::vector<Departure> LraTask::differs_from() const {
  if (data_.name == "lra.listops") {
    return {
        {"symbols have fixed ids; the original numbers them in the order of a Python set, which "
         "differs from process to process",
         "not offered: a model that is saved could not be tested later"},
        {"generated rows are not those of the archive, whose generator sets no seed",
         "--from with the archive"}};
  }
  if (data_.padded) {
    return {{"rows that are held out validate; published protocols select by the test rows",
             "\"validation\": \"test\""}};
  }
  return {{"a pixel of level 0 is a token like others; the original takes it for padding",
           "\"image_mask\": \"zero_is_pad\""}};
}

std::unique_ptr<training::DataSet> LraTask::outline(const Options& settings) const {
  const std::optional<ExpectedRows> expected = data_.expected(settings);
  if (!expected) return nullptr;
  const std::int64_t asked = settings.integer("length");
  const std::int64_t length = asked > 0 ? asked : square(settings.integer("side"));
  const auto sizes = [&](std::uint32_t rows, const char* first_of_them) {
    const std::int64_t wanted = settings.integer(first_of_them);
    const std::int64_t examples = wanted > 0 ? std::min<std::int64_t>(wanted, rows) : rows;
    return std::vector<training::SegmentSize>{{data_.name, length, examples, 1}};
  };
  training::DataOutline::Sizes outlined;
  outlined.segments.train = sizes(expected->rows.train, "train_examples");
  outlined.segments.validation = sizes(expected->rows.validation, "validation_examples");
  outlined.segments.test = sizes(expected->rows.test, "test_examples");
  if (outlined.segments.train.front().examples == 0) return nullptr;
  outlined.classes = expected->classes;
  outlined.towers = data_.towers;
  if (zero_is_padding(settings)) outlined.masks_between = black_pixels_masked;
  return std::make_unique<training::DataOutline>(std::move(outlined));
}

std::unique_ptr<training::DataSet> LraTask::data_set(const Options& settings, std::uint64_t) const {
  std::shared_ptr<const Cache> cache = find_cache(data_folder(), wanted_of(data_, settings));
  Reading reading;
  reading.length = settings.integer("length");
  if (reading.length == 0) reading.length = square(cache->description().width);
  reading.truncate = data_.padded && settings.boolean("truncate");
  reading.values = settings.has("input") && settings.text("input") == "values";
  reading.zero_is_padding = zero_is_padding(settings);
  reading.test_as_validation = settings.text("validation") == "test";
  reading.examples.train = settings.integer("train_examples");
  reading.examples.validation = settings.integer("validation_examples");
  reading.examples.test = settings.integer("test_examples");
  return std::make_unique<PreparedRows>(std::move(cache), reading);
}

void LraTask::fit(const Options& settings, training::ModelOptions& model) const {
  const std::int64_t asked = settings.integer("vocabulary");
  if (asked != 0 && asked < data_.vocabulary) {
    throw UsageError(data_.name + ": vocabulary is " + std::to_string(asked) + ", but ids go to " +
                     std::to_string(data_.vocabulary - 1) + ": set at least " +
                     std::to_string(data_.vocabulary) + ", or 0");
  }
  model.vocabulary = asked == 0 ? data_.vocabulary : asked;
}

void LraTask::add_facts(const ResolvedCell&, const TaskForecast&, const training::DataSet& data,
                        const training::StateBytes&, result::Training& record) const {
  const auto& rows = dynamic_cast<const PreparedRows&>(data);
  record.chance = 1.0 / static_cast<double>(rows.classes());
  record.guess = rows.majority();
  record.data = rows.facts();
}

std::unique_ptr<Task> task_of(const char* name, const Sequences& sequences) {
  return std::make_unique<LraTask>(*find_data_task(name), sequences);
}

}  // namespace
}  // namespace lra

void append_lra_tasks(std::vector<std::unique_ptr<Task>>& tasks) {
  tasks.push_back(lra::task_of("lra.listops", {2'000, false}));
  tasks.push_back(lra::task_of("lra.text", {4'000, true}));
  tasks.push_back(lra::task_of("lra.retrieval", {4'000, true}));
  tasks.push_back(lra::task_of("lra.image", {0, false}));
  tasks.push_back(lra::task_of("lra.pathfinder", {0, false}));
}

}  // namespace attnbench::tasks
