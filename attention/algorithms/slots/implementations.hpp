// The implementations of mechanisms with a slot memory.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "attention/algorithms/slots/slots.hpp"
#include "attention/mechanism.hpp"

namespace attnbench::slots {

/// The parts that a mechanism provides.
struct SlotMechanism {
  std::string name;
  std::function<Form(const Mechanism&)> form;                 ///< of the causal pattern
  std::function<Call(const Mechanism&, const Inputs&)> call;  ///< without `hidden`
  std::function<Sizes(const Options&, const Problem&)> sizes;
  /// The other patterns, and their cost, in tensor operations.
  std::function<Mixed(const Mechanism&, const Inputs&)> whole;
  std::function<Cost(const Options&, const Problem&)> whole_cost;
  /// The other patterns, and their cost, by the tiled softmax.
  std::function<Mixed(const Mechanism&, const Inputs&)> whole_tiled;
  std::function<Cost(const Options&, const Problem&)> whole_tiled_cost;
};

/// The implementations composite, scan, chunked and fused.
std::vector<Implementation> implementations(const SlotMechanism& mechanism);

/// A state of the causal pattern: maximum (where omega = exp), normaliser and sum.
State empty_state(const Form& form, const std::vector<std::int64_t>& sum_sizes,
                  const at::TensorOptions& tensor);

}  // namespace attnbench::slots
