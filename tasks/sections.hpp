// What work says for the record of its cell: the section of a check, and the sections that a run
// returns besides timing. Written as JSON where a task returns them to the worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/result/record.hpp"

namespace attnbench::tasks {

/// What a check found. Numbers that were not measured, or are not finite, are absent.
struct CheckSection {
  std::string verdict = "ok";       ///< ok, wrong or unchecked; empty for a part without a check
  std::string reason;               ///< why it is wrong or cannot be checked
  std::string skipped;              ///< why nothing was compared
  std::optional<std::size_t> rows;  ///< compared
  std::optional<std::size_t> rows_not_finite;  ///< left out
  std::optional<double> error;
  std::optional<double> max_error;
  std::optional<double> tolerance;
  std::optional<double> naive_error;
  std::optional<double> exact_error;
  std::optional<double> rounding_error;
  std::optional<std::map<std::string, double>> roles;  ///< errors of gradients
  std::string reference;
  std::string dtype;
  std::string after_call;              ///< what went on after a call had returned
  std::optional<std::size_t> mixes;    ///< of the checked module
  std::optional<std::int64_t> length;  ///< at which a search was checked
  std::optional<std::size_t> lengths;  ///< at which timed calls were checked
  /// Checks that are a part of this one, written beside its numbers: gradient, prefill, exact.
  std::map<std::string, CheckSection> parts;

  bool ok() const { return verdict != "wrong" && verdict != "unchecked"; }
  /// Keeps the rest of the section.
  void mark_wrong(const std::string& why);
  /// Marks the section as unchecked: no tolerance is so wide, and what was computed is neither
  /// right nor wrong.
  void mark_unchecked(const std::string& why);
  /// Adds a part; the whole has the graver verdict, for `prefix` and the part's reason.
  void add_part(const std::string& name, CheckSection part, const std::string& prefix);
};
void to_json(nlohmann::json& json, const CheckSection& section);

/// The section of a check that is wrong before any row was compared.
CheckSection found_wrong(const std::string& reason);
/// The section of a check that is ok, since nothing could be compared.
CheckSection check_skipped(const std::string& reason);
/// The number, unless it is infinite or NaN.
std::optional<double> if_finite(double number);

/// The worse of two checks of one cell: the one with the graver verdict, or the one with the
/// greater share of its tolerance (`error` over `tolerance`; the first where both are equal).
CheckSection worse_of(CheckSection a, CheckSection b);

/// What Work::run returns.
struct RunSections {
  result::Chosen chosen;
  Values memory;
  Values metrics;
  std::optional<result::CrossoverRound> crossover;
  std::optional<result::Training> training;
  std::optional<CheckSection> timed_check;
};
void to_json(nlohmann::json& json, const RunSections& sections);

}  // namespace attnbench::tasks
