#include "harness/suite/schema_validator.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "harness/suite/pointer.hpp"

namespace attnbench::suite {
namespace {

/// valijson writes a path as "<root>", "[\"key\"]" or "[3]" for each step.
std::string pointer_from(const std::vector<std::string>& context) {
  std::string pointer;
  for (const std::string& step : context) {
    if (step.size() < 2 || step.front() != '[') continue;
    const std::size_t quote = step[1] == '"' ? 1 : 0;
    pointer = child_pointer(pointer, step.substr(1 + quote, step.size() - 2 - 2 * quote));
  }
  return pointer;
}

}  // namespace

std::vector<std::string> failing_pointers(const nlohmann::json& schema,
                                          const nlohmann::json& value) {
  valijson::Schema rules;
  valijson::SchemaParser(valijson::SchemaParser::kDraft7)
      .populateSchema(valijson::adapters::NlohmannJsonAdapter(schema), rules);
  valijson::ValidationResults results;
  valijson::Validator validator(valijson::Validator::kStrongTypes);
  if (validator.validate(rules, valijson::adapters::NlohmannJsonAdapter(value), &results))
    return {};

  std::vector<std::string> found;
  for (const auto& error : results) {
    const std::string pointer = pointer_from(error.context);
    if (std::find(found.begin(), found.end(), pointer) == found.end()) found.push_back(pointer);
  }
  std::vector<std::string> innermost;
  for (const std::string& pointer : found) {
    const bool has_inner = std::any_of(found.begin(), found.end(), [&](const std::string& other) {
      return other.size() > pointer.size() && other.rfind(pointer + "/", 0) == 0;
    });
    if (!has_inner) innermost.push_back(pointer);
  }
  return innermost;
}

}  // namespace attnbench::suite
