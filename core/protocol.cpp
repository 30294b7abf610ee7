#include "core/protocol.hpp"

#include <algorithm>
#include <array>

#include "core/json_object.hpp"

namespace attnbench {

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

ATTNBENCH_JSON_CODEC(ProcessRank) { JSON_AT(rank, size, address, port); }

}  // namespace attnbench

namespace attnbench::protocol {
namespace {

constexpr std::array property_words{"held", "broken", "not_applicable"};

void child_fields(auto& json, const char* type, auto& request) {
  json.type(type);
  json.maybe("limits", request.limits);
  json.maybe("threads", request.threads);
  json.maybe("log", request.log);
}

void answer_fields(auto& json, const char* type, auto& answer) {
  json.type(type);
  json.at("status", answer.status);
  json.maybe("reason", answer.reason);
  json.maybe("detail", answer.detail);
}

}  // namespace

std::string type_of(const nlohmann::json& message) { return message.value("type", ""); }

// Limits of 0 are not sent.
ATTNBENCH_JSON_CODEC(Limits) { JSON_MAYBE(seconds, memory_bytes, device_bytes); }

ATTNBENCH_JSON_CODEC(SamplingRule) {
  JSON_USUAL(relative_interval, min_samples, max_samples, warmup_seconds, cold_calls, cold_seconds,
             min_seconds, max_seconds);
}

ATTNBENCH_JSON_CODEC(Hello) {
  json.type("hello");
  JSON_AT(protocol, plugins, threads, device);
}

ATTNBENCH_JSON_CODEC(Plan) {
  json.type("plan");
  JSON_AT(cells);
}

ATTNBENCH_JSON_CODEC(Probe) {
  child_fields(json, "probe", value);
  JSON_AT(device);
  JSON_MAYBE(product);
}

ATTNBENCH_JSON_CODEC(Run) {
  child_fields(json, "run", value);
  JSON_AT(cell, round, seed, pinned, measure, checkpoint, binary);
  JSON_MAYBE(process_rank);
}

ATTNBENCH_JSON_CODEC(Check) {
  child_fields(json, "check", value);
  JSON_AT(mechanism, pattern, dtypes);
  JSON_USUAL(device);
  JSON_MAYBE(implementation, options);
}

ATTNBENCH_JSON_CODEC(Apply) {
  child_fields(json, "apply", value);
  JSON_AT(mechanism);
  JSON_USUAL(implementation);
  JSON_AT(pattern);
  JSON_MAYBE(options);
  JSON_AT(roles);
  JSON_MAYBE(parameters, mask, gradient, seed);
  JSON_USUAL(check_rows);
  JSON_MAYBE(allow_nan);
  JSON_AT(out);
}

ATTNBENCH_JSON_CODEC(Data) {
  child_fields(json, "data", value);
  JSON_AT(task, settings);
  JSON_MAYBE(seed);
  JSON_AT(out);
}

ATTNBENCH_JSON_CODEC(Generate) {
  child_fields(json, "generate", value);
  JSON_AT(cell, checkpoint, binary, run_seed);
  JSON_MAYBE(prompt, bytes, temperature, seed, score, capacity, out);
}

ATTNBENCH_JSON_CODEC(HelloAnswer) {
  json.type("hello");
  JSON_AT(protocol, pid, stamp, plugins);
}

ATTNBENCH_JSON_CODEC(PlanAnswer) {
  json.type("plan");
  JSON_AT(cells);
}

ATTNBENCH_JSON_CODEC(Product) { JSON_AT(flops_per_second); }

ATTNBENCH_JSON_CODEC(ProbeAnswer) {
  json.type("probe");
  JSON_AT(machine);
  JSON_MAYBE(ceilings, product);
}

ATTNBENCH_JSON_CODEC(Property) {
  JSON_AT(name);
  JSON_MAYBE(dtype, reason, error, tolerance);
  json.word("status", value.status, to_string, property_status_from);
}

ATTNBENCH_JSON_CODEC(CheckAnswer) {
  answer_fields(json, "check", value);
  JSON_MAYBE(mechanism, implementation, pattern);
  JSON_USUAL(properties);
}

void to_json(nlohmann::json& json, const CheckedRow& row) {
  json = static_cast<const CheckAnswer&>(row);
  json.erase("type");
  json.update({{"dtype", row.dtype},
               {"held", row.held()},
               {"broken", row.broken()},
               {"not_applicable", row.not_applicable()}});
}

ATTNBENCH_JSON_READER(CheckedRow) {
  JSON_AT(status);
  JSON_MAYBE(mechanism, implementation, pattern, dtype, reason, detail, properties);
}

ATTNBENCH_JSON_CODEC(AppliedRole) { JSON_AT(file, shape); }

ATTNBENCH_JSON_CODEC(AppliedParameter) { JSON_AT(shape, from); }

ATTNBENCH_JSON_CODEC(ApplyAnswer) {
  answer_fields(json, "apply", value);
  JSON_MAYBE(refused);
  if (!value.ran()) return;
  JSON_AT(implementation, implementation_reason, options, problem, roles, parameters);
  JSON_MAYBE(check);
  JSON_AT(files, stamp);
}

ATTNBENCH_JSON_CODEC(DataFile) { JSON_AT(file, examples); }

ATTNBENCH_JSON_CODEC(DataAnswer) {
  answer_fields(json, "data", value);
  JSON_MAYBE(files);
}

ATTNBENCH_JSON_CODEC(GenerateAnswer) {
  answer_fields(json, "generate", value);
  JSON_MAYBE(refused);
  if (value.status != Status::ok) return;
  JSON_AT(implementation, step, bytes, state_bytes, seconds);
  JSON_MAYBE(bits_per_byte);
  JSON_AT(early_resident_bytes, resident_bytes);
}

ATTNBENCH_JSON_CODEC(Heartbeat) {
  json.type("heartbeat");
  JSON_AT(cell, elapsed_seconds);
}

ATTNBENCH_JSON_CODEC(Progress) {
  json.type("progress");
  JSON_AT(cell, done, total, what);
}

const char* to_string(PropertyStatus status) {
  return property_words.at(static_cast<std::size_t>(status));
}

PropertyStatus property_status_from(const std::string& word) {
  const auto found = std::find(property_words.begin(), property_words.end(), word);
  if (found == property_words.end()) {
    throw UsageError("expected held, broken or not_applicable, found \"" + word + "\"");
  }
  return static_cast<PropertyStatus>(found - property_words.begin());
}

int CheckAnswer::count(PropertyStatus wanted) const {
  return static_cast<int>(
      std::count_if(properties.begin(), properties.end(),
                    [wanted](const Property& one) { return one.status == wanted; }));
}

const Property* CheckAnswer::closest_to_tolerance() const {
  const Property* worst = nullptr;
  double most = -1;
  for (const Property& property : properties) {
    if (property.tolerance.value_or(0) <= 0) continue;
    const double share = property.error.value_or(0) / *property.tolerance;
    if (share <= most) continue;
    most = share;
    worst = &property;
  }
  return worst;
}

bool CheckedRow::failed() const { return status != Status::ok && status != Status::unsupported; }

void to_json(nlohmann::json& json, const Answer& answer) {
  json = answer.further;
  JsonWriter writer(json);
  writer.type(answer.type.c_str());
  writer.maybe("status", answer.status);
  writer.maybe("reason", answer.reason);
  writer.maybe("detail", answer.detail);
}

void from_json(const nlohmann::json& json, Answer& answer) {
  JsonReader reader(json);
  reader.maybe("type", answer.type);
  reader.maybe("status", answer.status);
  reader.maybe("reason", answer.reason);
  reader.maybe("detail", answer.detail);
  answer.further = json;
  for (const char* own : {"type", "status", "reason", "detail"}) answer.further.erase(own);
}

}  // namespace attnbench::protocol
