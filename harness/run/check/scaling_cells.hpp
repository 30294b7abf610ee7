// The cells that growth is measured by: one implementation at sizes along its axes.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "harness/run/check/checking.hpp"

namespace attnbench::run {

struct GrowthPlan;

/// What one child measured.
struct Measured {
  double seconds = 0;
  bool disturbed = false;  ///< other programs had the CPU: no time to judge by
  /// Of round 0 alone: bytes by what they are ("workspace", "peak", "state"), where known.
  std::map<std::string, double> bytes;
};

/// What a cell of a growth axis is; 0 latents = the mechanism's default.
struct GrowthSize {
  std::int64_t length = 0;
  std::int64_t latents = 0;
  std::int64_t head_dim = 64;
};

/// Cells of one implementation, and what the worker says of them. Refers to what it was made of.
class GrowthCells {
 public:
  GrowthCells(const Ask& ask, const CheckRow& row, const GrowthPlan& plan)
      : ask_(ask), row_(row), plan_(plan) {}

  /// `options` are said in every cell from here on: defaults that follow a size stay as they are.
  void hold(Json options) { held_ = std::move(options); }
  /// The worker's forecast, or null.
  Json forecast(const GrowthSize& size) const;
  /// Whether it is supported and can be done in the memory there is.
  bool fits(const GrowthSize& size) const;
  /// Round 0 also meters memory. Nothing where the cell does not end well; `why` then says how.
  std::optional<Measured> measure(const GrowthSize& size, int round, std::string& why) const;

 private:
  Json cell(const GrowthSize& size) const;
  Json request(const GrowthSize& size, int round) const;

  const Ask& ask_;
  const CheckRow& row_;
  const GrowthPlan& plan_;
  Json held_ = Json::object();
};

}  // namespace attnbench::run
