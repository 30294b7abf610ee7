#include "core/cell.hpp"

#include "core/errors.hpp"
#include "core/json_object.hpp"

namespace attnbench {

using Json = nlohmann::json;

OptionValues option_values_from(const Json& object, const std::string& where) {
  if (!object.is_object()) {
    throw UsageError(where + ": expected an object, found " + std::string(object.type_name()));
  }
  OptionValues values;
  for (const auto& [name, value] : object.items()) {
    values[name] = value_from(value, where + "." + name);
  }
  return values;
}

Json to_json(const OptionValues& values) {
  Json out = Json::object();
  for (const auto& [name, value] : values) out[name] = to_json(value);
  return out;
}

Json to_json(const Options& options) { return to_json(options.values()); }

namespace run {

void to_json(Json& json, const Cell& cell) {
  json = {{"id", cell.id},
          {"label", cell.label},
          {"task", cell.task},
          {"task_label", cell.task_label},
          {"mechanism", cell.mechanism},
          {"implementation", cell.implementation},
          {"device", cell.device},
          {"options", attnbench::to_json(cell.options)},
          {"settings", attnbench::to_json(cell.settings)}};
  if (cell.varies) json["varies"] = *cell.varies;
}

void from_json(const Json& json, Cell& cell) {
  JsonObject object(json);
  cell.id = object.at<std::string>("id");
  cell.label = object.at<std::string>("label");
  cell.task = object.at<std::string>("task");
  cell.task_label = object.at<std::string>("task_label");
  cell.mechanism = object.at<std::string>("mechanism");
  cell.implementation = object.at<std::string>("implementation");
  cell.device = object.at<std::string>("device");
  cell.options = option_values_from(object.at<Json>("options"), "options");
  cell.settings = option_values_from(object.at<Json>("settings"), "settings");
  cell.varies = object.optional<std::vector<std::string>>("varies");
  object.expect_no_more();
}

}  // namespace run
}  // namespace attnbench
