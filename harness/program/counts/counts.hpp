// Counts that are the same on a busy machine: instructions of kernels, by valgrind, and the
// workspace that plans predict. A file in the tree holds them, a line each, so that its diff shows
// what changed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_object.hpp"

namespace attnbench::counts {

constexpr int counts_version = 1;
/// Instructions of one call repeat within this share from run to run.
constexpr double instructions_repeat_within = 0.001;

struct Counts {
  int version = counts_version;
  std::string program;          ///< whose calls are counted
  std::string compiler;         ///< "GNU 12.2.0"
  std::string flags;            ///< of the whole build
  std::string instruction_set;  ///< that valgrind shows to programs: others were not counted
  std::map<std::string, std::int64_t> instructions;     ///< by kernel and length
  std::map<std::string, std::int64_t> workspace_bytes;  ///< predicted, by cell
};
ATTNBENCH_JSON(Counts);

/// Throws UsageFailure naming the file: not JSON, cut short, a key twice, another version.
Counts read_counts(const std::filesystem::path& file);
/// The counts as the file has them, sorted, one a line.
std::string counts_text(const Counts& counts);

/// Why instructions of two builds do not compare; empty where they do.
std::string not_comparable(const Counts& stored, const Counts& now);

struct CountChange {
  enum class Kind { more, fewer, added, gone };
  Kind kind = Kind::more;
  std::string name;
  std::int64_t before = 0;
  std::int64_t after = 0;

  /// Whether the change is a reason to fail: only `fewer` is not.
  bool fails() const { return kind != Kind::fewer; }
};
/// What differs by more than the share `tolerance`.
std::vector<CountChange> findings_of(const std::map<std::string, std::int64_t>& stored,
                                     const std::map<std::string, std::int64_t>& now,
                                     double tolerance);
/// The finding in words: "softmax.float32.forward.512: 1000 to 1080 instructions (+8.00 %)".
std::string finding_text(const CountChange& finding, const std::string& unit);

/// The number of callgrind's line "Collected : 12345"; throws EnvironmentFailure where there is
/// none.
std::int64_t collected_from(std::string_view output);

/// Counts the calls of `program` (attnbench-counts) under valgrind: instructions and the
/// instruction set. Throws EnvironmentFailure where either is not here.
Counts count_instructions(const std::filesystem::path& program);

}  // namespace attnbench::counts
