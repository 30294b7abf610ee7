#include "harness/worker/check.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "attention/conformance/conformance.hpp"
#include "attention/torch/cuda.hpp"

namespace attnbench::worker {
namespace {

using conformance::Finding;
using conformance::Status;

Json to_json(const Finding& finding, const std::string& dtype) {
  Json out = {{"name", finding.property},
              {"dtype", dtype},
              {"status", conformance::to_string(finding.status)}};
  if (!finding.reason.empty()) out["reason"] = finding.reason;
  if (finding.status == Status::not_applicable) return out;
  if (std::isfinite(finding.error)) out["error"] = finding.error;
  if (std::isfinite(finding.tolerance)) out["tolerance"] = finding.tolerance;
  return out;
}

bool has(const Json& properties, const char* status) {
  return std::any_of(properties.begin(), properties.end(),
                     [&](const Json& each) { return each.at("status") == status; });
}

/// Status and reason of the whole from its properties.
void conclude(Json& answer) {
  const Json& properties = answer.at("properties");
  const auto broken = std::find_if(properties.begin(), properties.end(),
                                   [](const Json& each) { return each.at("status") == "broken"; });
  if (broken != properties.end()) {
    answer["status"] = "wrong";
    answer["reason"] =
        broken->at("name").get<std::string>() + ": " + broken->value("reason", "broken");
  } else if (has(properties, "held") || properties.empty()) {
    answer["status"] = "ok";
  } else {
    answer["status"] = "unsupported";
    answer["reason"] = properties.front().value("reason", "not supported");
  }
}

}  // namespace

Json check_in_child(const Registry& registry, const Json& request) {
  const std::string name = request.at("mechanism");
  const std::string pattern = request.at("pattern");
  const Resolved resolved = registry.resolve(name);
  const std::string asked = request.value("implementation", resolved.implementation);
  const Implementation& implementation = resolved.entry->implementation(asked);
  conformance::CheckOptions options;
  options.options = resolved.options;
  options.device = torch_device(request.value("device", "cpu"));
  Json properties = Json::array();
  for (const std::string dtype : request.at("dtypes")) {
    for (const Finding& finding :
         conformance::check(*resolved.entry, registry.reference(resolved.entry->name),
                            implementation, pattern_from(pattern), dtype_from(dtype), options)) {
      properties.push_back(to_json(finding, dtype));
    }
  }
  Json answer = {{"mechanism", name},
                 {"implementation", asked},
                 {"pattern", pattern},
                 {"properties", std::move(properties)}};
  conclude(answer);
  return answer;
}

}  // namespace attnbench::worker
