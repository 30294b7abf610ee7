// The work of a TrainingTask on one cell.
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>

#include "tasks/check.hpp"
#include "tasks/forecast.hpp"
#include "tasks/training/record.hpp"
#include "tasks/training/task.hpp"
#include "tasks/training/trained.hpp"

namespace attnbench::tasks::training {
namespace {

/// Each process checks its mixes first, which may take one longer than another.
constexpr double join_seconds = 300;

class TrainingWork final : public Work {
 public:
  TrainingWork(const TrainingTask& task, const Registry& registry, const ResolvedCell& cell,
               const TaskForecast& forecast)
      : task_(task), registry_(registry), cell_(cell), forecast_(forecast) {}

  void prepare(Context& context) override {
    data_ = task_.data_set(cell_.settings, context.seed());
    options_ = task_.model_options(cell_.settings, *data_);
    model_ = model_of(context, forecast_);
  }

  /// Each mix on its inputs in the untrained model, forward and backward, at the longest length,
  /// or, of language models, at that of training; on two sequences at most, since gradients of the
  /// reference are slow.
  Json check(Context& context) override {
    TaskForecast few = forecast_;
    few.problem.batch = std::min<std::int64_t>(few.problem.batch, 2);
    few.problem.length = few.problem.key_length = mix_length(options_, data_->checked_length());
    const std::shared_ptr<Model> model = model_of(context, few);
    const auto [input, mask] = random_sequences(few.problem, context.seed());
    CheckSection section;
    for (std::size_t i = 0; i < model->mixes(); ++i) {
      const Inputs inputs = [&, &input = input, &mask = mask] {
        const at::NoGradGuard no_grad;
        return model->mix_inputs(i, input, mask);
      }();
      const MixCase mix = case_of(registry_, mechanism_of(cell_, forecast_, i), model->mechanism(i),
                                  inputs, context.seed());
      CheckSection one = checked(mix);
      section = i == 0 ? std::move(one) : worse_of(std::move(section), std::move(one));
      section.dtype = to_string(mix.problem().dtype);
      if (!section.ok()) break;
    }
    section.mixes = model->mixes();
    return section;
  }

  Json run(Context& context) override {
    Checkpoints checkpoints(context.checkpoint_folder(), identity(context));
    const bool kept = !context.checkpoint_folder().empty();
    const TrainerOptions options = trainer_options_from(cell_.settings, context.seed());
    const ProcessRank own = context.process_rank();
    const std::unique_ptr<ProcessGroup> group =
        own.size > 1 ? join_process_group(own, cell_.id, join_seconds) : nullptr;
    Trainer trainer(*model_, *data_, options, kept ? &checkpoints : nullptr, group.get());
    trainer.train([&](double done, double total, std::string_view what) {
      context.progress(done, total, what);
    });
    RunSections sections =
        training_record(*model_, *data_, trainer, options.batch, longest(*data_));
    sections.chosen = chosen_section(forecast_);
    task_.add_facts(cell_, forecast_, *data_, model_->state_bytes(longest(*data_)),
                    *sections.training);
    task_.add_findings(cell_, *data_, *model_, *sections.training);
    if (group) sections.training->processes = own.size;
    return sections;
  }

 private:
  /// Random tokens, or numbers, of the checked length, and their mask: where examples are
  /// classified, every second sequence has padding.
  std::pair<at::Tensor, at::Tensor> random_sequences(const Problem& problem,
                                                     std::uint64_t seed) const {
    const at::Device device(problem.device);
    const std::int64_t length = data_->checked_length();
    const at::Generator random = at::detail::createCPUGenerator(seed);
    std::vector<std::int64_t> shape{problem.batch, length};
    Batch batch;
    if (options_.input == ModelInput::values) {
      batch.values = at::rand(shape, random, at::kFloat);
    } else {
      if (options_.tokens_per_position > 1) shape.push_back(options_.tokens_per_position);
      batch.tokens = at::randint(options_.vocabulary, shape, random, at::kLong);
    }
    if (options_.classifier.classes > 0) {
      batch.lengths = at::full({problem.batch}, length, at::kLong);
      batch.lengths.slice(0, 1, problem.batch, 2).fill_(length - length / 4);
    }
    batch = to_device(batch, device);
    return {batch.input(), key_mask_of(batch)};
  }

  /// A plugin's mechanism may not handle inputs narrower than its parameters: where only those
  /// fail, it is unsupported rather than wrong.
  CheckSection checked(const MixCase& mix) const {
    try {
      return check_mix(mix, /*with_gradient=*/true);
    } catch (const std::exception& error) {
      const Dtype given = mix.problem().dtype;
      const Dtype own = mix.mechanism.problem.dtype;
      if (given == own || !mixes(mix, own)) throw;
      const std::string why = error.what();
      throw UnsupportedError(std::string("it does not mix ") + to_string(given) +
                             " beside parameters in " + to_string(own) +
                             ", which autocast asks for: " + why.substr(0, why.find('\n')));
    }
  }

  /// Whether the mix runs with its inputs in that dtype.
  bool mixes(const MixCase& mix, Dtype dtype) const {
    const at::NoGradGuard no_grad;
    Inputs inputs = mix.inputs;
    for (auto& [role, tensor] : inputs.tensors) tensor = tensor.to(scalar_type(dtype));
    try {
      mix.implementation.mix(mix.mechanism, inputs, nullptr);
    } catch (const std::exception&) {
      return false;
    }
    return true;
  }

  std::shared_ptr<Model> model_of(const Context& context, const TaskForecast& forecast) const {
    return untrained_model(registry_, cell_, forecast, options_, context.seed());
  }

  /// All that must be equal for a resumed training to give the bits of an unbroken one.
  Json identity(const Context& context) const {
    Json identity = model_identity(task_, cell_, forecast_, *model_);
    identity.update({{"data", data_->content_hash()},
                     {"binary", context.binary()},
                     {"run_seed", context.seed()},
                     {"threads", at::get_num_threads()},
                     {"processes", context.process_rank().size},
                     {"device", cell_.device}});
    return identity;
  }

  const TrainingTask& task_;
  const Registry& registry_;
  const ResolvedCell cell_;
  const TaskForecast forecast_;
  ModelOptions options_;
  std::unique_ptr<DataSet> data_;
  std::shared_ptr<Model> model_;
};

}  // namespace

std::unique_ptr<Work> TrainingTask::make(const Registry& registry, const ResolvedCell& cell) const {
  return std::make_unique<TrainingWork>(*this, registry, cell,
                                        supported_forecast(*this, registry, cell));
}

}  // namespace attnbench::tasks::training
