// Sizes: what the integers of a cell are once expressions and derived defaults are worked out.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "harness/suite/catalogue.hpp"

namespace attnbench::suite {

class Sizes {
 public:
  /// Adds `name` with its value: an integer or an expression; what is neither is no size.
  void add(const std::string& name, const Json& value) { values_[name] = value; }
  bool has(const std::string& name) const { return values_.count(name) != 0; }

  /// As said: an expression evaluated, a 0 that stands for "derived" left alone.
  /// Throws ExpressionError.
  std::int64_t said(const std::string& name);
  /// With 0 replaced by what it stands for: width = heads * head_dim, head_dim = width / heads or
  /// 64, value_dim = head_dim, kv_heads = heads, key_length = length. Throws ExpressionError.
  std::int64_t value(const std::string& name);
  /// An expression of these sizes.
  std::int64_t evaluated(const std::string& expression);

 private:
  std::map<std::string, Json> values_;
  std::set<std::string> open_;  ///< being evaluated: meeting one again is a circle
};

}  // namespace attnbench::suite
