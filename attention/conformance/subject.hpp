// Subject: the implementation under test, and its trials.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "attention/conformance/conformance.hpp"
#include "attention/conformance/judge.hpp"
#include "core/option_json.hpp"
#include "core/tolerance.hpp"

namespace attnbench::conformance {

/// The sizes of one trial. Not multiples of the kit's chunk of 8, so that the last chunk is
/// partial.
struct TrialSizes {
  std::int64_t batch = 2;
  std::int64_t heads = 2;
  std::int64_t kv_heads = 0;  ///< 0 = heads
  std::int64_t length = 37;
  std::int64_t key_length = 0;  ///< 0 = length, or 29 where the pattern is cross
  std::int64_t head_dim = 16;
  std::int64_t value_dim = 0;  ///< 0 = head_dim
};

/// Two key heads for four query heads, which reveals errors in their assignment and in sums over
/// them.
TrialSizes grouped_sizes();

/// A mechanism for one problem, and the implementation that computes it.
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

  /// A trial, or nothing after reporting the reason if the mechanism or implementation does not
  /// support it. `changes` override the kit's options, and `CheckOptions::options` both.
  std::optional<Trial> prepare(Judge& judge, const std::string& where, const TrialSizes& sizes = {},
                               const OptionValues& changes = {}, bool gradient = false) const;
  /// The trial for another pattern, with the parameters of `like`.
  std::optional<Trial> in_pattern(const Trial& like, Pattern pattern) const;
  /// The composite form in double, with the trial's parameters; nothing where it does not support
  /// that, as a mechanism in Python may not.
  std::optional<Trial> composite_in_double(const Trial& trial) const;
  /// The composite form with the trial's mechanism and dtype; nothing if it does not support it.
  std::optional<Trial> naive(const Trial& trial) const;

  /// Integer options whose name contains "chunk" or "tile", or is "block", with the kit's values.
  const OptionValues& chunks() const { return chunks_; }
  /// The mechanism's option of this name, or null.
  const Option* option(const std::string& name) const;

  const Entry& entry;
  const reference::Reference& reference;
  const Implementation& implementation;
  const Pattern pattern;
  const Dtype dtype;
  const std::string device;
  const std::uint64_t seed;
  const Tolerance bar;

  /// The tolerance for "unchanged": forms that stabilise by a chunk's maximum round differently
  /// when a later token of the chunk changes.
  double unchanged() const;
  bool differentiable() const { return implementation.differentiable; }

 private:
  Problem problem(const TrialSizes& sizes) const;

  OptionValues chunks_;  // filled while kit_options_ is initialised, so declared before it
  OptionValues kit_options_;
  OptionValues said_;
};

/// Normal numbers of standard deviation `scale` for every role, on the CPU. They depend only on the
/// role's name, its shape and the seed.
Inputs draw(const Trial& trial, std::uint64_t seed, double scale = 1);
/// Normal numbers of this shape in double.
at::Tensor normal(at::IntArrayRef shape, std::uint64_t seed);
at::Tensor normal_like(const at::Tensor& tensor, std::uint64_t seed);

Inputs converted(const Inputs& inputs, at::ScalarType type);
/// Tokens [begin, begin + count) of every role that has tokens, and of the mask.
Inputs tokens(const Trial& trial, const Inputs& inputs, std::int64_t begin, std::int64_t count);
/// The role that is averaged: named "value", or the one that is as wide as the output.
bool is_value(const Trial& trial, const Role& role);
/// The role of the values; empty if there is none, so that claims about them cannot be checked.
std::string value_role(const Trial& trial);

/// The inputs on the trial's device, with their strides; not copied if they are there already.
Inputs placed(const Trial& trial, const Inputs& inputs);
/// An empty state for the trial, on its device.
State empty_state(const Trial& trial);

/// Runs without gradient on the trial's device, from `state` if it is not null; the result is on
/// the CPU.
at::Tensor mix(const Trial& trial, const Inputs& inputs, State* state = nullptr);
/// Gradients of sum(upstream * output), likewise.
Differentiated differentiate(const Trial& trial, const Inputs& inputs, const at::Tensor& upstream);

/// The numbers of a tensor on any device.
std::vector<double> numbers(const at::Tensor& tensor);

/// A property and the function that checks it; one file per group of properties.
struct PropertyCheck {
  Property property;
  /// Reports to the judge every trial that it makes or omits.
  void (*run)(const Subject&, Judge&);
};

std::vector<PropertyCheck> value_checks();         ///< the definition and the composite form
std::vector<PropertyCheck> order_checks();         ///< causality; steps and blocks from a state
std::vector<PropertyCheck> size_checks();          ///< chunk borders, odd widths, unequal lengths
std::vector<PropertyCheck> padding_checks();       ///< masks
std::vector<PropertyCheck> claim_checks();         ///< what the entry claims of itself
std::vector<PropertyCheck> adversarial_checks();   ///< inputs that overflow naive forms
std::vector<PropertyCheck> independence_checks();  ///< batch, heads, repetition
std::vector<PropertyCheck> layer_checks();  ///< what comes before the projections (order.cpp)

}  // namespace attnbench::conformance
