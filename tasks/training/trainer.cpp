#include "tasks/training/trainer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "attention/torch/draw.hpp"
#include "tasks/training/draws.hpp"

namespace attnbench::tasks::learning {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Trainer::Trainer(Model& model, const DataSet& data, TrainerOptions options,
                 Checkpoints* checkpoints, Crew* crew)
    : model_(model),
      data_(data),
      options_(std::move(options)),
      checkpoints_(crew != nullptr && crew->rank() > 0 ? nullptr : checkpoints),
      crew_(crew),
      course_{options_.schedule, options_.warm_up_steps, order().steps_per_epoch(), options_.epochs,
              options_.drop_after},
      optimiser_(model, options_.optimiser) {}

Order Trainer::order() const {
  Order order;
  for (const SegmentSize& segment : data_.segments(Split::train)) {
    order.sizes.push_back(segment.examples);
  }
  order.batch = options_.batch;
  order.shuffled = options_.shuffled;
  order.fresh = options_.fresh;
  order.seed = options_.data_seed;
  return order;
}

void Trainer::train(const Tell& tell) {
  resume();
  if (crew_ != nullptr) share_first(*crew_, at_, model_, optimiser_);
  Feeder feeder(data_, order(), at_.step, at_.stopped.empty() ? course_.steps() : at_.step,
                crew_ == nullptr ? 0 : crew_->rank(), crew_ == nullptr ? 1 : crew_->size());
  saved_at_ = now();
  while (at_.stopped.empty()) {
    take_step(feeder);
    if (at_.step % course_.steps_per_epoch == 0) end_epoch();
    save_if_due();
    if (options_.after_step) options_.after_step(at_.step);
    if (tell) {
      tell(static_cast<double>(at_.step), static_cast<double>(course_.steps()), "training steps");
    }
  }
  if (saved_step_ != at_.step) save();
}

void Trainer::take_step(Feeder& feeder) {
  const double begin = now();
  const at::AutoGradMode with_grad(true);
  const Batch batch = moved(feeder.next(), model_.parameters().front().device());
  const Learned learned = crew_ == nullptr ? learn(batch) : learn_together(batch);
  optimiser_.step(options_.optimiser.learning_rate * course_.factor(at_.step));
  at_.epoch_loss += learned.loss * static_cast<double>(learned.questions);
  at_.epoch_questions += learned.questions;
  at_.epoch_right += learned.right;
  ++at_.step;
  at_.step_seconds += now() - begin;
}

at::Tensor Trainer::logits_of(const Batch& batch) {
  Dropout dropout{options_.embedding_dropout, {}, batch.first_example, batch.examples_in_all};
  if (dropout.share > 0) {
    const std::uint64_t seed =
        key_of({options_.data_seed, 0x64726f70 /* "drop" */, static_cast<std::uint64_t>(at_.step)});
    dropout.generator = seeded_generator(seed, batch.tokens.device());
  }
  return labelled_logits(model_, batch, dropout);
}

Trainer::Learned Trainer::learn(const Batch& batch) {
  const at::Tensor logits = logits_of(batch);
  const at::Tensor loss = at::cross_entropy_loss(logits, batch.labels);
  const double value = loss.item<double>();
  if (!std::isfinite(value)) diverged();
  loss.backward();
  return {value, batch.labels.size(0),
          logits.detach().argmax(-1).eq(batch.labels).sum().item<std::int64_t>()};
}

/// Each process adds up over its labels; the mean is that over the labels of all, which differ in
/// number from one to another.
Trainer::Learned Trainer::learn_together(const Batch& batch) {
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
  crew_->add_up(counts);
  const auto* all = counts.data_ptr<double>();
  const double value = all[0] / all[1];
  if (!std::isfinite(value)) diverged();
  at::Tensor gradients = optimiser_.gradients().cpu();
  crew_->add_up(gradients);
  optimiser_.set_gradients(gradients.div_(all[1]).to(model_.parameters().front().device()));
  return {value, std::llround(all[1]), std::llround(all[2])};
}

void Trainer::end_epoch() {
  const std::int64_t epoch = at_.step / course_.steps_per_epoch;
  const Scores validation = validate();
  const auto questions = static_cast<double>(std::max<std::int64_t>(1, at_.epoch_questions));
  if (!std::isfinite(validation.loss())) diverged();
  at_.curve.push_back(
      {{"epoch", epoch},
       {"step", at_.step},
       {"learning_rate", options_.optimiser.learning_rate * course_.factor(at_.step - 1)},
       {"loss", at_.epoch_loss / questions},
       {"train_accuracy", static_cast<double>(at_.epoch_right) / questions},
       {"validation_loss", validation.loss()},
       {"validation_accuracy", validation.accuracy()}});
  at_.epoch_loss = 0;
  at_.epoch_questions = at_.epoch_right = 0;
  const bool enough = options_.stop_above > 0 && validation.accuracy() > options_.stop_above;
  if (enough) {
    at_.stopped = "accuracy";
  } else if (at_.step >= course_.steps()) {
    at_.stopped = "epochs";
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
  std::string message = "the loss is not a finite number at step " + std::to_string(at_.step + 1) +
                        " of " + std::to_string(course_.steps()) + ", learning rate " +
                        Json(options_.optimiser.learning_rate * course_.factor(at_.step)).dump() +
                        "; ";
  if (saved_step_ < 0) throw TrainingDiverged(message + "no checkpoint had been written");
  throw TrainingDiverged(message + "the last good checkpoint, of step " +
                         std::to_string(saved_step_) + ", is " + checkpoints_->newest().string());
}

// ---- checkpoints

void Trainer::resume() {
  if (checkpoints_ == nullptr) return;
  const auto checkpoint =
      checkpoints_->load([this](const Checkpoint& one) { at_ = take_up(one, model_, optimiser_); });
  for (const std::string& note : checkpoints_->refused()) {
    std::fprintf(stderr, "%s\n", note.c_str());
  }
  if (!checkpoint) {
    optimiser_.set_state({}, 0);  // of one that was refused half-way
    return;
  }
  resumed_from_ = saved_step_ = at_.step;
}

void Trainer::save_if_due() {
  if (now() - saved_at_ >= options_.checkpoint_seconds) save();
}

void Trainer::save() {
  saved_at_ = now();
  if (checkpoints_ == nullptr) return;
  const std::optional<Checkpoint> checkpoint = checkpoint_of(at_, model_, optimiser_);
  if (!checkpoint) return;
  try {
    checkpoints_->save(*checkpoint);
    saved_step_ = at_.step;
  } catch (const CheckpointError& error) {
    notes_.push_back("at step " + std::to_string(at_.step) + " " + error.what());
    std::fprintf(stderr, "%s\n", notes_.back().c_str());
  }
}

std::vector<std::string> Trainer::notes() const {
  std::vector<std::string> all;
  if (checkpoints_ != nullptr) all = checkpoints_->refused();
  all.insert(all.end(), notes_.begin(), notes_.end());
  return all;
}

}  // namespace attnbench::tasks::learning
