// The report: results in; figures, tables and one page out.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/result/document.hpp"
#include "reports/claims/claim.hpp"
#include "reports/figures/verdicts.hpp"
#include "reports/tables/layout.hpp"
#include "reports/verdict/verdict.hpp"

namespace attnbench::reports {

struct ReportOptions {
  std::filesystem::path out;  ///< empty = the folder of the only result, else ./report
  bool render = true;
  bool force = false;  ///< replace files of others, too
  std::vector<std::string> formats{"svg", "png"};
  std::vector<claims::PaperClaim> claims = {};  ///< shown on the page of a result of their suite
  /// What a page of two results says of the cells that both have; their names are filled in.
  std::function<Verdicts(const result::Result& base, const result::Result& changed)> compared = {};
  /// By the paper's figure that a suite names: "latte_v1.figure_2".
  std::map<std::string, PaperAxes> axes = {};
};

struct Report {
  std::filesystem::path page;
  std::vector<std::filesystem::path> figures;  ///< specifications
  std::vector<std::string> messages;  ///< for the user: what could not be done, and how to get it
  std::vector<verdict::Verdict> verdicts;  ///< one per result
  std::optional<Verdicts> compared;        ///< of two results
};

/// Reads each of `results` (a run's folder or a result.json) and writes what they say, several also
/// side by side where they share cells: figures/*.vl.json and their
/// pictures, tables/*.{md,tex,csv} (and tables/*.parquet where Python has pyarrow) and index.html,
/// instead of what an earlier report wrote there. Throws UsageFailure for a result that cannot be
/// read, and where a file that no report wrote is in the way unless `force`; EnvironmentFailure for
/// a disk that refuses. A missing renderer is only a message.
Report write_report(const std::vector<std::filesystem::path>& results,
                    const ReportOptions& options);

/// The verdict of each result, as of write_report, which nothing is written of. Throws UsageFailure
/// as that does.
std::vector<verdict::Verdict> verdicts_of(const std::vector<std::filesystem::path>& results);

/// The tidy tables of results as CSV, one below the other; those after the first without a header
/// where it is the same. Throws UsageFailure as write_report does.
std::string csv_of(const std::vector<std::filesystem::path>& results);

}  // namespace attnbench::reports
