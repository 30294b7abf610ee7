// For tests of what is known of one mechanism alone: the mechanism with its options and inputs, its
// outputs and gradients. What every mechanism must keep is the conformance kit's.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "attention/mechanism.hpp"

namespace attnbench::test {

/// |a - b| / |b| over all elements, or |a| where b is 0; infinite if a is not finite.
double relative_error(const at::Tensor& a, const at::Tensor& b);

using Overrides = std::map<std::string, OptionValue>;

/// Option values.
inline OptionValue count(std::int64_t number) { return number; }
inline OptionValue word(const char* text) { return std::string(text); }

/// The names of a built-in mechanism's implementations.
std::vector<std::string> implementations_of(const std::string& mechanism);

class Fixture {
 public:
  /// A built-in mechanism with options as a user gives them. Inputs are seeded normals in double,
  /// parameters and buffers those that the mechanism draws.
  Fixture(const std::string& mechanism, Problem problem, const Overrides& said = {},
          double scale = 1);

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
};

/// Two sequences of two heads, whose values are two wider than queries and keys; with cross there
/// are seven more key tokens.
Problem two_by_two(std::int64_t length, std::int64_t width, Pattern pattern = Pattern::causal);

}  // namespace attnbench::test
