// Merge: the runs of a suite's shards as one result.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/result/document.hpp"
#include "harness/program/run/folder/journal.hpp"

namespace attnbench::run {

/// A run that is to be merged.
struct Share {
  std::string source;                    ///< as the user named it
  std::optional<result::Result> result;  ///< nothing where it was killed before it wrote one
  std::optional<JournalHeader> header;   ///< nothing where it has no journal that can be read
};

/// Reads a share from `path`, a run's folder or its result.json. Throws UsageFailure where it is
/// neither.
Share read_share(const std::filesystem::path& path);

struct MergeChoices {
  /// Whether to merge runs of different suites, binaries, seeds or profiles; the result says so.
  bool force = false;
  /// Whether hosts with one CPU model, number of threads and kind of cards count as one machine.
  bool alike = false;
  std::string command;  ///< as typed
  /// Whether a single shard can be merged, too: where a submission says which shards there are.
  bool lone = false;
  Json submission;  ///< kept in the result; null where there was none
};

struct Merged {
  result::Result result;
  std::vector<std::string> missing;  ///< cells that no run measured, and shards that were not named
  std::vector<std::string> forced;   ///< what differs between the runs
  std::vector<std::string> unfinished;  ///< runs without a result: how to resume each
};

/// Merges the shares into one result of all cells, in the suite's order. A cell that several runs
/// have counts once where its records are equal, or where all runs but one ended before it. Cells
/// that a journal lists and no run measured are `skipped`. Machines are kept apart, see
/// core/result/machines.hpp. Throws UsageFailure where the runs are not of one suite, binary, seed
/// and profile (naming both values), where two runs measured one cell, and for fewer than two runs.
Merged merge(std::vector<Share> shares, const MergeChoices& choices);

}  // namespace attnbench::run
