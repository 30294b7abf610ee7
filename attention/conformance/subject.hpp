// Subject: what is under test, and how to make and run trials of it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "attention/conformance/conformance.hpp"
#include "attention/conformance/judge.hpp"
#include "attention/conformance/tolerance.hpp"

namespace attnbench::conformance {

/// The sizes of one trial. Not multiples of the kit's chunk of 8, so that each has a tail.
struct Sizes {
  std::int64_t batch = 2;
  std::int64_t heads = 2;
  std::int64_t kv_heads = 0;  ///< 0 = heads
  std::int64_t length = 37;
  std::int64_t key_length = 0;  ///< 0 = length, or 29 where the pattern is cross
  std::int64_t head_dim = 16;
  std::int64_t value_dim = 0;  ///< 0 = head_dim
};

/// Two key heads for four: which head reads which, and what is summed over them, shows.
Sizes grouped_sizes();

using Values = std::map<std::string, OptionValue>;

/// A mechanism made for one problem, and the implementation that is to compute it.
struct Trial {
  Problem problem;
  Options options;
  std::shared_ptr<Mechanism> mechanism;
  const Implementation* implementation = nullptr;
  std::string where;
};

/// Gradients by role, and by parameter under "parameter NAME".
struct Differentiated {
  at::Tensor output;
  std::map<std::string, at::Tensor> gradients;
};

class Subject {
 public:
  Subject(const Entry& entry, const reference::Reference& reference,
          const Implementation& implementation, Pattern pattern, Dtype dtype,
          const CheckOptions& options);

  /// Nothing, after telling the judge why, where the mechanism or implementation says no.
  /// `changes` go over the kit's options, and `CheckOptions::options` over both.
  std::optional<Trial> prepare(Judge& judge, const std::string& where, const Sizes& sizes = {},
                               const Values& changes = {}, bool gradient = false) const;
  /// The same for another pattern; the parameters are those of `like`.
  std::optional<Trial> in_pattern(const Trial& like, Pattern pattern) const;
  /// The composite form in double, with the trial's parameters.
  Trial composite_in_double(const Trial& trial) const;
  /// The composite form with the trial's own mechanism and dtype; nothing where it does not support
  /// it.
  std::optional<Trial> naive(const Trial& trial) const;

  /// Integer options whose name holds "chunk" or "tile", the kit's value for each.
  const Values& chunks() const { return chunks_; }
  /// Whether the mechanism declares an option of this name.
  const Option* option(const std::string& name) const;

  const Entry& entry;
  const reference::Reference& reference;
  const Implementation& implementation;
  const Pattern pattern;
  const Dtype dtype;
  const std::string device;
  const std::uint64_t seed;
  const Tolerance bar;

  /// What "unchanged" may mean: forms that stabilise by a chunk's maximum round differently when a
  /// later token of the chunk changes.
  double unchanged() const;
  bool differentiable() const { return implementation.differentiable; }

 private:
  Problem problem(const Sizes& sizes) const;

  Values chunks_;  // found while kit_options_ is made, so before it
  Values kit_options_;
  Values said_;
};

/// Normal numbers of standard deviation `scale` for every role, on the CPU; the role's name, its
/// shape and the seed decide them.
Inputs draw(const Trial& trial, std::uint64_t seed, double scale = 1);
/// Normal numbers of this shape in double.
at::Tensor normal(at::IntArrayRef shape, std::uint64_t seed);
at::Tensor normal_like(const at::Tensor& tensor, std::uint64_t seed);

Inputs converted(const Inputs& inputs, at::ScalarType type);
/// Tokens [begin, begin + count) of every role that has tokens, and of the mask.
Inputs tokens(const Trial& trial, const Inputs& inputs, std::int64_t begin, std::int64_t count);
/// Batch rows [begin, begin + count).
Inputs rows_of_batch(const Inputs& inputs, std::int64_t begin, std::int64_t count);
/// The role that is averaged: named "value", or the one that is as wide as the output.
bool is_value(const Trial& trial, const Role& role);
/// Whether the values have a role of their own, so that claims about them can be put to the test.
std::string value_role(const Trial& trial);

/// The inputs on the trial's device, strides as they are; those that are there already themselves.
Inputs placed(const Trial& trial, const Inputs& inputs);
/// A state for the trial that has seen nothing, on its device.
State empty_state(const Trial& trial);

/// Runs without gradient, on the trial's device; what it returns is on the CPU. With a state:
/// continues from it.
at::Tensor mix(const Trial& trial, const Inputs& inputs, State* state = nullptr);
/// Gradients of sum(upstream * output), likewise.
Differentiated differentiate(const Trial& trial, const Inputs& inputs, const at::Tensor& upstream);

/// From wherever they are.
std::vector<double> numbers(const at::Tensor& tensor);

}  // namespace attnbench::conformance
