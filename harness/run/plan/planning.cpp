#include "harness/run/plan/planning.hpp"

#include <set>

#include "core/failure.hpp"
#include "core/text/format.hpp"

namespace attnbench::run {
namespace {

constexpr std::size_t most_told = 20;

Json settle(const Json& forecast, std::int64_t limit) {
  if (forecast.contains("status")) {
    Json settled = {{"status", forecast["status"]}, {"reason", forecast.value("reason", "")}};
    if (forecast.contains("detail")) settled["detail"] = forecast["detail"];
    return settled;
  }
  if (!forecast.value("supported", true)) {
    return {{"status", "unsupported"}, {"reason", forecast.value("reason", "no reason given")}};
  }
  const double predicted = forecast.value("peak_bytes", 0.0);
  if (limit > 0 && predicted > static_cast<double>(limit)) {
    return {{"status", "skipped"},
            {"reason", "predicted " + result::human_bytes(predicted) + " is over the limit of " +
                           result::human_bytes(static_cast<double>(limit)) +
                           "; --memory-limit raises it"}};
  }
  return nullptr;
}

/// What the suite asks for and makes no sense; a mechanism that failed over its forecast is not the
/// suite's mistake. Cells of one mistake differ in sizes only: each sentence is told once.
void refuse(const std::vector<Planned>& planned) {
  std::set<std::string> told;
  std::string message;
  for (const Planned& one : planned) {
    if (one.runs() || !one.forecast.value("refused", false)) continue;
    const std::string sentence =
        one.cell.value("label", one.id()) + ": " + one.settled["reason"].get<std::string>();
    if (told.size() < most_told && told.insert(sentence).second) {
      message += (message.empty() ? "" : "\n") + sentence;
    }
  }
  if (!message.empty()) throw CellsRefused(message);
}

}  // namespace

int Planned::rounds(int all) const { return forecast.value("once", false) ? 1 : all; }

std::vector<Planned> plan_cells(const std::vector<Json>& cells, const std::vector<Json>& forecasts,
                                const std::function<std::int64_t(const Json& cell)>& memory_limit) {
  std::vector<Planned> planned;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    planned.push_back({cells[i], forecasts.at(i), settle(forecasts.at(i), memory_limit(cells[i]))});
  }
  refuse(planned);
  return planned;
}

}  // namespace attnbench::run
