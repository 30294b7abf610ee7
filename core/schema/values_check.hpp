// Values by key: what readers of a result take for granted of a key wherever it stands.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace attnbench::result {

/// A value of another kind than its key says.
struct Misfit {
  std::string pointer;   ///< below the value that was looked at
  std::string expected;  ///< "a number"
};

/// The first one in `value`. What tasks, mechanisms and other programs say in words of their own
/// (options, most of settings, foreign, detail, check) is left alone.
std::optional<Misfit> find_misfit(const nlohmann::json& value);

}  // namespace attnbench::result
