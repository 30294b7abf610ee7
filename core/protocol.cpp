#include "core/protocol.hpp"

#include <algorithm>

#include "core/json_object.hpp"

namespace attnbench::run {

PluginName::PluginName(const std::string& text) : path(text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return;
  const bool word = std::all_of(
      text.begin(), text.begin() + static_cast<std::ptrdiff_t>(equals),
      [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
  if (!word) return;  // a path may hold a = as well
  as = text.substr(0, equals);
  path = text.substr(equals + 1);
}

void to_json(nlohmann::json& json, const ProcessRank& rank) {
  json = {{"rank", rank.rank}, {"size", rank.size}, {"address", rank.address}, {"port", rank.port}};
}

void from_json(const nlohmann::json& json, ProcessRank& rank) {
  JsonObject object(json);
  rank.rank = object.at<int>("rank");
  rank.size = object.at<int>("size");
  rank.address = object.at<std::string>("address");
  rank.port = object.at<int>("port");
  object.expect_no_more();
}

}  // namespace attnbench::run

namespace attnbench::protocol {

using Json = nlohmann::json;

static void from_json(const Json& json, Limits& limits) {
  JsonObject object(json);
  limits.seconds = object.value("seconds", 0.0);
  limits.memory_bytes = object.value("memory_bytes", std::int64_t{0});
  limits.device_bytes = object.value("device_bytes", std::int64_t{0});
  object.expect_no_more();
}

namespace {

/// Limits of 0 are not sent.
Json limits_json(const Limits& limits) {
  Json json = Json::object();
  if (limits.seconds > 0) json["seconds"] = limits.seconds;
  if (limits.memory_bytes > 0) json["memory_bytes"] = limits.memory_bytes;
  if (limits.device_bytes > 0) json["device_bytes"] = limits.device_bytes;
  return json;
}

Json begun(const char* type, const ChildRequest& request) {
  Json json = {{"type", type}, {"limits", limits_json(request.limits)}};
  if (request.threads > 0) json["threads"] = request.threads;
  if (!request.log.empty()) json["log"] = request.log;
  return json;
}

void read_shared(JsonObject& object, ChildRequest& request) {
  request.limits = object.value("limits", Limits{});
  request.threads = object.value("threads", 0);
  request.log = object.value<std::string>("log", "");
}

}  // namespace

void to_json(Json& json, const Hello& hello) {
  json = {{"type", "hello"},
          {"protocol", hello.protocol},
          {"plugins", hello.plugins},
          {"threads", hello.threads},
          {"device", hello.device}};
}

void from_json(const Json& json, Hello& hello) {
  JsonObject object(json);
  hello.protocol = object.at<int>("protocol");
  hello.plugins = object.at<std::vector<std::string>>("plugins");
  hello.threads = object.at<int>("threads");
  hello.device = object.at<std::string>("device");
  object.expect_no_more();
}

void to_json(Json& json, const Plan& plan) { json = {{"type", "plan"}, {"cells", plan.cells}}; }

void from_json(const Json& json, Plan& plan) {
  JsonObject object(json);
  plan.cells = object.at<std::vector<run::Cell>>("cells");
  object.expect_no_more();
}

void to_json(Json& json, const Probe& probe) {
  json = begun("probe", probe);
  json["device"] = probe.device;
  if (probe.product) json["product"] = true;
}

void from_json(const Json& json, Probe& probe) {
  JsonObject object(json);
  read_shared(object, probe);
  probe.device = object.at<std::string>("device");
  probe.product = object.value("product", false);
  object.expect_no_more();
}

void to_json(Json& json, const Run& request) {
  json = begun("run", request);
  json["cell"] = request.cell;
  json["round"] = request.round;
  json["seed"] = request.seed;
  json["pinned"] = request.pinned;
  json["measure"] = request.measure;
  json["checkpoint"] = request.checkpoint;
  json["binary"] = request.binary;
  if (request.process_rank) json["process_rank"] = *request.process_rank;
}

void from_json(const Json& json, Run& request) {
  JsonObject object(json);
  read_shared(object, request);
  request.cell = object.at<run::Cell>("cell");
  request.round = object.at<int>("round");
  request.seed = object.at<std::uint64_t>("seed");
  request.pinned = object.at<bool>("pinned");
  request.measure = object.at<Json>("measure");
  request.checkpoint = object.at<std::string>("checkpoint");
  request.binary = object.at<std::string>("binary");
  request.process_rank = object.optional<run::ProcessRank>("process_rank");
  object.expect_no_more();
}

void to_json(Json& json, const Check& check) {
  json = begun("check", check);
  json["mechanism"] = check.mechanism;
  json["pattern"] = check.pattern;
  json["dtypes"] = check.dtypes;
  json["device"] = check.device;
  if (!check.implementation.empty()) json["implementation"] = check.implementation;
}

void from_json(const Json& json, Check& check) {
  JsonObject object(json);
  read_shared(object, check);
  check.mechanism = object.at<std::string>("mechanism");
  check.pattern = object.at<std::string>("pattern");
  check.dtypes = object.at<std::vector<std::string>>("dtypes");
  check.device = object.value<std::string>("device", "cpu");
  check.implementation = object.value<std::string>("implementation", "");
  object.expect_no_more();
}

void from_json(const Json& json, Apply& apply) {
  JsonObject object(json);
  read_shared(object, apply);
  apply.mechanism = object.at<std::string>("mechanism");
  apply.implementation = object.value<std::string>("implementation", "auto");
  apply.pattern = object.at<std::string>("pattern");
  apply.options = option_values_from(object.value("options", Json::object()), "options");
  object.at<Json>("roles");
  object.value("parameters", Json::object());
  object.value<std::string>("mask", "");
  apply.arrays = json;
  apply.gradient = !object.value<std::string>("gradient", "").empty();
  apply.seed = object.value("seed", std::uint64_t{0});
  apply.check_rows = object.value("check_rows", std::int64_t{64});
  apply.allow_nan = object.value("allow_nan", false);
  apply.out = object.at<std::string>("out");
  object.expect_no_more();
}

void from_json(const Json& json, Data& data) {
  JsonObject object(json);
  read_shared(object, data);
  data.task = object.at<std::string>("task");
  data.settings = option_values_from(object.at<Json>("settings"), "settings");
  data.seed = object.value("seed", std::uint64_t{0});
  data.out = object.at<std::string>("out");
  object.expect_no_more();
}

void to_json(Json& json, const Heartbeat& heartbeat) {
  json = {{"type", "heartbeat"},
          {"cell", heartbeat.cell},
          {"elapsed_seconds", heartbeat.elapsed_seconds}};
}

void to_json(Json& json, const Progress& progress) {
  json = {{"type", "progress"},
          {"cell", progress.cell},
          {"done", progress.done},
          {"total", progress.total},
          {"what", progress.what}};
}

}  // namespace attnbench::protocol
