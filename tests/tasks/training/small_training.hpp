// A small training for tests: a second's work, two segments of unequal length, dropout and warm-up.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tasks/mqar/data.hpp"
#include "tasks/training/trainer.hpp"
#include "tests/support/files.hpp"
#include "tests/tasks/training/model_of.hpp"

namespace attnbench::test {

using tasks::mqar::RecallData;

inline RecallData small_data() {
  tasks::mqar::RecallPlan plan;
  plan.recall.vocabulary = 40;
  plan.train = {{16, 2, 24}, {24, 3, 10}};
  plan.validation = {{16, 2, 20}};
  plan.test = {{16, 2, 20}, {32, 4, 10}};
  plan.seed = 3;
  return RecallData(plan);
}

inline std::shared_ptr<Model> small_model(const std::string& name, ModelOptions options = {},
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
  const auto make = [&] { return entry.make(chosen, problem); };
  return std::make_shared<Model>(everywhere(make, implementation), options, 1);
}

inline ModelOptions comparison() {
  ModelOptions options;
  options.layout = Layout::convolution_first;
  options.mlp = Mlp::identity;
  return options;
}

inline TrainerOptions quick() {
  TrainerOptions options;
  options.batch = 8;
  options.epochs = 3;
  options.embedding_dropout = 0.1;
  options.warm_up_steps = 3;
  options.optimiser.clip = 1;
  options.checkpoint_seconds = 0;
  return options;
}

/// Thrown by tests to end a training between two steps.
struct Killed {};

/// Kills a training after each of `steps` and resumes it from its folder; returns the hash of the
/// trained weights and the curve.
inline std::pair<std::string, Json> trained(const std::string& mechanism,
                                            const std::vector<int>& steps,
                                            const ModelOptions& options = comparison()) {
  const RecallData data = small_data();
  const TemporaryFolder folder;
  for (std::size_t i = 0; i <= steps.size(); ++i) {
    std::map<std::string, OptionValue> said;
    if (mechanism == "performer") said["redraw_every"] = std::int64_t{4};
    const auto model = small_model(mechanism, options, Dtype::float32, said);
    Checkpoints checkpoints(folder.path(), {{"test", 1}});
    TrainerOptions how = quick();
    if (i < steps.size()) {
      how.after_step = [&](std::int64_t step) {
        if (step == steps[i]) throw Killed{};
      };
    }
    Trainer trainer(*model, data, how, &checkpoints);
    try {
      trainer.train();
    } catch (const Killed&) {
      continue;
    }
    CHECK(trainer.notes().empty());
    CHECK(trainer.resumed_from() == (steps.empty() ? 0 : steps.back()));
    return {hash_of(weights_of(*model)), Json(trainer.state().curve)};
  }
  return {};
}

}  // namespace attnbench::test
