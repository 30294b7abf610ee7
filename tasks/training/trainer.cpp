#include "tasks/training/trainer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "attention/torch/draw.hpp"
#include "tasks/settings.hpp"
#include "tasks/training/random.hpp"

namespace attnbench::tasks::training {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

std::vector<Option> trainer_settings() {
  return {
      number_setting("learning_rate", 1e-3, "the greatest value of the schedule"),
      text_setting("schedule", "cosine", "of the learning rate after the warm-up",
                   schedule_names()),
      integer_setting("drop_after", 3000,
                      "steps after which the schedule drop continues at a tenth", 0),
      integer_setting("warm_up_steps", 0, "steps of linear growth of the learning rate", 0),
      integer_setting("epochs", 10, "passes over the training examples"),
      number_setting("stop_above", 0, "validation accuracy above which training ends; 0 = never", 0,
                     1),
      number_setting("weight_decay", 0.1, "AdamW's"),
      boolean_setting("decay_all", false,
                      "weight decay on biases, norms and embeddings too, as in Zoology"),
      number_setting("beta_1", 0.9, "AdamW's", 0, 0.999999),
      number_setting("beta_2", 0.999, "AdamW's", 0, 0.9999999),
      number_setting("adam_epsilon", 1e-8, "AdamW's"),
      number_setting("clip", 1, "greatest norm over all gradients; 0 = no clipping"),
      text_setting(
          "order", "shuffled",
          "shuffled: examples and batches, anew in each epoch; numbered: the same order in every "
          "epoch, "
          "segment after segment, as in Zoology since 2024; fresh: new examples in each epoch",
          {"shuffled", "numbered", "fresh"}),
      integer_setting("data_seed", 0, "seed of the examples, their order and dropout", 0),
      number_setting("checkpoint_seconds", 30, "between two checkpoints; 0 = after every step")};
}

TrainerOptions trainer_options_from(const Options& settings, std::uint64_t run_seed) {
  TrainerOptions options;
  options.optimiser.learning_rate = settings.number("learning_rate");
  options.optimiser.weight_decay = settings.number("weight_decay");
  options.optimiser.decay_all = settings.boolean("decay_all");
  options.optimiser.beta_1 = settings.number("beta_1");
  options.optimiser.beta_2 = settings.number("beta_2");
  options.optimiser.epsilon = settings.number("adam_epsilon");
  options.optimiser.clip = settings.number("clip");
  options.schedule = schedule_from(settings.text("schedule"));
  options.warm_up_steps = settings.integer("warm_up_steps");
  options.drop_after = settings.integer("drop_after");
  options.batch = settings.integer("batch");
  options.epochs = settings.integer("epochs");
  options.shuffled = settings.text("order") != "numbered";
  options.fresh = settings.text("order") == "fresh";
  options.stop_above = settings.number("stop_above");
  options.embedding_dropout = settings.number("embedding_dropout");
  options.data_seed = key_of({run_seed, static_cast<std::uint64_t>(settings.integer("data_seed"))});
  options.checkpoint_seconds = settings.number("checkpoint_seconds");
  return options;
}

Trainer::Trainer(Model& model, const DataSet& data, TrainerOptions options,
                 Checkpoints* checkpoints, ProcessGroup* group)
    : model_(model),
      data_(data),
      options_(std::move(options)),
      checkpoints_(group != nullptr && group->rank() > 0 ? nullptr : checkpoints),
      group_(group),
      schedule_{options_.schedule, options_.warm_up_steps, order().steps_per_epoch(),
                options_.epochs, options_.drop_after},
      optimiser_(model, options_.optimiser) {}

BatchOrder Trainer::order() const {
  BatchOrder order;
  for (const SegmentSize& segment : data_.segments(Split::train)) {
    order.sizes.push_back(segment.examples);
  }
  order.batch = options_.batch;
  order.shuffled = options_.shuffled;
  order.fresh = options_.fresh;
  order.seed = options_.data_seed;
  return order;
}

void Trainer::train(const Progress& progress) {
  resume();
  if (group_ != nullptr) broadcast_state(*group_, state_, model_, optimiser_);
  Prefetcher prefetcher(
      data_, order(), state_.step, state_.stopped.empty() ? schedule_.steps() : state_.step,
      group_ == nullptr ? 0 : group_->rank(), group_ == nullptr ? 1 : group_->size());
  saved_at_ = now();
  while (state_.stopped.empty()) {
    take_step(prefetcher);
    if (state_.step % schedule_.steps_per_epoch == 0) end_epoch();
    save_if_due();
    if (options_.after_step) options_.after_step(state_.step);
    if (progress) {
      progress(static_cast<double>(state_.step), static_cast<double>(schedule_.steps()),
               "training steps");
    }
  }
  if (saved_step_ != state_.step) save();
}

void Trainer::take_step(Prefetcher& prefetcher) {
  const double begin = now();
  const at::AutoGradMode with_grad(true);
  const Batch batch = to_device(prefetcher.next(), model_.parameters().front().device());
  const StepResult result = group_ == nullptr ? backward(batch) : backward_in_group(batch);
  optimiser_.step(options_.optimiser.learning_rate * schedule_.factor(state_.step));
  state_.epoch_loss += result.loss * static_cast<double>(result.questions);
  state_.epoch_questions += result.questions;
  state_.epoch_right += result.right;
  ++state_.step;
  state_.step_seconds += now() - begin;
}

at::Tensor Trainer::logits_of(const Batch& batch) {
  Dropout dropout{options_.embedding_dropout, {}, batch.first_example, batch.examples_in_all};
  if (dropout.share > 0) {
    const std::uint64_t seed = key_of(
        {options_.data_seed, 0x64726f70 /* "drop" */, static_cast<std::uint64_t>(state_.step)});
    dropout.generator = seeded_generator(seed, batch.tokens.device());
  }
  return labelled_logits(model_, batch, dropout);
}

Trainer::StepResult Trainer::backward(const Batch& batch) {
  const at::Tensor logits = logits_of(batch);
  const at::Tensor loss = at::cross_entropy_loss(logits, batch.labels);
  const double value = loss.item<double>();
  if (!std::isfinite(value)) diverged();
  loss.backward();
  return {value, batch.labels.size(0),
          logits.detach().argmax(-1).eq(batch.labels).sum().item<std::int64_t>()};
}

/// Each process sums over its labels; the mean is over the labels of all processes, whose numbers
/// differ.
Trainer::StepResult Trainer::backward_in_group(const Batch& batch) {
  double sum = 0;
  double right = 0;
  double questions = 0;
  if (batch.tokens.defined()) {
    const at::Tensor logits = logits_of(batch);
    const at::Tensor loss = at::cross_entropy_loss(logits, batch.labels, {}, at::Reduction::Sum);
    sum = loss.item<double>();
    loss.backward();
    questions = static_cast<double>(batch.labels.size(0));
    right = logits.detach().argmax(-1).eq(batch.labels).sum().item<double>();
  }
  at::Tensor counts = at::tensor({sum, questions, right}, at::kDouble);
  group_->all_reduce(counts);
  const auto* all = counts.data_ptr<double>();
  const double value = all[0] / all[1];
  if (!std::isfinite(value)) diverged();
  at::Tensor gradients = optimiser_.gradients().cpu();
  group_->all_reduce(gradients);
  optimiser_.set_gradients(gradients.div_(all[1]).to(model_.parameters().front().device()));
  return {value, std::llround(all[1]), std::llround(all[2])};
}

void Trainer::end_epoch() {
  const std::int64_t epoch = state_.step / schedule_.steps_per_epoch;
  const Scores validation = validate();
  const auto questions = static_cast<double>(std::max<std::int64_t>(1, state_.epoch_questions));
  if (!std::isfinite(validation.loss())) diverged();
  state_.curve.push_back(
      {{"epoch", epoch},
       {"step", state_.step},
       {"learning_rate", options_.optimiser.learning_rate * schedule_.factor(state_.step - 1)},
       {"loss", state_.epoch_loss / questions},
       {"train_accuracy", static_cast<double>(state_.epoch_right) / questions},
       {"validation_loss", validation.loss()},
       {"validation_accuracy", validation.accuracy()}});
  state_.epoch_loss = 0;
  state_.epoch_questions = state_.epoch_right = 0;
  const bool enough = options_.stop_above > 0 && validation.accuracy() > options_.stop_above;
  if (enough) {
    state_.stopped = "accuracy";
  } else if (state_.step >= schedule_.steps()) {
    state_.stopped = "epochs";
  }
}

Scores Trainer::validate() const {
  Scores scores;
  const std::vector<SegmentSize> segments = data_.segments(Split::validation);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    scores.add(evaluate(model_, data_, Split::validation, i, segments[i].examples, options_.batch));
  }
  return scores;
}

