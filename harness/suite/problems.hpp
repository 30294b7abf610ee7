// Problems: everything wrong with a suite, gathered so that one run of `validate` shows it all.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace attnbench::suite {

class Problems {
 public:
  /// `place` as Document::place writes it; `what` one sentence. The same problem twice counts once.
  void add(const std::string& place, const std::string& what);
  bool empty() const { return messages_.empty(); }
  /// Throws UsageFailure with at most 20 of them, one per line, and 1900 bytes, if there are any.
  void throw_if_any() const;

 private:
  static constexpr std::size_t most_shown = 20;
  static constexpr std::size_t most_bytes = 1900;
  std::vector<std::string> messages_;
  std::set<std::string> seen_;
};

}  // namespace attnbench::suite
