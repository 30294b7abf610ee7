// Mutants: implementations with one fault each, to prove that each property of the conformance kit
// can fail. Each wraps an implementation that is in order.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "attention/mechanism.hpp"

namespace attnbench::test {

struct Mutant {
  std::string name;      ///< the fault
  std::string property;  ///< the one made for it
  std::string mechanism;
  std::string implementation;
  Pattern pattern;
  Dtype dtype;
  std::function<Implementation(const Implementation&)> broken;
};

std::vector<Mutant> mutants();

}  // namespace attnbench::test
