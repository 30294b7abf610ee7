#include "tasks/training/training_state.hpp"

#include "tasks/training/best_weights.hpp"

#include <functional>
#include <iterator>

#include "tests/tasks/training/small_training.hpp"

using namespace attnbench;
using namespace attnbench::test;

TEST_CASE("every part of a checkpoint changes the resumed bits", "[trainer]") {
  // Changes one part of an otherwise whole checkpoint at a time: the resumed weights must differ,
  // so that the test of killed trainings would notice a resume without that part.
  const RecallData data = small_data();
  const auto finish = [&](const std::function<void(Checkpoint&)>& spoil) {
    const test::TemporaryFolder folder;
    const Json identity = {{"test", 3}};
    TrainerOptions options = quick();
    options.after_step = [](std::int64_t step) {
      if (step == 7) throw Killed{};  // in the middle of the second epoch
    };
    {
      const auto model = small_model("softmax", comparison());
      Checkpoints checkpoints(folder.path(), identity);
      Trainer trainer(*model, data, options, &checkpoints);
      REQUIRE_THROWS_AS(trainer.train(), Killed);
    }
    Checkpoints checkpoints(folder.path(), identity);
    auto kept = checkpoints.load();
    REQUIRE((kept.has_value() && kept->facts["step"] == 7));
    spoil(*kept);
    checkpoints.save(*kept);
    const auto model = small_model("softmax", comparison());
    Trainer trainer(*model, data, quick(), &checkpoints);
    trainer.train();
    return std::pair(hash_of(weights_of(*model)), Json(trainer.state().curve));
  };
  const auto want = trained("softmax", {});
  const auto whole = finish([](Checkpoint&) {});
  CHECK((whole.first == want.first && whole.second == want.second));
  const auto forget = [](const char* part) {
    return [part](Checkpoint& checkpoint) {
      int found = 0;
      for (auto& [name, tensor] : checkpoint.tensors) {
        if (name.find(part) == std::string::npos) continue;
        tensor.zero_();
        ++found;
      }
      REQUIRE(found > 0);
    };
  };
  CHECK(finish(forget(".mean")).first != want.first);
  CHECK(finish(forget(".square")).first != want.first);
  CHECK(finish(forget("weight/last_norm")).first != want.first);
  // The step decides batches, dropout, the learning rate and Adam's correction.
  const auto at_step = [](int step) {
    return [step](Checkpoint& checkpoint) { checkpoint.facts["step"] = step; };
  };
  CHECK(finish(at_step(6)).first != want.first);
  CHECK(finish(at_step(8)).first != want.first);
  // The sums of the epoch under way are in the curve alone.
  const auto sums = finish([](Checkpoint& checkpoint) { checkpoint.facts["epoch_loss"] = 0.0; });
  CHECK((sums.first == want.first && sums.second != want.second));
}

TEST_CASE("a checkpoint that does not fit is replaced by the previous one, with the same bits",
          "[trainer]") {
  const RecallData data = small_data();
  const auto want = trained("softmax", {});
  // The checkpoint is valid except for the part that does not fit.
  const std::vector<std::function<void(Checkpoint&)>> ways{
      [](Checkpoint& one) { one.facts["step"] = "seven"; },
      [](Checkpoint& one) { one.facts.erase("curve"); },
      [](Checkpoint& one) { one.tensors.erase(std::prev(one.tensors.end())); },  // a weight
      [](Checkpoint& one) {
        auto& [name, tensor] = *one.tensors.begin();
        tensor = tensor.flatten().slice(0, 1);
      }};
  for (const auto& spoil : ways) {
    const test::TemporaryFolder folder;
    const Json identity = {{"test", 5}};
    TrainerOptions options = quick();
    options.after_step = [](std::int64_t step) {
      if (step == 7) throw Killed{};
    };
    {
      const auto model = small_model("softmax", comparison());
      Checkpoints checkpoints(folder.path(), identity);
      Trainer trainer(*model, data, options, &checkpoints);
      REQUIRE_THROWS_AS(trainer.train(), Killed);
      Checkpoint newest = *Checkpoints(folder.path(), identity).load();
      spoil(newest);
      checkpoints.save(newest);  // that of step 7 is the one before now
    }
    Checkpoints checkpoints(folder.path(), identity);
    const auto model = small_model("softmax", comparison());
    Trainer trainer(*model, data, quick(), &checkpoints);
    trainer.train();
    CHECK(trainer.resumed_from() == 7);
    REQUIRE(trainer.notes().size() == 1);
    CHECK_THAT(trainer.notes()[0], Catch::Matchers::Contains("checkpoint.pt "));
    CHECK(hash_of(weights_of(*model)) == want.first);
    CHECK(Json(trainer.state().curve) == want.second);
  }
}

TEST_CASE("training has converged when accuracy grows no more", "[trainer]") {
  const auto curve = [](const std::vector<double>& accuracies) {
    TrainingState state;
    state.stopped = "epochs";
    for (const double one : accuracies) {
      state.curve.emplace_back().validation_accuracy = one;
    }
    return state;
  };
  CHECK_FALSE(has_converged(curve({0.5, 0.5, 0.5})));
  CHECK(has_converged(curve({0.5, 0.9, 0.905, 0.906})));
  CHECK_FALSE(has_converged(curve({0.2, 0.4, 0.6, 0.8})));
  CHECK(has_converged(curve({0.2, 0.9, 0.9, 0.9, 0.9, 0.9, 0.905, 0.4})));
  CHECK_FALSE(has_converged(curve({0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.7, 0.72})));
}

TEST_CASE("training has converged when the loss falls no more", "[trainer]") {
  const auto curve = [](const std::vector<double>& losses) {
    TrainingState state;
    for (const double one : losses) {
      state.curve.emplace_back().validation_loss = one;
      state.curve.back().step = static_cast<std::int64_t>(state.curve.size());
    }
    return state;
  };
  CHECK_FALSE(loss_has_converged(curve({2, 2, 2})));
  CHECK(loss_has_converged(curve({5, 2, 1.99, 1.985})));
  CHECK(loss_has_converged(curve({5, 2, 1.99, 3})));
  CHECK_FALSE(loss_has_converged(curve({5, 4, 3, 2})));
  // The best step is that of the least loss, the first of equal ones.
  CHECK(best_step(curve({5, 2, 3, 2}), Measure::loss) == 2);
  CHECK(best_step(TrainingState{}, Measure::loss) == 0);
}
