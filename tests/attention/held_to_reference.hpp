// For tests of mechanisms: one configured mechanism with inputs, its outputs and its gradients
// beside those of its reference in double.
#pragma once

#include <map>
#include <string>

#include "attention/mechanism.hpp"
#include "attention/reference/reference.hpp"

namespace attnbench::test {

/// |a - b| / |b| over all elements, or |a| where b is 0; infinite if a is not finite.
double relative_error(const at::Tensor& a, const at::Tensor& b);

class Held {
 public:
  /// `said` are options as a user would say them. Inputs are seeded normals in double, parameters
  /// and buffers those that the mechanism draws.
  Held(Entry entry, reference::Reference reference, Problem problem,
       const std::map<std::string, OptionValue>& said = {}, double scale = 1);

  /// The output of an implementation in `type`, as double.
  at::Tensor output(const std::string& implementation, at::ScalarType type = at::kDouble) const;
  /// The output of a mix of tokens [begin, end) from `state`, which is advanced.
  at::Tensor step(const std::string& implementation, State& state, std::int64_t begin,
                  std::int64_t end, at::ScalarType type = at::kDouble) const;
  State empty_state(at::ScalarType type = at::kDouble) const;
  /// Gradients by role, and by parameter under "parameter NAME", of the sum of the output times
  /// `upstream`, as double.
  std::map<std::string, at::Tensor> gradients(const std::string& implementation,
                                              at::ScalarType type = at::kDouble) const;
  /// All rows of the reference.
  at::Tensor expected() const;
  /// The reference's derivative of the sum of the output times `upstream` along `direction` of one
  /// role or parameter, named as in `gradients`, by central differences.
  double slope(const std::string& role, const at::Tensor& direction) const;

  Inputs inputs;                                 ///< in double; change them freely before asking
  std::map<std::string, at::Tensor> parameters;  ///< and buffers, likewise
  at::Tensor upstream;                           ///< [B, H, T, Dv]
  Problem problem;
  Entry entry;
  Options options;

 private:
  Inputs typed(at::ScalarType type, bool requires_grad) const;
  /// The mechanism in `type`, with `parameters`.
  std::shared_ptr<Mechanism> made(at::ScalarType type) const;
  reference::Reference reference_;
};

}  // namespace attnbench::test
