#include "tasks/training/trainer.hpp"

#include <cmath>
#include <random>

#include "tests/tasks/training/small_training.hpp"

using namespace attnbench;
using namespace attnbench::test;
using Catch::Matchers::Contains;

TEST_CASE("a killed and resumed training gives the bits of an unbroken one", "[trainer]") {
  std::mt19937 random(20);
  for (const char* mechanism : {"softmax", "latte", "performer"}) {
    INFO(mechanism);
    const auto unbroken = trained(mechanism, {});
    REQUIRE(unbroken.second.size() == 3);
    std::vector<int> steps;  // 5 steps an epoch, 15 in all
    for (int step = 1; step < 15; ++step) {
      if (random() % 3 == 0) steps.push_back(step);
    }
    const auto broken = trained(mechanism, steps);
    CHECK(broken.first == unbroken.first);
    CHECK(broken.second == unbroken.second);
  }
}

TEST_CASE("each seed determines its own bits", "[trainer]") {
  const RecallData data = small_data();
  const auto weights = [&](std::uint64_t data_seed) {
    const auto model = small_model("softmax", comparison());
    TrainerOptions options = quick();
    options.data_seed = data_seed;
    Trainer trainer(*model, data, options, nullptr);
    trainer.train();
    return hash_of(weights_of(*model));
  };
  CHECK(weights(1) == weights(1));
  CHECK(weights(1) != weights(2));
}

TEST_CASE("a loss that is not finite ends training, and names the last good checkpoint",
          "[trainer]") {
  const RecallData data = small_data();
  const auto model = small_model("softmax", comparison());
  const test::TemporaryFolder folder;
  Checkpoints checkpoints(folder.path(), {{"test", 2}});
  TrainerOptions options = quick();
  options.after_step = [&](std::int64_t step) {
    const at::NoGradGuard no_grad;
    if (step == 4) model->named_parameters()["last_norm.weight"].fill_(NAN);
  };
  Trainer trainer(*model, data, options, &checkpoints);
  CHECK_THROWS_WITH(trainer.train(), Contains("not a finite number at step 5 of 15") &&
                                         Contains("of step 4, is ") &&
                                         Contains((folder / "checkpoint.pt").string()));
  const auto kept = checkpoints.load();
  REQUIRE(kept.has_value());
  CHECK(kept->facts["step"] == 4);
  for (const auto& [name, tensor] : kept->tensors) {
    CHECK(at::isfinite(tensor).all().item<bool>());
  }
  Trainer without(*model, data, options, nullptr);
  CHECK_THROWS_WITH(without.train(), Contains("no checkpoint had been written"));
}

TEST_CASE("training stops above the validation accuracy that was set", "[trainer]") {
  const RecallData data = small_data();
  const auto model = small_model("softmax", comparison());
  TrainerOptions options = quick();
  options.stop_above = 1e-9;
  options.epochs = 50;
  options.optimiser.learning_rate = 1e-2;
  Trainer trainer(*model, data, options, nullptr);
  trainer.train();
  CHECK(trainer.state().stopped == "accuracy");
  CHECK(trainer.state().step < 250);
  CHECK(has_converged(trainer.state()));
}
