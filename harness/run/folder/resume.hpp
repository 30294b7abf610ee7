// Keeping: which records of an earlier start, or of another run, still hold, and why others do not.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "harness/run/folder/journal.hpp"

namespace attnbench::run {

/// What must be the same for a number to hold: {binary, machine, threads, seed, measure}, and
/// {devices: {WORD: card}} of those that cells name, where they have cards, and {blas_core} where
/// it is not OpenBLAS's own choice.
struct Identity {
  std::string binary;   ///< fingerprint of worker, its library and the plugins
  std::string machine;  ///< host and processor
  int threads = 0;
  std::uint64_t seed = 0;
  Json measure;  ///< the sampling rule; rounds and limits do not belong to it
};
Json to_json(const Identity& identity);

struct Kept {
  std::map<std::string, std::vector<Json>> rounds;  ///< by cell id
  std::map<std::string, std::string> repeated;      ///< why a cell's records were not taken
};

/// Of `journal`, the records of cells in `ids` that hold under `identity`. Cells that ended with a
/// status in `retry` are to be repeated, disturbed ones whole: their rounds ended well, each.
Kept keep(const JournalContents& journal, const std::vector<std::string>& ids, const Json& identity,
          const std::set<std::string>& retry);

}  // namespace attnbench::run
