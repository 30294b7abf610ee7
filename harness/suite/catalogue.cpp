#include "harness/suite/catalogue.hpp"

#include <optional>
#include <stdexcept>

#include "core/errors.hpp"
#include "core/json_file.hpp"
#include "core/option_json.hpp"
#include "harness/suite/values.hpp"

namespace attnbench::suite {
namespace {

std::vector<std::string> texts(const Json& list) {
  return list.is_array() ? list.get<std::vector<std::string>>() : std::vector<std::string>{};
}

/// The greatest value of an integer that declares none: no machine has memory or time for more.
/// Nothing for seeds.
std::optional<double> usual_maximum(const std::string& name) {
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  if (has("seed")) return std::nullopt;
  if (has("examples") || has("steps") || name == "epochs") return most_repeated;
  return has("length") || has("window") ? longest_length : greatest_size;
}

std::vector<Option> options_from(const Json& list) {
  std::vector<Option> options;
  for (const Json& declaration : list) {
    options.push_back(option_from(declaration));
    Option& option = options.back();
    if (option.type == OptionType::integer && !option.maximum) {
      option.maximum = usual_maximum(option.name);
    }
  }
  return options;
}

MechanismSpec mechanism_from(const Json& json) {
  MechanismSpec mechanism;
  mechanism.name = json.at("name");
  mechanism.title = json.value("title", "");
  mechanism.patterns = texts(json.value("patterns", Json::array()));
  for (const Json& implementation : json.at("implementations")) {
    mechanism.implementations.push_back(implementation.at("name"));
  }
  mechanism.options = options_from(json.value("options", Json::array()));
  mechanism.differs_from = json.value("differs_from", Json());
  return mechanism;
}

TaskSpec task_from(const Json& json) {
  TaskSpec task;
  task.name = json.at("name");
  task.title = json.value("title", "");
  task.axis = json.value("axis", "");
  task.figures = texts(json.value("figures", Json::array()));
  task.further_figures = texts(json.value("further_figures", Json::array()));
  task.settings = options_from(json.at("settings"));
  task.data_settings = options_from(json.value("data_settings", Json::array()));
  task.differs_from = json.value("differs_from", Json());
  return task;
}

}  // namespace

Catalogue Catalogue::from_json(const Json& document) {
  Catalogue catalogue;
  catalogue.document = document;
  try {
    for (const Json& json : document.at("mechanisms")) {
      const MechanismSpec mechanism = mechanism_from(json);
      catalogue.mechanisms[mechanism.name] = mechanism;
      for (const Json& alias : json.value("aliases", Json::array())) {
        const std::string name = alias.at("name");
        catalogue.aliases[name] = {name, mechanism.name, alias.value("implementation", "auto"),
                                   alias.value("options", Json::object())};
      }
    }
    for (const Json& json : document.at("tasks")) {
      const TaskSpec task = task_from(json);
      catalogue.tasks[task.name] = task;
    }
  } catch (const Json::exception& error) {
    throw std::runtime_error("not a catalogue: " + result::json_complaint(error));
  } catch (const UsageError& error) {
    throw std::runtime_error(std::string("not a catalogue: ") + error.what());
  }
  return catalogue;
}

}  // namespace attnbench::suite
