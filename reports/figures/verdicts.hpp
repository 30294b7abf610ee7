// The verdicts of `attnbench ab`, which stand in ab.json beside the result of its run.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace attnbench::reports {

using Json = nlohmann::json;

/// The value of ab.json beside `result` (a run's folder or a result.json); null where there is
/// none. One that cannot be read, or lacks what the table shows, is null, too, and a message.
Json verdicts_beside(const std::filesystem::path& result, std::vector<std::string>& messages);

/// A line for each pair: verdict, ratio with its interval, both medians, rounds that count and that
/// other programs disturbed, and why no more can be said. Empty without verdicts.
std::string verdicts_html(const Json& verdicts);
std::string verdicts_markdown(const Json& verdicts);

}  // namespace attnbench::reports
