// For tests of mechanisms: one configured mechanism with inputs, its outputs and gradients and
// those of its reference in double, and the checks that every mechanism shares: gradients, steps,
// padding.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "attention/mechanism.hpp"
#include "attention/reference/reference.hpp"

namespace attnbench::test {

/// |a - b| / |b| over all elements, or |a| where b is 0; infinite if a is not finite.
double relative_error(const at::Tensor& a, const at::Tensor& b);

using Said = std::map<std::string, OptionValue>;

/// Option values.
inline OptionValue count(std::int64_t number) { return number; }
inline OptionValue word(const char* text) { return std::string(text); }

/// The names of a built-in mechanism's implementations.
std::vector<std::string> implementations_of(const std::string& mechanism);

class Held {
 public:
  /// A built-in mechanism with options as a user gives them. Inputs are seeded normals in double,
  /// parameters and buffers those that the mechanism draws.
  Held(const std::string& mechanism, Problem problem, const Said& said = {}, double scale = 1);

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

/// Two sequences of two heads, whose values are two wider than queries and keys; with cross there
/// are seven more key tokens.
Problem two_by_two(std::int64_t length, std::int64_t width, Pattern pattern = Pattern::causal);

/// Lengths with widths: one token, fewer than a chunk, one whole chunk, many and a part of one.
std::vector<std::pair<std::int64_t, std::int64_t>> odd_sizes(std::int64_t chunk);

/// Each of `implementations` gives the definition's output: to 1e-12 in float64, to
/// `float32_error` in float32.
void check_outputs(const Held& held, const std::vector<std::string>& implementations,
                   double float32_error = 2e-6);

/// The gradient of every role and parameter is, along a random direction, the slope of the
/// definition: to 1e-6 of it, to 1e-7 of what slopes there usually are where this one is small by
/// chance, or to `margin` where all are about zero.
void check_gradients(const Held& held, const std::string& implementation, double margin = 0);

/// A state that any of `implementations` has filled with any of `prefills` tokens is continued by
/// any of them, with one token and then the rest, as the definition runs over the whole; the state
/// that a branch was cloned from stays where it was.
void check_steps(const Held& held, const std::vector<std::string>& implementations,
                 const std::vector<std::int64_t>& prefills);

/// Tokens [begin, end) of the first sequence are padding, and all of the second.
struct Padding {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::vector<std::string> roles;                ///< hold NaN where there is padding
  std::vector<std::string> in_second_only = {};  ///< hold NaN in the second sequence alone
};

/// What stands in the padding changes neither outputs nor gradients, and a sequence of padding
/// alone gives 0 and gets 0.
void check_padding(const Held& held, const std::string& implementation, const Padding& padding);

}  // namespace attnbench::test
