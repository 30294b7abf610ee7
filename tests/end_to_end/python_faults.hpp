// Files in Python that are wrong or misbehave, and what is said of them.
#pragma once

#include <utility>

#include "tests/end_to_end/python_bench.hpp"

namespace attnbench::test {

struct Fault {
  std::string name;    ///< of the object in bad.py, or FILE.py:NAME
  std::string status;  ///< "measured" for one that does no harm
  std::string reason;  ///< an expression that the reason matches
};

/// Runs a cell of each and checks what became of it; the cells by label, and the page.
std::pair<std::map<std::string, Json>, std::string> held_to(const std::vector<Fault>& expected);

}  // namespace attnbench::test
