// The mechanisms that come with attnbench, made once a program.
#pragma once

#include "attention/registry.hpp"

namespace attnbench::test {

inline const Registry& registry() {
  static const Registry builtins = Registry::with_builtins();
  return builtins;
}

}  // namespace attnbench::test
