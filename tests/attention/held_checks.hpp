// What the tests of every mechanism ask in the same words: gradients, steps, padding.
#pragma once

#include <string>
#include <vector>

#include "tests/attention/held_to_reference.hpp"

namespace attnbench::test {

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
