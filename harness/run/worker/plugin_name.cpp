#include "harness/run/worker/plugin_name.hpp"

#include <algorithm>

namespace attnbench::run {

PluginName::PluginName(const std::string& text) : path(text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return;
  const bool word = std::all_of(
      text.begin(), text.begin() + static_cast<std::ptrdiff_t>(equals),
      [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
  if (!word) return;  // a path may hold a = as well
  as = text.substr(0, equals);
  path = text.substr(equals + 1);
}

}  // namespace attnbench::run
