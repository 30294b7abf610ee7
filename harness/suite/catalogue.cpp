#include "harness/suite/catalogue.hpp"

#include <stdexcept>

#include "core/json_file.hpp"

namespace attnbench::suite {
namespace {

std::vector<std::string> texts(const Json& list) {
  return list.is_array() ? list.get<std::vector<std::string>>() : std::vector<std::string>{};
}

OptionSpec option_from(const Json& json) {
  OptionSpec option;
  option.name = json.at("name");
  option.type = json.at("type");
  option.fallback = json.at("default");
  option.meaning = json.value("meaning", "");
  option.minimum = json.value("minimum", Json());
  option.maximum = json.value("maximum", Json());
  option.choices = texts(json.value("choices", Json::array()));
  return option;
}

std::vector<OptionSpec> options_from(const Json& list) {
  std::vector<OptionSpec> options;
  for (const Json& option : list) options.push_back(option_from(option));
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
  }
  return catalogue;
}

}  // namespace attnbench::suite
