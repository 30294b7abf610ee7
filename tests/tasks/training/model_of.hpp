// Models for tests: seven tokens, two heads of four numbers, in double.
#pragma once

#include <memory>

#include "attention/registry.hpp"
#include "tasks/training/model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench::test {

using namespace tasks::training;

inline Problem small(Pattern pattern = Pattern::causal) {
  Problem problem;
  problem.batch = 2;
  problem.heads = 2;
  problem.kv_heads = 2;
  problem.length = problem.key_length = 7;
  problem.head_dim = problem.value_dim = 4;
  problem.pattern = pattern;
  problem.dtype = Dtype::float64;
  return problem;
}

/// One mechanism in all blocks.
inline tasks::MakeMixer everywhere(std::function<std::shared_ptr<Mechanism>()> make,
                                   Implementation implementation) {
  return [make = std::move(make), implementation = std::move(implementation)](std::size_t) {
    return tasks::Mixer{make(), implementation};
  };
}

inline std::shared_ptr<Model> model_of(const char* name, const Problem& problem,
                                       const ModelOptions& options, std::uint64_t seed = 1) {
  const Entry& entry = registry().entry(name);
  const Options chosen = entry.derive(Options::resolve(entry.options, {}), problem);
  const auto make = [&] { return entry.make(chosen, problem); };
  return std::make_shared<Model>(everywhere(make, entry.implementations.front()), options, seed);
}

inline at::Tensor some_ids(std::int64_t vocabulary = 11) {
  return (at::arange(14, at::kLong) * 5 + 3).remainder(vocabulary).view({2, 7});
}

inline std::int64_t weights_in(const torch::nn::Module& module) {
  std::int64_t sum = 0;
  for (const at::Tensor& tensor : module.parameters()) sum += tensor.numel();
  return sum;
}

}  // namespace attnbench::test
