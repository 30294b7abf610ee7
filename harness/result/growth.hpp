// Growth: how time or memory grows with a size, as an exponent, and whether that is what was
// claimed. For `check` and for the slopes that reports draw.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace attnbench::result {

/// What was measured at one size; both greater than zero, but for `value`, which may be zero.
struct GrowthPoint {
  double size = 0;
  double value = 0;
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

/// How a claim is meant: as the exponent itself, or as the most that it may be. In T an exponent is to
/// be met: a sequence can be made long enough. In latents and head_dim, whose sizes are those that
/// people use, what does not depend on them (a call of LibTorch, an exponential) weighs as much as
/// what does, so that only faster growth than claimed can refute.
enum class GrowthClaim { exponent, bound };

struct GrowthFit {
  double claimed = 0;
  std::optional<double> measured;  ///< exponent over all points; nothing where undecided
  double tolerance = 0;            ///< ± on the exponent
  GrowthVerdict verdict = GrowthVerdict::undecided;
  std::string reason;  ///< one sentence where it differs or is undecided
  std::vector<LocalSlope> local;
};

/// How far a measured exponent may be from the claimed one: 0.15 up to linear, 0.2 from quadratic
/// on, where caches that overflow on the way add more.
double growth_tolerance(double claimed);

/// Between neighbours, in order of size; the value of a size that comes more than once is the
/// median. Pairs with a zero are left out.
std::vector<LocalSlope> local_slopes(const std::vector<GrowthPoint>& points);

/// Least squares of ln value over ln size. Zero throughout is the exponent 0. Undecided with fewer
/// than three sizes, with sizes that span less than a factor of 4, or with some zeros.
GrowthFit fit_growth(const std::vector<GrowthPoint>& points, double claimed,
                     GrowthClaim meant = GrowthClaim::exponent);

/// The points whose value reaches `floor`: below it fixed costs hide the growth.
std::vector<GrowthPoint> at_least(const std::vector<GrowthPoint>& points, double floor);

/// "1.02", with a sign only below zero.
std::string exponent_text(double exponent);

}  // namespace attnbench::result
