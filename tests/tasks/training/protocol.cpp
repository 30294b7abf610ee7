// Training by steps, the schedule one_cycle, clipping by value, and which weights are kept.
#include <cmath>
#include <random>

#include "tasks/training/record.hpp"
#include "tests/tasks/training/small_training.hpp"
#include "tests/tasks/training/synthetic_classes.hpp"

using namespace attnbench;
using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

std::shared_ptr<Model> class_model(const SyntheticClasses& data, const char* mechanism = "latte",
                                   bool values = false) {
  Problem problem = small(Pattern::bidirectional);
  problem.length = problem.key_length = SyntheticClasses::length;
  problem.head_dim = problem.value_dim = 8;
  problem.dtype = Dtype::float32;
  problem.gradient = true;
  ModelOptions options;
  options.vocabulary = SyntheticClasses::vocabulary;
  options.input = values ? ModelInput::values : ModelInput::tokens;
  options.classifier.classes = data.classes();
  options.classifier.towers = data.towers();
  options.classifier.width = 16;
  return model_of(mechanism, problem, options);
}

TrainerOptions by_steps() {
  TrainerOptions options;
  options.batch = 16;
  options.steps = 20;  // 6 steps an epoch
  options.evaluate_every = 4;
  options.dropout = 0.1;
  options.embedding_dropout = 0.1;
  options.schedule = RateSchedule::one_cycle;
  options.warm_up_steps = 5;
  options.optimiser.learning_rate = 1e-2;
  options.optimiser.clip_value = 0.5;
  options.keep = Keep::best_validation;
  options.checkpoint_seconds = 0;
  return options;
}

struct Trained {
  std::string hash;
  Json record;
};

Trained trained_classes(const TrainerOptions& how, const std::vector<int>& kills,
                        std::int64_t towers = 1) {
  const SyntheticClasses data(towers);
  const TemporaryFolder folder;
  for (std::size_t i = 0; i <= kills.size(); ++i) {
    const auto model = class_model(data);
    Checkpoints checkpoints(folder.path(), {{"test", 1}});
    TrainerOptions options = how;
    if (i < kills.size()) {
      options.after_step = [&](std::int64_t step) {
        if (step == kills[i]) throw Killed{};
      };
    }
    Trainer trainer(*model, data, options, &checkpoints);
    try {
      trainer.train();
    } catch (const Killed&) {
      continue;
    }
    const Json record = training_record(*model, data, trainer, 16, 20);
    CHECK(trainer.notes().empty());
    return {hash_of(weights_of(*model)), record};
  }
  return {};
}

}  // namespace

TEST_CASE("training by steps evaluates every so many of them, and after the last", "[protocol]") {
  TrainerOptions options = by_steps();
  options.steps = 18;
  options.test_each = true;
  const Trained ended = trained_classes(options, {});
  const Json& training = ended.record["training"];
  CHECK(training["steps"] == 18);
  CHECK(training["stopped"] == "steps");
  CHECK(training["epochs"].get<double>() == Approx(3));
  std::vector<int> steps;
  for (const Json& point : training["curve"]) steps.push_back(point["step"]);
  CHECK(steps == std::vector<int>{4, 8, 12, 16, 18});
  CHECK(training["curve"][0]["epoch"].get<double>() == Approx(4.0 / 6));
  CHECK(training["curve"][2]["epoch"] == 2);
  CHECK_FALSE(training.contains("look_back"));
  CHECK_FALSE(training["test"][0].contains("wrong_from_context"));
  CHECK(training["attention_dropout"] == "not built");
  REQUIRE(training["confusion"].size() == 4);
  // What was selected by which rule, from the curve.
  double best_validation = -1;
  double best_test = -1;
  Json by_validation, by_test;
  for (const Json& point : training["curve"]) {
    if (point["validation_accuracy"] > best_validation) {
      best_validation = point["validation_accuracy"];
      by_validation = point;
    }
    if (point["test_accuracy"] > best_test) {
      best_test = point["test_accuracy"];
      by_test = point;
    }
  }
  const Json& selection = training["selection"];
  CHECK(selection["keep"] == "best_validation");
  CHECK(selection["step"] == by_validation["step"]);
  CHECK(selection["best_validation"]["test_accuracy"] == by_validation["test_accuracy"]);
  CHECK(selection["best_test"]["step"] == by_test["step"]);
  CHECK(selection["best_test"]["test_accuracy"] == by_test["test_accuracy"]);
  CHECK(selection["last"]["step"] == 18);
  CHECK(selection["last"]["test_accuracy"] == training["curve"].back()["test_accuracy"]);
  CHECK(ended.record["metrics"]["accuracy"] == by_validation["test_accuracy"]);
  CHECK(ended.record["metrics"]["validation_accuracy"] == best_validation);
}

