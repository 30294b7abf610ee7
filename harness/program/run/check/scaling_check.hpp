// The scaling check: the growth of an implementation's time and workspace, measured by cells of the
// kernel task in fresh children and compared with what it claims.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/measure/ceilings_cpu.hpp"
#include "harness/program/run/check/checking.hpp"
#include "reports/tables/growth.hpp"

namespace attnbench::run {

/// How and how much is measured.
struct ScalingPlan {
  double least_seconds = 0.005;  ///< a shorter cell shows its fixed costs, not its growth
  int sizes = 3;                 ///< each twice the one before
  int children = 3;              ///< fresh processes for each size
  int max_moves = 2;             ///< times that all sizes are doubled to see a claimed exponent
  double sampling_seconds = 0.4;
  double cell_timeout_seconds = 60;
  double memory_limit_bytes = 0;
  std::vector<Rung> ladder;  ///< of the device's memory; empty = not known
  std::int64_t least_length = 256;
  std::int64_t max_length = 1 << 18;
};

/// One claim of one implementation.
struct ScalingRow {
  std::string mechanism;
  std::string implementation;
  std::string pattern;
  std::string quantity;  ///< "time in length", "workspace in length", "time in latents", …
  std::vector<reports::GrowthPoint> points;  ///< every child's
  reports::GrowthFit fit;
};

/// A sentence for people about what is being done.
using Say = std::function<void(const std::string&)>;

/// Claims in length, in head_dim (all options held as they are at 64) and, for a mechanism with
/// `latents_per_head` whose growth in latents is claimed, in latents per head. `row.dtype` is the
/// cells'. Empty where the implementation does not support the problem.
///
/// The least of the children's times at each size is judged, since disturbances only add. Children
/// that other programs disturbed do not count; a size without others leaves the claim undecided. An
/// exponent in length that is smaller than claimed is looked for at twice the sizes, as often as
/// `max_moves` and memory allow. A claim that is missed is measured once more and judged by both
/// series: it is below where local slopes rise with the size and the last one agrees, and undecided
/// where the ladder explains the difference by the memory touched (workspace, all tensors, state).
std::vector<ScalingRow> measure_scaling(const Ask& ask, const CheckRow& row, bool has_latents,
                                        const ScalingPlan& plan, const Say& say);

/// Writes a row as {mechanism, implementation, pattern, quantity, claimed, measured?, tolerance,
/// verdict, reason?, points: [{size, value}], local: [{from, to, slope}]}.
void to_json(Json& json, const ScalingRow& row);

}  // namespace attnbench::run
