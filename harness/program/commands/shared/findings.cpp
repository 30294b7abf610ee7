#include "harness/program/commands/shared/findings.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/failure.hpp"
#include "core/output_file.hpp"
#include "core/process/fingerprint.hpp"
#include "core/result/document.hpp"
#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "harness/measure/device.hpp"
#include "harness/measure/machine.hpp"
#include "harness/program/commands/shared/measuring.hpp"
#include "harness/program/run/folder/run_result.hpp"
#include "reports/page/check.hpp"

namespace attnbench::commands {
namespace {

constexpr const char* writer = "check";

/// "markdown" or "json"; empty where neither flag nor ending says.
std::string format_of(const std::string& file, const std::string& said) {
  if (!said.empty()) return said;
  const std::string ending = std::filesystem::path(file).extension();
  if (ending == ".md") return "markdown";
  return ending == ".json" ? "json" : "";
}

}  // namespace

void CheckReports::validate() const {
  for (const std::string& file : files) {
    if (format_of(file, format).empty()) {
      throw UsageFailure(
          "--out " + text::quotable(file) +
          ": expected a file that ends in .md or .json, or --format markdown or json");
    }
    OutputFile("--out", file, writer, force);
  }
}

void CheckReports::write(const Json& document) const {
  for (const std::string& file : files) {
    const bool json = format_of(file, format) == "json";
    const std::string text =
        json ? document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"
             : reports::check_markdown(document);
    OutputFile("--out", file, writer, true).write(text);
  }
}

Json check_facts(const Catalogue& catalogue, const std::vector<std::string>& names,
                 const std::vector<std::string>& plugins, const std::string& device) {
  std::vector<std::string> wanted = names;
  for (std::string& name : wanted) {
    if (const auto named = catalogue.find(name)) name = named->mechanism->name;
  }
  Json mechanisms = Json::array();
  for (const MechanismSpec& mechanism : catalogue.mechanisms) {
    const bool one = std::find(wanted.begin(), wanted.end(), mechanism.name) != wanted.end();
    if (one || wanted.empty()) mechanisms.push_back(mechanism);
  }
  result::MachineCard machine = measure::machine_card();
  if (const Json card = measure::card_if_usable(device); !card.empty()) {
    machine.devices[device] = card.get<result::DeviceCard>();
  }
  return {{"schema", 1},
          {"command", typed_command()},
          {"date", text::now_text()},
          {"build", process::provenance(process::binary_fingerprint(plugins))},
          {"stamp", catalogue.stamp},
          {"machine", std::move(machine)},
          {"mechanisms", std::move(mechanisms)}};
}

}  // namespace attnbench::commands
