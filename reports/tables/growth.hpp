// Growth: how time or memory grows with a size, as an exponent, and whether that is what was
// claimed. The one rule for `check`, for tables and for the slopes that reports draw.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/memory_ladder.hpp"

namespace attnbench::reports {

/// What was measured at one size; both greater than zero, but for `value`, which may be zero.
struct GrowthPoint {
  double size = 0;
  double value = 0;
  double low = 0;  ///< bounds of the value; 0 where it has none but itself
  double high = 0;
};

/// The exponent between two neighbouring sizes.
struct LocalSlope {
  double from = 0;
  double to = 0;
  double slope = 0;
};

/// `below`: slower growth than an upper bound allows, which is a finding and no failure.
enum class GrowthVerdict { agrees, below, differs, undecided };
const char* to_string(GrowthVerdict verdict);

/// How a claim is meant: as the exponent itself, or as the most that it may be. In T an exponent is
/// to be met: a sequence can be made long enough. In latents and head_dim, whose sizes are those
/// that people use, what does not depend on them (a call of LibTorch, an exponential) weighs as
/// much as what does, so that only faster growth than claimed can refute.
enum class GrowthClaim { exponent, bound };

struct GrowthFit {
  double claimed = 0;
  std::optional<double> measured;  ///< exponent over all points; nothing with too few of them
  double low = 0;                  ///< the least and the greatest that the points' bounds allow
  double high = 0;
  double tolerance = 0;  ///< ± on the exponent
  GrowthVerdict verdict = GrowthVerdict::undecided;
  std::string reason;  ///< one sentence where it differs or is undecided
  std::vector<LocalSlope> local;
};

/// The fit by least squares of ln value over ln size, without a claim: undecided, with a reason
/// where there is no exponent. Zero throughout is the exponent 0. There is none with fewer than
/// three sizes, with sizes that span less than a factor of 4, or with some zeros.
GrowthFit fit_growth(const std::vector<GrowthPoint>& points);

/// The fit compared with a claim. It agrees where all of the exponent's interval is within the
/// tolerance and differs where all is outside (`below` for a bound that it stays under); across its
/// edge it is undecided.
GrowthFit fit_growth(const std::vector<GrowthPoint>& points, double claimed,
                     GrowthClaim meant = GrowthClaim::exponent);

/// Bytes that a cell touches by size, by what they are: "workspace", "peak", "state".
using Touched = std::map<std::string, std::vector<GrowthPoint>>;

/// What is touched and leaves a cache between the sizes makes time grow faster than work does, by
/// as much as the ladder says that touching it is slower: a fit that differs by no more is
/// undecided.
void excuse_caches(GrowthFit& fit, const std::vector<Rung>& ladder, const Touched& touched);

/// How far the sizes reach: as far as can be measured, or as far as the suite chose.
enum class Reach { all, chosen };

/// A smaller exponent than claimed that rises with the size does not refute the claim: terms of
/// lower order weigh, too. At the largest sizes that can be measured the last slope has to keep the
/// claim, and the verdict is `below`; at sizes that were chosen larger ones would tell, and it is
/// undecided.
void excuse_lower_orders(GrowthFit& fit, Reach reach);

/// The word for a claim: "held", "missed" or "cannot tell". A bound that is not reached is held.
const char* claim_word(const GrowthFit& fit, GrowthClaim meant);

/// The words for what was found: "the exponent is 1.02 (0.98 to 1.07)", of one that was measured.
std::string found_words(const GrowthFit& fit);

/// The exponent as text: "1.02", with a sign only below zero.
std::string exponent_text(double exponent);

}  // namespace attnbench::reports
