#include "tasks/learning/trainer.hpp"

#include <cmath>
#include <random>

#include "attention/registry.hpp"
#include "tasks/learning/outcome.hpp"
#include "tasks/mqar/data.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using namespace attnbench::tasks::learning;
using attnbench::tasks::mqar::RecallData;
using Catch::Matchers::Contains;

namespace {

const Registry& registry() {
  static const Registry builtins = Registry::with_builtins();
  return builtins;
}

RecallData small_data() {
  tasks::mqar::Plan plan;
  plan.recall.vocabulary = 40;
  plan.train = {{16, 2, 24}, {24, 3, 10}};
  plan.validation = {{16, 2, 20}};
  plan.test = {{16, 2, 20}, {32, 4, 10}};
  plan.seed = 3;
  return RecallData(plan);
}

std::shared_ptr<Model> small_model(const std::string& name, ModelOptions options = {},
                                   Dtype dtype = Dtype::float32,
                                   const std::map<std::string, OptionValue>& said = {}) {
  Problem problem;
  problem.batch = 8;
  problem.heads = problem.kv_heads = 2;
  problem.length = problem.key_length = 32;
  problem.head_dim = problem.value_dim = 8;
  problem.dtype = dtype;
  problem.gradient = true;
  options.vocabulary = 40;
  const Entry& entry = registry().entry(name);
  const Options chosen = entry.derive(Options::resolve(entry.options, said), problem);
  const Implementation& implementation =
      *Registry::choose(entry, "auto", chosen, problem).implementation;
  return std::make_shared<Model>([&] { return entry.make(chosen, problem); }, implementation,
                                 options, 1);
}

ModelOptions comparison() {
  ModelOptions options;
  options.layout = Layout::convolution_first;
  options.mlp = Mlp::identity;
  return options;
}

TrainerOptions quick() {
  TrainerOptions options;
  options.batch = 8;
  options.epochs = 3;
  options.embedding_dropout = 0.1;
  options.warm_up_steps = 3;
  options.optimiser.clip = 1;
  options.checkpoint_seconds = 0;
  return options;
}

struct Killed {};

/// Kills a training after each of `steps`, begins anew from its folder each time, and returns the
/// trained weights and the curve.
std::pair<std::string, Json> trained(const std::string& mechanism, const std::vector<int>& steps) {
  const RecallData data = small_data();
  const test::TemporaryFolder folder;
  for (std::size_t i = 0; i <= steps.size(); ++i) {
    std::map<std::string, OptionValue> said;
    if (mechanism == "performer") said["redraw_every"] = std::int64_t{4};
    const auto model = small_model(mechanism, comparison(), Dtype::float32, said);
    Checkpoints checkpoints(folder.path(), {{"test", 1}});
    TrainerOptions options = quick();
    if (i < steps.size()) {
      options.after_step = [&](std::int64_t step) {
        if (step == steps[i]) throw Killed{};
      };
    }
    Trainer trainer(*model, data, options, &checkpoints);
    try {
      trainer.train();
    } catch (const Killed&) {
      continue;
    }
    CHECK(trainer.notes().empty());
    CHECK(trainer.resumed_from() == (steps.empty() ? 0 : steps.back()));
    return {hash_of(weights_of(*model)), trainer.progressed().curve};
  }
  return {};
}

}  // namespace

