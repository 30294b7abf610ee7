// Findings of `check` as files, and of `doctor` as text.
#pragma once

#include <iosfwd>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/catalogue.hpp"
#include "core/result/machine.hpp"
#include "harness/measure/condition.hpp"

namespace attnbench::commands {

/// Files of `check --out`, as Markdown or JSON: by `format` ("markdown", "json") or, where that is
/// empty, by the file's ending (.md, .json). `validate` throws UsageFailure for another ending, for
/// a folder that does not exist, and for a file that `check` did not write.
struct CheckReports {
  std::vector<std::string> files;
  std::string format;
  bool force = false;  ///< replace other programs' files, too

  void validate() const;
  void write(const nlohmann::json& document) const;
};

/// The facts of a report beside its findings: {command, date, build, stamp, machine, mechanisms}.
/// `names` are mechanisms or aliases; empty = all. The machine includes the card of `device`.
nlohmann::json check_facts(const Catalogue& catalogue, const std::vector<std::string>& names,
                           const std::vector<std::string>& plugins, const std::string& device);

// ---- doctor

struct WorkerFound {
  bool works = false;
  std::string reason;                   ///< why it does not
  std::optional<double> start_seconds;  ///< and what it said of itself, where it started
  std::optional<Stamp> stamp;
  std::optional<std::vector<PluginSpec>> plugins;
};

/// A device other than the CPU: card and condition, or why it cannot be used.
struct DeviceFound {
  std::optional<result::DeviceCard> card;
  std::optional<measure::DeviceCondition> condition;
  std::string refusal;
};

struct NoiseFound {
  double median_seconds = 0;
  double spread = 0;  ///< as measure::Noise has them
  double difference = 0;
};

/// What `doctor` found, and its document of --json. The ceilings of a device that could not be
/// measured are {refusal: the reason}.
struct DoctorFound {
  result::MachineCard machine;
  WorkerFound worker;
  std::map<std::string, DeviceFound> devices;
  std::map<std::string, Values> ceilings;
  std::optional<NoiseFound> noise;
  std::map<std::string, std::string> places;
};
void to_json(nlohmann::json& json, const WorkerFound& found);
void to_json(nlohmann::json& json, const DeviceFound& found);
void to_json(nlohmann::json& json, const NoiseFound& found);
void to_json(nlohmann::json& json, const DoctorFound& found);

void print_doctor(std::ostream& out, const DoctorFound& found);

}  // namespace attnbench::commands
