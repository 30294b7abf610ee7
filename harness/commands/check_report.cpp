#include "harness/commands/check_report.hpp"

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "core/failure.hpp"
#include "core/hash.hpp"
#include "core/manifest.hpp"
#include "core/result/document.hpp"
#include "core/text/printable.hpp"
#include "harness/commands/command_line.hpp"
#include "harness/measure/device.hpp"
#include "harness/measure/machine.hpp"
#include "harness/run/folder/fingerprint.hpp"
#include "harness/run/folder/provenance.hpp"
#include "reports/page/check.hpp"

namespace attnbench::commands {
namespace {

using Json = nlohmann::json;

constexpr const char* writer = "check";

/// "markdown", "json", or empty where nothing tells.
std::string format_of(const std::string& file, const std::string& said) {
  if (!said.empty()) return said;
  const std::string ending = std::filesystem::path(file).extension();
  if (ending == ".md") return "markdown";
  return ending == ".json" ? "json" : "";
}

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

std::string name_of(const std::filesystem::path& file) { return file.filename().string(); }

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace

void CheckReports::validate() const {
  for (const std::string& file : files) {
    if (format_of(file, format).empty()) {
      throw UsageFailure(
          "--out " + result::quotable(file) +
          ": expected a file that ends in .md or .json, or --format markdown or json");
    }
    std::error_code ignored;
    if (!std::filesystem::is_directory(folder_of(file), ignored)) {
      throw UsageFailure("--out " + result::quotable(file) + ": there is no folder " +
                         result::quotable(folder_of(file).string()) + "; make it first");
    }
    if (std::filesystem::is_directory(file, ignored)) {
      throw UsageFailure("--out " + result::quotable(file) +
                         ": this is a folder; expected the name of a file");
    }
    if (!force) result::Manifest(folder_of(file), writer).expect_ours({name_of(file)});
  }
}

void CheckReports::write(const Json& document) const {
  for (const std::string& file : files) {
    const bool json = format_of(file, format) == "json";
    const std::string text =
        json ? document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"
             : reports::check_markdown(document);
    result::Manifest manifest(folder_of(file), writer);
    manifest.announce(name_of(file), result::hash_text(text));
    manifest.save();
    result::write_atomically(file, text);
    manifest.confirm();
    manifest.save();
  }
}

Json check_facts(const suite::Catalogue& catalogue, const std::vector<std::string>& names,
                 const std::vector<std::string>& plugins, const std::string& device) {
  std::vector<std::string> wanted = names;
  for (std::string& name : wanted) {
    const auto alias = catalogue.aliases.find(name);
    if (alias != catalogue.aliases.end()) name = alias->second.mechanism;
  }
  Json mechanisms = Json::array();
  for (const Json& mechanism : catalogue.document.at("mechanisms")) {
    const bool one = std::find(wanted.begin(), wanted.end(), mechanism.at("name")) != wanted.end();
    if (one || wanted.empty()) mechanisms.push_back(mechanism);
  }
  Json machine = measure::machine_card();
  if (const Json card = measure::card_if_usable(device); !card.empty()) {
    machine["devices"][device] = card;
  }
  return {{"schema", 1},
          {"command", typed_command()},
          {"date", today()},
          {"build", run::provenance(run::binary_fingerprint(plugins))},
          {"stamp", catalogue.document.value("stamp", Json::object())},
          {"machine", std::move(machine)},
          {"mechanisms", std::move(mechanisms)}};
}

}  // namespace attnbench::commands
