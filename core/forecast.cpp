#include "core/forecast.hpp"

#include <nlohmann/json.hpp>

#include "core/json_object.hpp"

namespace attnbench {

using Json = nlohmann::json;

Json to_json(const Problem& problem) {
  return {{"batch", problem.batch},           {"heads", problem.heads},
          {"kv_heads", problem.kv_heads},     {"length", problem.length},
          {"key_length", problem.key_length}, {"head_dim", problem.head_dim},
          {"value_dim", problem.value_dim},   {"pattern", to_string(problem.pattern)},
          {"dtype", to_string(problem.dtype)}};
}

namespace run {
namespace {

Problem problem_from(const Json& json) {
  JsonObject object(json);
  Problem problem;
  problem.batch = object.at<std::int64_t>("batch");
  problem.heads = object.at<std::int64_t>("heads");
  problem.kv_heads = object.at<std::int64_t>("kv_heads");
  problem.length = object.at<std::int64_t>("length");
  problem.key_length = object.at<std::int64_t>("key_length");
  problem.head_dim = object.at<std::int64_t>("head_dim");
  problem.value_dim = object.at<std::int64_t>("value_dim");
  problem.pattern = pattern_from(object.at<std::string>("pattern"));
  problem.dtype = dtype_from(object.at<std::string>("dtype"));
  object.expect_no_more();
  return problem;
}

Numbers numbers_from(const Json& json, const std::string& place) {
  if (!json.is_object()) throw UsageError(place + ": expected an object of numbers");
  Numbers numbers;
  for (const auto& [name, value] : json.items()) {
    if (!value.is_number()) throw UsageError(place + "." + name + ": expected a number");
    numbers[name] = value.get<double>();
  }
  return numbers;
}

}  // namespace

Json growth_json(const Numbers& growth) {
  Json json = growth;
  const auto from = growth.find("from_length");
  if (from != growth.end()) json["from_length"] = static_cast<std::int64_t>(from->second);
  return json;
}

double Forecast::cost_of(const char* name) const {
  const auto found = cost.find(name);
  return found == cost.end() ? 0 : found->second;
}

void to_json(Json& json, const Forecast& forecast) {
  json = {{"id", forecast.id}, {"supported", forecast.supported}};
  if (forecast.problem) {
    json["implementation"] = forecast.implementation;
    json["implementation_reason"] = forecast.implementation_reason;
    json["cost"] = forecast.cost;
    json["growth"] = growth_json(forecast.growth);
    json["problem"] = attnbench::to_json(*forecast.problem);
  }
  if (forecast.options) json["options"] = attnbench::to_json(*forecast.options);
  if (forecast.peak_bytes) json["peak_bytes"] = *forecast.peak_bytes;
  if (!forecast.reason.empty()) json["reason"] = forecast.reason;
  if (forecast.once) json["once"] = true;
  if (forecast.status) json["status"] = result::to_string(*forecast.status);
  if (!forecast.detail.empty()) json["detail"] = forecast.detail;
  if (forecast.refused) json["refused"] = true;
}

void from_json(const Json& json, Forecast& forecast) {
  JsonObject object(json);
  forecast.id = object.at<std::string>("id");
  forecast.supported = object.at<bool>("supported");
  forecast.reason = object.value<std::string>("reason", "");
  forecast.implementation = object.value<std::string>("implementation", "");
  forecast.implementation_reason = object.value<std::string>("implementation_reason", "");
  forecast.cost = numbers_from(object.value("cost", Json::object()), "cost");
  forecast.growth = numbers_from(object.value("growth", Json::object()), "growth");
  forecast.peak_bytes = object.optional<double>("peak_bytes");
  if (const auto options = object.optional<Json>("options")) {
    forecast.options = option_values_from(*options, "options");
  }
  if (const auto problem = object.optional<Json>("problem")) {
    forecast.problem = problem_from(*problem);
  }
  forecast.once = object.value("once", false);
  if (const auto word = object.optional<std::string>("status")) {
    forecast.status = result::status_from(*word);
    if (!forecast.status) throw UsageError("status: unknown status \"" + *word + "\"");
  }
  forecast.detail = object.value<std::string>("detail", "");
  forecast.refused = object.value("refused", false);
  object.expect_no_more();
}

}  // namespace run
}  // namespace attnbench
