#include "tasks/training/trainer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "attention/torch/draw.hpp"
#include "core/random.hpp"

namespace attnbench::tasks::training {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Trainer::Trainer(Model& model, const DataSet& data, TrainerOptions options,
                 Checkpoints* checkpoints, ProcessGroup* group)
    : model_(model),
      data_(data),
      options_(std::move(options)),
      checkpoints_(group != nullptr && group->rank() > 0 ? nullptr : checkpoints),
      group_(group),
      schedule_{options_.schedule, options_.warm_up_steps, order().steps_per_epoch(),
                options_.epochs,   options_.drop_after,    options_.steps},
      optimiser_(model, options_.optimiser),
      best_(model, checkpoints_, data.judged_by()) {}

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
    if (evaluation_is_due()) evaluate_now();
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
  optimiser_.step(options_.optimiser.learning_rate * schedule_.factor(state_.step),
                  schedule_.beta_1(state_.step, options_.optimiser.beta_1));
  state_.epoch_loss += result.loss * static_cast<double>(result.questions);
  state_.epoch_questions += result.questions;
  state_.epoch_right += result.right;
  ++state_.step;
  state_.step_seconds += now() - begin;
}

at::Tensor Trainer::logits_of(const Batch& batch) {
  Dropout dropout{options_.embedding_dropout, {},
                  batch.first_example,        batch.examples_in_all,
                  options_.dropout,           data_.towers()};
  if (dropout.share > 0 || dropout.block_share > 0) {
    const std::uint64_t seed = key_of(
        {options_.data_seed, 0x64726f70 /* "drop" */, static_cast<std::uint64_t>(state_.step)});
    dropout.generator = seeded_generator(seed, batch.labels.device());
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
  if (batch.labels.defined()) {
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

bool Trainer::evaluation_is_due() const {
  const std::int64_t every =
      options_.evaluate_every > 0 ? options_.evaluate_every : schedule_.steps_per_epoch;
  return state_.step % every == 0 || state_.step == schedule_.steps();
}

void Trainer::evaluate_now() {
  const Scores validation = evaluate_all(model_, data_, Split::validation, options_.batch).sum();
  const auto questions = static_cast<double>(std::max<std::int64_t>(1, state_.epoch_questions));
  if (!std::isfinite(validation.loss())) diverged();
  const std::int64_t each = schedule_.steps_per_epoch;
  result::CurvePoint point;
  point.epoch = static_cast<double>(state_.step) / static_cast<double>(each);
  point.step = state_.step;
  point.learning_rate = options_.optimiser.learning_rate * schedule_.factor(state_.step - 1);
  point.loss = state_.epoch_loss / questions;
  point.train_accuracy = static_cast<double>(state_.epoch_right) / questions;
  point.validation_loss = validation.loss();
  point.validation_accuracy = validation.accuracy();
  if (options_.test_each) {
    const SplitScores test = evaluate_all(model_, data_, Split::test, options_.batch);
    const bool by_loss = data_.judged_by() == Measure::loss;  // at the length of training
    point.test_accuracy = by_loss ? test.scores.front().accuracy() : test.accuracy();
    if (by_loss) point.test_loss = test.scores.front().loss();
  }
  state_.curve.push_back(std::move(point));
  state_.epoch_loss = 0;
  state_.epoch_questions = state_.epoch_right = 0;
  if (options_.keep == Keep::best_validation &&
      best_step(state_, data_.judged_by()) == state_.step) {
    best_.take(state_.step);
  }
  const bool enough = options_.stop_above > 0 && validation.accuracy() > options_.stop_above;
  if (enough) {
    state_.stopped = "accuracy";
  } else if (state_.step >= schedule_.steps()) {
    state_.stopped = options_.steps > 0 ? "steps" : "epochs";
  }
}

std::int64_t Trainer::kept_step() const {
  return options_.keep == Keep::last || best_.step() == 0 ? state_.step : best_.step();
}

void Trainer::keep() {
  if (options_.keep == Keep::last) return;
  best_.give(group_);
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
  if (options_.keep == Keep::best_validation) best_.resume(state_);
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
  all.insert(all.end(), best_.notes().begin(), best_.notes().end());
  all.insert(all.end(), notes_.begin(), notes_.end());
  return all;
}

}  // namespace attnbench::tasks::training
