// The present condition of a card, as its driver reports it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/json_object.hpp"

namespace attnbench::measure {

/// A process that computes on the card.
struct CardProcess {
  std::int64_t pid = 0;
  std::optional<std::uint64_t> memory_bytes;
};

/// What is not known is absent.
struct DeviceCondition {
  std::string refusal;  ///< why nothing is known; empty where something is
  std::string driver;
  std::optional<std::uint64_t> memory_used_bytes;
  std::optional<double> clock_hz;
  std::optional<double> clock_greatest_hz;
  std::optional<double> clock_memory_hz;
  std::optional<double> temperature_celsius;
  std::optional<double> power_watts;
  std::optional<double> power_limit_watts;
  std::optional<double> power_limit_usual_watts;
  std::optional<bool> persistence;
  std::optional<bool> ecc;
  std::optional<bool> ecc_pending;  ///< after the next reset
  std::optional<bool> mig;
  std::optional<std::vector<std::string>> slowed_by;  ///< what holds the clock down
  std::optional<std::vector<CardProcess>> processes;  ///< without this one
  std::optional<double> busy_share;
};

ATTNBENCH_JSON(CardProcess);
ATTNBENCH_JSON(DeviceCondition);

}  // namespace attnbench::measure
