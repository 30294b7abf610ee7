// Trainings that classify whole examples: what each rule of selecting weights gives, and whether
// anything was learned at all.
#pragma once

#include <optional>

#include "reports/tables/selection.hpp"

namespace attnbench::reports {

/// An accuracy above that of the most frequent class by so much counts as learned.
constexpr double learned_margin = 0.02;
/// The validation accuracy of two classes that is taken for the end of chance.
constexpr double above_chance = 0.55;

/// Whether it classified whole examples.
bool classifies(const result::Training& training);

/// Whether its headline accuracy is above the share of the most frequent class by learned_margin.
bool learned(const result::CellRecord& cell);

/// The first step after which validation was above above_chance; nothing where it never was.
std::optional<std::int64_t> step_above_chance(const result::Training& training);

/// A row for each classification at its chosen learning rate, means over seeds: accuracy on the
/// test of the last weights, of those of the best validation and of the best test; the share of the
/// most frequent class; how many seeds learned anything; for two classes the median step of
/// step_above_chance. Without rows where nothing was classified.
Grid class_grid(const Panel& panel, const std::vector<Selection>& selections);

}  // namespace attnbench::reports
