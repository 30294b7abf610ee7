#include "harness/suite/sizes.hpp"

#include <vector>

#include "harness/suite/expression.hpp"
#include "core/text/spelling.hpp"

namespace attnbench::suite {

std::int64_t Sizes::evaluated(const std::string& expression) {
  return evaluate(expression, [this](const std::string& name) { return value(name); });
}

std::int64_t Sizes::said(const std::string& name) {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    std::vector<std::string> known;
    for (const auto& [key, json] : values_) {
      if (json.is_number_integer() || json.is_string()) known.push_back(key);
    }
    throw ExpressionError("there is no size \"" + name + "\" here; " + suggestion(name, known));
  }
  if (found->second.is_number_integer()) return found->second.get<std::int64_t>();
  if (!found->second.is_string()) throw ExpressionError("\"" + name + "\" is no size");
  if (!open_.insert(name).second) {
    throw ExpressionError("the size \"" + name + "\" depends on itself");
  }
  try {
    const std::int64_t size = evaluated(found->second.get<std::string>());
    open_.erase(name);
    return size;
  } catch (...) {
    open_.erase(name);
    throw;
  }
}

std::int64_t Sizes::value(const std::string& name) {
  constexpr std::int64_t default_head_dim = 64;
  const std::int64_t size = said(name);
  if (size != 0) return size;
  if (name == "head_dim" && has("width") && has("heads")) {
    const std::int64_t width = said("width");
    return width == 0 ? default_head_dim : evaluated("width/heads");
  }
  if (name == "width" && has("head_dim") && has("heads")) return evaluated("heads*head_dim");
  if (name == "value_dim" && has("head_dim")) return value("head_dim");
  if (name == "kv_heads" && has("heads")) return value("heads");
  if (name == "key_length" && has("length")) return value("length");
  return size;
}

}  // namespace attnbench::suite
