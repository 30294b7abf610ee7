#include "tasks/mqar/work.hpp"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tasks/check.hpp"
#include "tasks/forecast.hpp"
#include "tasks/learning/draws.hpp"
#include "tasks/learning/outcome.hpp"
#include "tasks/learning/settings.hpp"
#include "tasks/mqar/settings.hpp"

namespace attnbench::tasks::mqar {
namespace {

using learning::Checkpoints;
using learning::Model;
using learning::Trainer;

class RecallWork final : public Work {
 public:
  RecallWork(const Registry& registry, const Cell& cell, const Forecast& forecast)
      : registry_(registry),
        cell_(cell),
        forecast_(forecast),
        implementation_(chosen(registry, cell, forecast)) {}

  void prepare(Context& context) override {
    data_ = std::make_unique<RecallData>(plan_from(cell_.settings, context.seed()));
    model_ = model_of(context, forecast_);
  }

  /// Each mix as the untrained model feeds it, forward and backward, at the longest length; of few
  /// sequences, since the definition's gradients take long.
  Json check(Context& context) override {
    Forecast few = forecast_;
    few.problem.batch = std::min<std::int64_t>(few.problem.batch, 2);
    const std::shared_ptr<Model> model = model_of(context, few);
    const Problem& problem = few.problem;
    const std::int64_t together = tokens_per_position(data_->plan().recall);
    std::vector<std::int64_t> shape{problem.batch, problem.length};
    if (together > 1) shape.push_back(together);
    const at::Tensor ids = at::randint(data_->plan().recall.vocabulary, shape,
                                       at::detail::createCPUGenerator(context.seed()), at::kLong)
                               .to(at::Device(problem.device));
    Json section;
    for (std::size_t i = 0; i < model->mixes(); ++i) {
      const Inputs inputs = [&] {
        const at::NoGradGuard no_grad;
        return model->mix_inputs(i, ids);
      }();
      section = check_mix(
          {registry_.entry(cell_.mechanism), implementation_, registry_.reference(cell_.mechanism),
           model->mechanism(i), inputs, context.seed()},
          /*with_gradient=*/true);
      if (section["verdict"] != "ok") break;
    }
    section["mixes"] = model->mixes();
    return section;
  }

  Json run(Context& context) override {
    Checkpoints checkpoints(context.checkpoint_folder(), identity(context));
    const bool kept = !context.checkpoint_folder().empty();
    const learning::TrainerOptions options =
        learning::trainer_options_from(cell_.settings, context.seed());
    Trainer trainer(*model_, *data_, options, kept ? &checkpoints : nullptr);
    trainer.train([&](double done, double total, std::string_view what) {
      context.progress(done, total, what);
    });
    Json sections =
        learning::outcome(*model_, *data_, trainer, options.batch, data_->plan().longest());
    sections["chosen"] = {{"implementation", forecast_.implementation},
                          {"reason", forecast_.choice_reason}};
    add_lines(sections["training"]);
    return sections;
  }

 private:
  std::shared_ptr<Model> model_of(const Context& context, const Forecast& forecast) const {
    const std::uint64_t seed = learning::key_of(
        {context.seed(), static_cast<std::uint64_t>(cell_.settings.integer("model_seed"))});
    return std::make_shared<Model>([&] { return make_mechanism(registry_, cell_, forecast); },
                                   implementation_, model_options(cell_.settings), seed);
  }

  /// What must be equal for a checkpoint to give the bits of an unbroken training.
  Json identity(const Context& context) const {
    Json settings = Json::object();
    for (const auto& [name, value] : cell_.settings.values()) {
      if (name != "checkpoint_seconds") settings[name] = to_string(value);
    }
    Json options = Json::object();
    for (const auto& [name, value] : forecast_.options.values()) options[name] = to_string(value);
    Json weights = Json::object();
    for (const auto& item : model_->named_parameters()) {
      weights[item.key()] = item.value().sizes().vec();
    }
    return {{"task", "mqar"},
            {"mechanism", cell_.mechanism},
            {"implementation", forecast_.implementation},
            {"settings", std::move(settings)},
            {"options", std::move(options)},
            {"weights", std::move(weights)},
            {"run_seed", context.seed()},
            {"threads", at::get_num_threads()},
            {"device", cell_.device}};
  }

  /// What those reach who know nothing, and who know which values the sequence holds, weighted as
  /// accuracy is, by examples; and what one look-up into a window reaches.
  void add_lines(Json& training) const {
    double examples = 0;
    double guesses = 0;
    for (const Segment& segment : data_->plan().test) {
      examples += static_cast<double>(segment.examples);
      guesses += static_cast<double>(segment.examples) / static_cast<double>(segment.pairs);
    }
    training["chance"] = 1.0 / static_cast<double>(data_->plan().recall.vocabulary);
    training["guess"] = guesses / examples;
    const learning::ModelOptions model = model_options(cell_.settings);
    if (cell_.mechanism != "window" || learning::mechanism_blocks(model) != 1) return;
    // A convolution below puts key and value at the positions after the value's, too, up to the
    // last that still holds the key.
    const bool shifted = model.layout == learning::Layout::convolution_first;
    const std::int64_t farthest = forecast_.options.window("window").left +
                                  (shifted ? std::max<std::int64_t>(0, model.taps - 2) : 0);
    training["reach"] = share_within(farthest);
  }

  /// Of the test's questions, weighted by examples, those whose answer is at most so far back.
  double share_within(std::int64_t farthest) const {
    double sum = 0;
    double examples = 0;
    const std::vector<Segment>& test = data_->plan().test;
    for (std::size_t i = 0; i < test.size(); ++i) {
      std::int64_t near = 0;
      for (std::int64_t j = 0; j < test[i].examples; ++j) {
        const Example example =
            make_example(data_->plan().recall, test[i], data_->plan().seed, learning::Split::test,
                         i, static_cast<std::uint64_t>(j));
        for (const Question& question : example.questions) near += question.distance <= farthest;
      }
      sum += static_cast<double>(near) / static_cast<double>(test[i].pairs);
      examples += static_cast<double>(test[i].examples);
    }
    return sum / examples;
  }

  const Registry& registry_;
  const Cell cell_;
  const Forecast forecast_;
  const Implementation implementation_;
  std::unique_ptr<RecallData> data_;
  std::shared_ptr<Model> model_;
};

}  // namespace

learning::ModelOptions model_options(const Options& settings) {
  learning::ModelOptions options = learning::model_options_from(settings);
  Recall recall;
  recall.variant = variant_from(settings.text("variant"));
  options.tokens_per_position = tokens_per_position(recall);
  return options;
}

std::unique_ptr<Work> make_work(const Registry& registry, const Cell& cell,
                                const Forecast& forecast) {
  return std::make_unique<RecallWork>(registry, cell, forecast);
}

}  // namespace attnbench::tasks::mqar
