// Correctness of one mix at its timed size: sampled rows and their gradients against the definition
// in double, beside what a naive run in the same dtype achieves.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tasks/reference_rows.hpp"
#include "tasks/task.hpp"

namespace attnbench::tasks {

/// One mix to be checked. All references must outlive the check.
struct MixCase {
  const Entry& entry;
  const Implementation& implementation;
  const reference::Reference& reference;
  Mechanism& mechanism;
  const Inputs& inputs;
  std::uint64_t seed = 0;

  /// The mechanism's, in the dtype of the inputs, which may be narrower than its parameters.
  Problem problem() const;
};

/// Rows of an output as somebody computed them, held against the definition on `mix.inputs`:
/// {verdict, reason?, rows, error, max_error, tolerance, naive_error?, rounding_error, reference}.
/// error is the relative root mean square, max_error the greatest difference over the root mean
/// square. The tolerance is that of attention/conformance/tolerance.hpp; where inputs are such that the dtype
/// can do no better it follows naive_error, that of `naive` rows, or, where there are none,
/// rounding_error: how far the definition moves when its inputs are rounded once more.
Json check_rows(const MixCase& mix, const Problem& problem, const Rows& rows,
                const std::vector<double>& got, const std::vector<double>& naive = {});

/// check_rows of the mix itself, on at least 32 rows unless there are fewer. The naive run is that
/// of the composite form, where it is not itself the one checked, and fits.
///
/// Besides, the output must be of the shape, dtype and device that were asked for and finite
/// throughout, must stay as it was when the call returned, and what the call read must be as it was
/// before. Where there is a naive run, the whole output is held against its: rows that differ are
/// held against the definition, each for itself.
Json check_values(const MixCase& mix);

/// The output [B, H, T, Dv] of a call that is over, on inputs as they were for that call: finite
/// throughout, rows `first` and sampled ones right. Takes as many rows, 8 to 4096, as the
/// definition answers in `seconds`. Asks for the naive run, and how far rounding moves the
/// definition, only where an error is above the plain bar. {verdict, reason?, rows, error,
/// tolerance}.
Json check_output(const MixCase& mix, const Problem& problem, const at::Tensor& output,
                  const Rows& first, double seconds);

/// The same of rows that somebody has taken from outputs.
Json check_taken_rows(const MixCase& mix, const Problem& problem, const Rows& rows,
                      const std::vector<double>& got);

/// {verdict: wrong, reason, rows: 0}.
Json found_wrong(const std::string& reason);

/// Of two checks of one cell the one that speaks for both: the wrong one, or the one nearer to it.
Json worse_of(Json a, Json b);

/// {verdict, reason?, error, tolerance, rows, roles: {ROLE: error}, naive_error?, exact_error?}.
/// For each role the derivative of a random function of sampled output rows along a random
/// direction, against the central difference of the definition, relative to the gradient's norm;
/// `error` is the root mean square over roles. What the passes read must be as it was before them.
///
/// A gradient may be small beside what cancels in it: that of queries over slots which are nearly
/// equal, as they are before training. So where `error` is above the bar, whole gradients are held
/// against those of the composite form in double, which must follow the definition itself
/// (`exact_error`). Then `error` is that of the worst role, and its bar follows `naive_error`, that
/// of the composite form in the same dtype, or, where that is the one checked, of another form.
Json check_gradient(const MixCase& mix, std::int64_t rows);

/// The verdict of values and, where there is one, of the gradient, in one section.
Json check_mix(const MixCase& mix, bool with_gradient);

}  // namespace attnbench::tasks
