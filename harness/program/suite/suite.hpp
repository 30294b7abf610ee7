// Suites: from a JSON file, or from the command line alone, to the list of cells to measure.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/catalogue.hpp"
#include "core/cell.hpp"
#include "harness/program/suite/document.hpp"

namespace attnbench::suite {

/// What the command line adds to a suite.
struct Choices {
  std::string profile;
  std::vector<std::string> set;   ///< "axis=value", "axis=a,b,c", "length=256..8192" (doubling)
  std::vector<std::string> only;  ///< regular expressions over a cell's description; any may match
  std::vector<std::string> skip;
  std::vector<std::string> with;  ///< mechanisms beside the suite's own, for all tasks that do not
                                  ///< name theirs
  std::string device;             ///< empty = the suite's, else cpu
  std::string shape;              ///< in place of the suite's; what is set besides wins over it
};

/// A suite expanded into cells.
struct Expanded {
  Json header;              ///< result.json's attnbench.suite
  std::vector<Cell> cells;  ///< of unique ids, in the suite's order
  Json measure;             ///< {rounds, relative_interval, min_samples, max_samples, max_seconds,
                            ///< cell_timeout_seconds}
  Json gate;                ///< thresholds of a regression suite, or null
  /// For the user: which shapes are used, and what of them is not taken.
  std::vector<std::string> notes = {};

  /// The suite's name; "run" where it has none.
  std::string name() const;
  /// The rounds of the measure block; `usual` where there is no block or no such value.
  int rounds(int usual) const;
  /// The further rounds that a disturbed cell may get beside them.
  int further_rounds() const;
  double cell_timeout_seconds(double usual) const;
};

/// Reads a suite file and checks it against the schema. Throws UsageFailure with file, line,
/// pointer, expectation and the nearest valid word of each problem (at most 20).
Document load(const std::filesystem::path& file);

/// A suite made of mechanism names and `--set`s, as `attnbench run latte flash --length 256..8192`.
Document from_command_line(const std::vector<std::string>& mechanisms);

/// A suite of two mechanisms that are measured in turns, labelled by their names, and of the first
/// again, labelled `control`; with more and shorter rounds.
Document pair_from_command_line(const std::string& base, const std::string& changed,
                                const std::string& control);

/// Applies profile, presets, shapes, axes, --set and filters. Throws UsageFailure as `load` does,
/// also where filters leave no cell. A --set may also name `implementation`, `task`, or a value of
/// the measure block, such as rounds.
Expanded expand(const Document& document, const Catalogue& catalogue, const Choices& choices);

/// One line that describes a cell, which --only and --skip search:
/// "kernel  latte, scan  length=1024 pass=forward  [3f9c…]". It shows the settings and
/// options in the cell's `varies`, in the suite's order.
std::string describe(const Cell& cell);

}  // namespace attnbench::suite
