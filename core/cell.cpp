#include "core/cell.hpp"

#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "core/errors.hpp"
#include "core/json_object.hpp"

namespace attnbench {
namespace {

using Json = nlohmann::json;

std::int64_t integer_from(const Json& value, const std::string& where) {
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max()) {
    throw UsageError(where + ": " + value.dump() + " is too large for a whole number");
  }
  if (!value.is_number_integer()) {
    throw UsageError(where + ": expected a whole number, not " + value.dump());
  }
  return value.get<std::int64_t>();
}

}  // namespace

OptionValue option_value_from(const Json& value, const std::string& where) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return value.get<double>();
  if (value.is_number()) return integer_from(value, where);
  if (value.is_object() && value.size() == 2 && value.contains("left") && value.contains("right")) {
    return Window{integer_from(value.at("left"), where + ".left"),
                  integer_from(value.at("right"), where + ".right")};
  }
  throw UsageError(where + ": expected a number, a word, true, false or {left, right}, not " +
                   value.dump());
}

OptionValues option_values_from(const Json& object, const std::string& where) {
  if (!object.is_object()) {
    throw UsageError(where + ": expected an object, found " + std::string(object.type_name()));
  }
  OptionValues values;
  for (const auto& [name, value] : object.items()) {
    values[name] = option_value_from(value, where + "." + name);
  }
  return values;
}

Json to_json(const OptionValue& value) {
  return std::visit(
      [](const auto& held) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, Window>) {
          return {{"left", held.left}, {"right", held.right}};
        } else {
          return held;
        }
      },
      value);
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