TEST_CASE("the best weights are kept, whenever a training is killed", "[protocol]") {
  // A learning rate that spoils what it has found: the best weights are not the last ones.
  TrainerOptions options = by_steps();
  options.schedule = RateSchedule::constant;
  options.optimiser.learning_rate = 0.3;
  options.evaluate_every = 2;
  std::mt19937 random(7);
  for (const std::int64_t towers : {1, 2}) {
    const Trained unbroken = trained_classes(options, {}, towers);
    std::vector<int> kills;
    for (int step = 1; step < 20; ++step) {
      if (random() % 2 == 0) kills.push_back(step);
    }
    const Trained broken = trained_classes(options, kills, towers);
    CHECK(broken.hash == unbroken.hash);
    CHECK(broken.record["training"]["curve"] == unbroken.record["training"]["curve"]);
    CHECK(broken.record["training"]["selection"] == unbroken.record["training"]["selection"]);
    CHECK(unbroken.record["training"]["selection"]["step"] < 20);
    options.keep = Keep::last;
    CHECK(trained_classes(options, {}, towers).hash != unbroken.hash);
    options.keep = Keep::best_validation;
  }
}

TEST_CASE("without the file of the best weights a resume says so", "[protocol]") {
  const SyntheticClasses data;
  const TemporaryFolder folder;
  TrainerOptions options = by_steps();
  options.after_step = [](std::int64_t step) {
    if (step == 9) throw Killed{};
  };
  Checkpoints checkpoints(folder.path(), {{"test", 1}});
  {
    const auto model = class_model(data);
    Trainer trainer(*model, data, options, &checkpoints);
    CHECK_THROWS_AS(trainer.train(), Killed);
  }
  REQUIRE(std::filesystem::exists(checkpoints.best()));
  write_file(checkpoints.best(), "spoiled");
  const auto model = class_model(data);
  options.after_step = {};
  Trainer trainer(*model, data, options, &checkpoints);
  trainer.train();
  REQUIRE(trainer.notes().size() >= 2);
  CHECK_THAT(trainer.notes()[0], Contains("checkpoint.best.pt") && Contains("damaged"));
  CHECK_THAT(trainer.notes()[1], Contains("does not hold the weights of step"));
  const Json record = training_record(*model, data, trainer, 16, 20);
  CHECK(record["training"]["selection"]["step"] >= 9);
}

TEST_CASE("classes are learned from tokens, numbers and two sequences", "[protocol]") {
  for (const int kind : {0, 1, 2}) {
    INFO(kind);
    const SyntheticClasses data(kind == 2 ? 2 : 1, kind == 1);
    const auto model = class_model(data, "softmax", kind == 1);
    TrainerOptions options = by_steps();
    options.dropout = options.embedding_dropout = 0;
    options.steps = kind == 2 ? 300 : 150;
    options.evaluate_every = 50;
    options.optimiser.learning_rate = 5e-3;
    Trainer trainer(*model, data, options, nullptr);
    trainer.train();
    const Json record = training_record(*model, data, trainer, 16, 20);
    CHECK(record["metrics"]["train_accuracy"] > 0.95);
  }
}

TEST_CASE("one_cycle is PyTorch's OneCycleLR, with its beta_1", "[protocol]") {
  LearningRateSchedule schedule{RateSchedule::one_cycle, 1000, 3000, 1, 0, 50000};
  CHECK(schedule.steps() == 50000);
  CHECK(schedule.factor(0) == Approx(1.0 / 25));
  CHECK(schedule.factor(499) == Approx(1.0 / 25 + (1 - 1.0 / 25) * 499 / 999));
  CHECK(schedule.factor(999) == Approx(1));
  CHECK(schedule.factor(25499) == Approx(0.5 + 0.5 / 250000).epsilon(1e-6));
  CHECK(schedule.factor(49999) == Approx(1.0 / 250000));
  CHECK(schedule.beta_1(0, 0.9) == Approx(0.95));
  CHECK(schedule.beta_1(999, 0.9) == Approx(0.85));
  CHECK(schedule.beta_1(49999, 0.9) == Approx(0.95));
  schedule.schedule = RateSchedule::cosine;
  CHECK(schedule.beta_1(999, 0.9) == 0.9);
  schedule.schedule = RateSchedule::cosine_by_epoch;  // 17 epochs, the last one not whole
  schedule.warm_up_steps = 0;
  CHECK(schedule.factor(49999) == Approx((1 + std::cos(M_PI * 16 / 17)) / 2));
}

TEST_CASE("gradients are clipped by value before AdamW sees them", "[protocol]") {
  const SyntheticClasses data;
  const auto model = class_model(data);
  const auto weights = model->named_parameters();
  std::map<std::string, at::Tensor> old, gradients;
  for (const auto& item : weights) {
    old[item.key()] = item.value().detach().clone();
    gradients[item.key()] = at::linspace(-2, 2, item.value().numel()).view(item.value().sizes());
    item.value().mutable_grad() = gradients[item.key()].clone();
  }
  OptimiserOptions options;
  options.clip_value = 0.5;
  options.weight_decay = 0;
  Optimiser optimiser(*model, options);
  optimiser.step(1e-3, 0.8);
  for (const auto& item : weights) {
    INFO(item.key());
    const at::Tensor clipped = gradients[item.key()].clamp(-0.5, 0.5);
    const NamedTensors state = optimiser.state();
    CHECK(at::allclose(state.at(item.key() + ".mean"), clipped * (1 - 0.8), 1e-5, 1e-7));
    // From zero means, corrected for that: g / (|g| + epsilon).
    const at::Tensor want = old[item.key()] - 1e-3 * clipped / (clipped.abs() + 1e-8);
    CHECK((item.value().detach() - want).abs().max().item<double>() < 1e-6);
  }
}
