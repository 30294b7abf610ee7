// Parts: where the time of a run's rounds went (`run --timings`), from its journal.
#pragma once

#include <optional>
#include <string>

#include "harness/program/run/folder/journal.hpp"

namespace attnbench::run {

/// A table: for each part of a round its seconds, their share of all rounds', median and greatest,
/// the largest first; then what the run spent outside of rounds, where its time is known. Empty
/// where no record says what its parts took.
///
/// parts: prepare (weights and inputs), check (of the first round), calibration, warm up, samples,
/// work (the pass that counts memory and the check of the last sample; a training as a whole);
/// start and end is what the worker saw of the child beyond these.
std::string parts_table(const Records& rounds, std::optional<double> run_seconds);

}  // namespace attnbench::run