TEST_CASE("a training that is killed ends with the bits of one that is not", "[trainer]") {
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

TEST_CASE("every part of a checkpoint is needed for the bits", "[trainer]") {
  // What the test above would see if a resume forgot it: each is spoilt in a checkpoint that is
  // whole otherwise, and the weights come out differently.
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
    return std::pair(hash_of(weights_of(*model)), trainer.progressed().curve);
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

TEST_CASE("seeds decide the bits, each its own", "[trainer]") {
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

TEST_CASE("a step is AdamW's of the mean cross-entropy", "[trainer]") {
  // One step by hand: from zero means, Adam moves each weight by the sign of its gradient.
  const RecallData data = small_data();
  const auto model = small_model("softmax", comparison(), Dtype::float64);
  const auto before = small_model("softmax", comparison(), Dtype::float64);
  TrainerOptions options;
  options.batch = 1000;
  options.epochs = 1;
  options.schedule = Schedule::constant;
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

TEST_CASE("gradients are clipped to their norm together", "[trainer]") {
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

TEST_CASE("a loss that is no number ends training, with the last good checkpoint", "[trainer]") {
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

TEST_CASE("training ends where validation is good enough", "[trainer]") {
  const RecallData data = small_data();
  const auto model = small_model("softmax", comparison());
  TrainerOptions options = quick();
  options.stop_above = 1e-9;
  options.epochs = 50;
  options.optimiser.learning_rate = 1e-2;
  Trainer trainer(*model, data, options, nullptr);
  trainer.train();
  CHECK(trainer.progressed().stopped == "accuracy");
  CHECK(trainer.progressed().step < 250);
  CHECK(has_converged(trainer.progressed()));
}

TEST_CASE("a model learns what it is shown, and the outcome says so", "[trainer]") {
  // Two pairs and few tokens: small enough to learn by heart in a second.
  const RecallData data = small_data();
  const auto model = small_model("softmax", comparison());
  TrainerOptions options = quick();
  options.epochs = 60;
  options.embedding_dropout = 0;
  options.optimiser.learning_rate = 1e-2;
  options.checkpoint_seconds = 1e9;
  Trainer trainer(*model, data, options, nullptr);
  trainer.train();
  const Json sections = outcome(*model, data, trainer, 8, 32);
  const Json& metrics = sections["metrics"];
  CHECK(metrics["train_accuracy"].get<double>() > 0.9);
  const Json& training = sections["training"];
  CHECK(training["steps"] == 300);
  CHECK(training["curve"].size() == 60);
  CHECK(training["curve"].back()["loss"].get<double>() <
        training["curve"].front()["loss"].get<double>() / 4);
  // Keys and values of 32 tokens, of two heads of 8, and the convolution's two tokens of 16.
  CHECK(training["state_bytes"]["mechanism"] == 2 * 32 * 16 * 4);
  CHECK(training["state_bytes"]["convolution"] == 2 * 16 * 4);
  CHECK(metrics["state_bytes"] == 4096 + 128);
  CHECK(training["parameters"]["mechanism"] == 4 * 16 * 16);
  std::int64_t weights = 0;
  for (const auto& item : model->named_parameters()) weights += item.value().numel();
  CHECK(training["parameters"]["total"] == weights);
  REQUIRE(training["test"].size() == 2);
  double mean = 0;
  std::int64_t questions = 0;
  for (const Json& segment : training["test"]) {
    const double right = segment["accuracy"];
    mean += right * segment["examples"].get<double>() / 30;
    questions += segment["questions"].get<std::int64_t>();
    CHECK(right + segment["wrong_from_context"].get<double>() +
              segment["wrong_from_elsewhere"].get<double>() ==
          Approx(1));
  }
  CHECK(metrics["accuracy"].get<double>() == Approx(mean));
  std::int64_t counted = 0;
  for (const Json& count : training["look_back"]["questions"]) counted += count.get<std::int64_t>();
  CHECK(counted == questions);
  CHECK(questions == 20 * 2 + 10 * 4);
}

TEST_CASE("scores are those of the whole logits", "[trainer]") {
  const RecallData data = small_data();
  const auto model = small_model("latte", comparison());
  std::vector<std::int64_t> all(20);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  const Batch batch = data.batch(Split::validation, 0, all);
  const at::NoGradGuard no_grad;
  const at::Tensor answers =
      model->forward(batch.tokens).argmax(-1).flatten().index_select(0, batch.positions);
  const Scores scores = evaluate(*model, data, Split::validation, 0, 1000, 7);
  CHECK(scores.questions == 40);
  CHECK(scores.right == answers.eq(batch.labels).sum().item<std::int64_t>());
  std::int64_t known = 0;
  for (std::int64_t i = 0; i < 40; ++i) {
    const auto answer = answers[i].item<std::int64_t>();
    if (answer == batch.labels[i].item<std::int64_t>()) continue;
    for (std::int64_t j = 0; j < batch.candidates.size(1); ++j) {
      known += batch.candidates[i][j].item<std::int64_t>() == answer;
    }
  }
  CHECK(scores.wrong_from_context == known);
  CHECK(scores.right + scores.wrong_from_context + scores.wrong_from_elsewhere == 40);
}

TEST_CASE("training has converged when accuracy grows no more", "[trainer]") {
  const auto curve = [](const std::vector<double>& accuracies) {
    Progressed progressed;
    progressed.stopped = "epochs";
    for (const double one : accuracies) {
      progressed.curve.push_back({{"validation_accuracy", one}});
    }
    return progressed;
  };
  CHECK_FALSE(has_converged(curve({0.5, 0.5, 0.5})));
  CHECK(has_converged(curve({0.5, 0.9, 0.905, 0.906})));
  CHECK_FALSE(has_converged(curve({0.2, 0.4, 0.6, 0.8})));
  CHECK(has_converged(curve({0.2, 0.9, 0.9, 0.9, 0.9, 0.9, 0.905, 0.4})));
  CHECK_FALSE(has_converged(curve({0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.7, 0.72})));
}
