// Variables of the environment, for as long as a test needs them.
#pragma once

#include <stdlib.h>

#include <optional>
#include <string>
#include <utility>

namespace attnbench::test {

/// Gives a variable another value, or none, until it goes: what was there before is there again.
class Variable {
 public:
  Variable(std::string name, const std::optional<std::string>& value) : name_(std::move(name)) {
    if (const char* found = getenv(name_.c_str())) before_ = found;
    set(value);
  }
  ~Variable() { set(before_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

  void set(const std::optional<std::string>& value) const {
    if (value) {
      setenv(name_.c_str(), value->c_str(), 1);
    } else {
      unsetenv(name_.c_str());
    }
  }

 private:
  std::string name_;
  std::optional<std::string> before_;
};

}  // namespace attnbench::test
