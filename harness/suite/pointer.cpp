#include "harness/suite/pointer.hpp"

namespace attnbench::suite {

std::string child_pointer(const std::string& parent, const std::string& key) {
  std::string pointer = parent + "/";
  for (const char c : key) {
    if (c == '~') {
      pointer += "~0";
    } else if (c == '/') {
      pointer += "~1";
    } else {
      pointer += c;
    }
  }
  return pointer;
}

std::vector<std::string> pointer_keys(const std::string& pointer) {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < pointer.size(); ++i) {
    if (pointer[i] == '/') {
      keys.emplace_back();
    } else if (pointer[i] == '~' && i + 1 < pointer.size()) {
      keys.back() += pointer[++i] == '1' ? '/' : '~';
    } else if (!keys.empty()) {
      keys.back() += pointer[i];
    }
  }
  return keys;
}

}  // namespace attnbench::suite