void Trainer::diverged() const {
  std::string message =
      "the loss is not a finite number at step " + std::to_string(state_.step + 1) + " of " +
      std::to_string(schedule_.steps()) + ", learning rate " +
      Json(options_.optimiser.learning_rate * schedule_.factor(state_.step)).dump() + "; ";
  if (saved_step_ < 0) throw TrainingDiverged(message + "no checkpoint had been written");
  throw TrainingDiverged(message + "the last good checkpoint, of step " +
                         std::to_string(saved_step_) + ", is " + checkpoints_->newest().string());
}

// ---- checkpoints

void Trainer::resume() {
  if (checkpoints_ == nullptr) return;
  const auto checkpoint = checkpoints_->load(
      [this](const Checkpoint& one) { state_ = restore(one, model_, optimiser_); });
  for (const std::string& note : checkpoints_->refused()) {
    std::fprintf(stderr, "%s\n", note.c_str());
  }
  if (!checkpoint) {
    optimiser_.set_state({}, 0);  // partly set by a checkpoint that was refused
    return;
  }
  resumed_from_ = saved_step_ = state_.step;
}

void Trainer::save_if_due() {
  if (now() - saved_at_ >= options_.checkpoint_seconds) save();
}

void Trainer::save() {
  saved_at_ = now();
  if (checkpoints_ == nullptr) return;
  const std::optional<Checkpoint> checkpoint = checkpoint_of(state_, model_, optimiser_);
  if (!checkpoint) return;
  try {
    checkpoints_->save(*checkpoint);
    saved_step_ = state_.step;
  } catch (const CheckpointError& error) {
    notes_.push_back("at step " + std::to_string(state_.step) + " " + error.what());
    std::fprintf(stderr, "%s\n", notes_.back().c_str());
  }
}

std::vector<std::string> Trainer::notes() const {
  std::vector<std::string> all;
  if (checkpoints_ != nullptr) all = checkpoints_->refused();
  all.insert(all.end(), notes_.begin(), notes_.end());
  return all;
}

}  // namespace attnbench::tasks::training
