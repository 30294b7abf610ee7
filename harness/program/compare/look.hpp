// A look: the verdict attempted on one timing of a pair from the rounds so far, and the rounds that
// it still needs.
#pragma once

#include <string>
#include <vector>

#include "core/result/record.hpp"
#include "harness/program/compare/compare.hpp"

namespace attnbench::compare {

/// The records of a match; null where a side has none.
struct Trio {
  std::string name;
  const result::CellRecord* base = nullptr;
  const result::CellRecord* changed = nullptr;
  const result::CellRecord* control = nullptr;
};

/// What was timed on both sides; empty where nothing was.
std::vector<std::string> common_timings(const Trio& trio);

/// The pair of a timing that both sides have, by the rules of paired.hpp.
Pair timed(const Trio& trio, const std::string& what, const Turns& turns);

/// The pair of a trio without such a timing: how each side ended.
Pair untimed(const Trio& trio);

}  // namespace attnbench::compare
