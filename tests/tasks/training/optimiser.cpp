#include "tasks/training/optimiser.hpp"

#include <cmath>

#include "tests/tasks/training/small_training.hpp"

using namespace attnbench;
using namespace attnbench::test;

TEST_CASE("a step is AdamW's of the mean cross-entropy", "[trainer]") {
  // One step by hand: from zero means, Adam moves each weight by the sign of its gradient.
  const RecallData data = small_data();
  const auto model = small_model("softmax", comparison(), Dtype::float64);
  const auto before = small_model("softmax", comparison(), Dtype::float64);
  TrainerOptions options;
  options.batch = 1000;
  options.epochs = 1;
  options.schedule = RateSchedule::constant;
  options.shuffled = false;
  options.optimiser.weight_decay = 0.5;
  options.optimiser.learning_rate = 1e-3;
  options.after_step = [](std::int64_t) { throw Killed{}; };
  Trainer trainer(*model, data, options, nullptr);
  CHECK_THROWS_AS(trainer.train(), Killed);
  std::vector<std::int64_t> all(24);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  const Batch batch = data.batch(Split::train, 0, all);
  const at::Tensor logits = before->forward(batch.tokens).flatten(0, 1);
  const at::Tensor chosen = at::log_softmax(logits, 1).index_select(0, batch.positions);
  (-chosen.gather(1, batch.labels.unsqueeze(1)).mean()).backward();
  const auto after = model->named_parameters();
  for (const auto& item : before->named_parameters()) {
    INFO(item.key());
    const at::Tensor gradient = item.value().grad();
    REQUIRE(gradient.defined());
    const at::Tensor old = item.value().detach();
    const bool product = old.dim() >= 2 && item.key() != "embedding";
    const at::Tensor want =
        old * (product ? 1 - 1e-3 * 0.5 : 1.0) - 1e-3 * gradient / (gradient.abs() + 1e-8);
    CHECK((after[item.key()].detach() - want).abs().max().item<double>() < 1e-12);
  }
}

TEST_CASE("gradients are clipped by their common norm", "[trainer]") {
  const auto model = small_model("softmax", comparison(), Dtype::float64);
  for (const bool clipped : {false, true}) {
    OptimiserOptions options;
    options.clip = clipped ? 0.5 : 0;
    options.beta_1 = 0;  // so that the mean is the gradient itself
    Optimiser optimiser(*model, options);
    model->forward(at::arange(32, at::kLong).view({1, 32})).pow(2).sum().backward();
    double norm = 0;
    std::map<std::string, at::Tensor> gradients;
    for (const auto& item : model->named_parameters()) {
      gradients[item.key()] = item.value().grad().clone();
      norm += gradients[item.key()].pow(2).sum().item<double>();
    }
    norm = std::sqrt(norm);
    REQUIRE(norm > 0.5);
    optimiser.step(0);
    for (const auto& [name, gradient] : gradients) {
      const at::Tensor want = clipped ? gradient * (0.5 / norm) : gradient;
      const at::Tensor got = optimiser.state().at(name + ".mean");
      CHECK((got - want).abs().max().item<double>() < 1e-6 * norm);
    }
  }
}

TEST_CASE("learning rates follow their schedules", "[training]") {
  LearningRateSchedule schedule{RateSchedule::cosine, 4, 10, 2};
  CHECK(schedule.steps() == 20);
  CHECK(schedule.factor(0) == Approx(0.25));
  CHECK(schedule.factor(3) == Approx(1));
  CHECK(schedule.factor(4) == Approx(1));
  CHECK(schedule.factor(12) == Approx(0.5));
  CHECK(schedule.factor(19) == Approx((1 + std::cos(M_PI * 15 / 16)) / 2));
  schedule.schedule = RateSchedule::linear;
  CHECK(schedule.factor(12) == Approx(0.5));
  schedule.schedule = RateSchedule::constant;
  CHECK(schedule.factor(19) == 1);
  schedule.schedule = RateSchedule::inverse_square_root;
  CHECK(schedule.factor(4) == Approx(std::sqrt(4.0 / 5)));
  CHECK(schedule.factor(15) == Approx(0.5));
  schedule.warm_up_steps = 0;
  CHECK(schedule.factor(0) == Approx(1));
  schedule.schedule = RateSchedule::cosine_by_epoch;
  CHECK(schedule.factor(9) == Approx(1));
  CHECK(schedule.factor(10) == Approx(0.5));
  CHECK(schedule.factor(19) == Approx(0.5));
  schedule.schedule = RateSchedule::drop;
  schedule.warm_up_steps = 4;
  schedule.drop_after = 12;
  CHECK(schedule.factor(1) == Approx(0.5));
  CHECK(schedule.factor(11) == 1);
  CHECK(schedule.factor(12) == Approx(0.1));
  for (const std::string& word : schedule_names()) CHECK(to_string(schedule_from(word)) == word);
  CHECK_THROWS_AS(schedule_from("stairs"), UsageError);
}
