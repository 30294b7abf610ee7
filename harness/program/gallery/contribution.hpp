// Results of many machines, as reports/machines/ keeps them: stripped, of no person or host, of a
// suite of the project as it is, and plausible.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/result/document.hpp"

namespace attnbench::gallery {

/// The licence of what is contributed, which stands in the file.
inline constexpr const char* contribution_licence = "Apache-2.0";

/// The result as it is contributed: as `stripped`, and without names of folders, other programs and
/// the runs that it was merged from. `suites` is the folder of the project's suites. Throws
/// UsageFailure where the result is not of a suite there, as it is now, or was measured with
/// settings of the command line.
result::Result contributed(const result::Result& whole, const std::filesystem::path& suites);

/// Throws a Failure that says why a result is none of `contributed`, has the wrong state or cells
/// for a comparison, or cannot be right, with the JSON pointer of what cannot. `names` are words
/// and folders that it may not hold: of the user, the host and the run; common folders of users
/// are looked for in any case. The program asks before it writes, the tests ask of each stored
/// file.
void expect_contribution(const result::Result& contributed, const std::vector<std::string>& names);

/// SUITE-CPUMODEL-THREADS.json, or SUITE-CARD-THREADS.json where a cell was timed on a card.
std::string contribution_name(const result::Result& contributed);

/// Writes FOLDER/contribution_name and returns its path. Throws UsageFailure unless `force` where
/// that file is there and of another commit, profile, build or machine, or no result;
/// EnvironmentFailure where the disk refuses.
std::filesystem::path store_contribution(const result::Result& contributed,
                                         const std::filesystem::path& folder, bool force);

}  // namespace attnbench::gallery
