// Correctness of one mix at its timed size: sampled rows and their gradients against the definition
// in double, beside the error of a naive run in the same dtype.
#pragma once

#include "tasks/mix_case.hpp"
#include "tasks/output_checks.hpp"
#include "tasks/sections.hpp"

namespace attnbench::tasks {

/// Compares rows of an output with the definition on `mix.inputs`: {verdict, reason?, rows, error,
/// max_error, tolerance, naive_error?, rounding_error, reference}. error is the relative root mean
/// square, max_error the greatest difference over the root mean square. The tolerance is that of
/// core/tolerance.hpp. Where the inputs allow no better in the dtype, it follows
/// naive_error, that of the `naive` rows, or without them rounding_error: the change of the
/// definition when its inputs are rounded once more; beyond the dtype's widest tolerance the
/// verdict is `unchecked`.
CheckSection check_rows(const MixCase& mix, const Problem& problem, const Rows& rows,
                        const std::vector<double>& got, const std::vector<double>& naive = {});

/// Checks the mix itself on 8 to 32 rows, as many as the definition computes in a quarter of a
/// second. The naive run is the composite form, unless that is the one checked or it does not fit;
/// it and rounding_error are used only where an error is above the plain tolerance.
///
/// The output must have the expected shape, dtype and device, must be finite everywhere and must
/// not change after the call returned; the inputs must be unchanged. Where there is a naive run,
/// all rows of the output are compared with it, and those that differ with the definition, one by
/// one.
CheckSection check_values(const MixCase& mix);

/// Checks the output [B, H, T, Dv] of a finished call (T without the past), on its inputs: finite
/// everywhere, the rows `first` and sampled ones right. Takes as many rows, 4 to 4096, as the
/// definition computes in `seconds`. Uses the naive run and rounding_error only where an error is
/// above the plain tolerance. {verdict, reason?, rows, error, tolerance}.
CheckSection check_output(const MixCase& mix, const Problem& problem, const at::Tensor& output,
                          const Rows& first, double seconds);

/// Checks, as check_output does, rows already taken from outputs.
CheckSection check_taken_rows(const MixCase& mix, const Problem& problem, const Rows& rows,
                              const std::vector<double>& got);

/// Checks gradients: {verdict, reason?, error, tolerance, rows, roles?: {ROLE: error},
/// naive_error?, exact_error?}. The derivative of a random function of sampled output rows along a
/// random direction, against the central difference of the definition, relative to the gradient's
/// norm: first along one direction of all roles, in which their gradients have one size. Where that
/// is above the tolerance, or a gradient is zero, along one for each role; `error` is the root mean
/// square over these. The inputs of the passes must be unchanged.
///
/// A gradient may be small beside terms that cancel: that of queries over nearly equal slots, as
/// before training. So where `error` is above the tolerance, whole gradients are compared with
/// those of the composite form in double, which must agree with the definition (`exact_error`).
/// Then `error` is that of the worst role, and its tolerance follows `naive_error`, that of the
/// composite form in the same dtype or, where that is the one checked, of another form.
CheckSection check_gradient(const MixCase& mix, std::int64_t rows);

/// The verdict of values and, if asked for, of the gradient, in one section.
CheckSection check_mix(const MixCase& mix, bool with_gradient);

}  // namespace attnbench::tasks
