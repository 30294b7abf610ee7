// A cell of a result as tests make it up: measured without an error, with one median.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace attnbench::test {

/// A cell of the task kernel that took `seconds` in `pass`. It has no rounds yet.
inline nlohmann::json timed_cell(const std::string& id, const std::string& label, double seconds,
                                 const std::string& pass = "forward") {
  return {{"id", id},
          {"label", label},
          {"task", "kernel"},
          {"task_label", "kernel"},
          {"mechanism", label},
          {"options", nlohmann::json::object()},
          {"settings", {{"length", 1024}}},
          {"status", "ok"},
          {"primary", pass},
          {"timing",
           {{pass,
             {{"median_seconds", seconds},
              {"low_seconds", seconds},
              {"high_seconds", seconds},
              {"rounds", nlohmann::json::array()}}}}}};
}

}  // namespace attnbench::test
