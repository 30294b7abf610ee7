// What a group of properties hands to the kit: one file per group, one function per property.
#pragma once

#include <vector>

#include "attention/conformance/subject.hpp"

namespace attnbench::conformance {

struct Check {
  Property property;
  /// Tells the judge every trial it makes or leaves out.
  void (*run)(const Subject&, Judge&);
};

std::vector<Check> value_checks();         ///< against the definition and the composite form
std::vector<Check> order_checks();         ///< causality, and the step against the whole
std::vector<Check> size_checks();          ///< chunk borders, odd widths, unequal lengths
std::vector<Check> padding_checks();       ///< masks
std::vector<Check> claim_checks();         ///< what the entry claims of itself
std::vector<Check> adversarial_checks();   ///< inputs that overflow careless forms
std::vector<Check> independence_checks();  ///< batch, heads, repetition
std::vector<Check> layer_checks();         ///< what comes before the projections

}  // namespace attnbench::conformance
