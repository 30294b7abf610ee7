// What a shared object shows and needs, as readelf tells it.
#pragma once

#include <string>
#include <vector>

namespace attnbench::test {

struct Symbol {
  std::string name;     ///< as in the source, with its arguments
  std::string version;  ///< of attention/exported.map; another library's, or empty
  bool defined = false;
};

/// Throws std::runtime_error where readelf or c++filt fails.
std::vector<Symbol> symbols_of(const std::string& file);

}  // namespace attnbench::test
