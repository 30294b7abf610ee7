// Resume: which records of an earlier start, or of another run, still hold, and why others do not.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/program/run/folder/journal.hpp"

namespace attnbench::run {

/// The facts that must be the same for an earlier measurement to hold.
struct Identity {
  std::string binary;   ///< fingerprint of the worker, its library and the plugins
  std::string machine;  ///< host and processor
  int threads = 0;
  std::uint64_t seed = 0;
  Json measure;                          ///< the sampling rule, without rounds and limits
  std::map<std::string, Json> devices;   ///< cards of the devices that cells name, by word
  std::optional<std::string> blas_core;  ///< where it is not OpenBLAS's own choice

  bool operator==(const Identity&) const = default;
};
ATTNBENCH_JSON(Identity);

/// The identity as a journal has it; that of no start where it cannot be read.
Identity identity_from(const Json& json);

struct Resumed {
  Records records;                              ///< records that hold
  std::map<std::string, std::string> repeated;  ///< why a cell's records are not used
  std::vector<std::string> skipped;             ///< lines of the journal, as JournalContents
};

/// The records of cells in `ids` that hold under `identity`. Cells that ended with a status of
/// `retry` are measured again; of disturbed ones all rounds, each of which ended with ok.
Resumed resumed_records(const JournalContents& journal, const std::vector<std::string>& ids,
                        const Identity& identity, const std::set<std::string>& retry);

}  // namespace attnbench::run
