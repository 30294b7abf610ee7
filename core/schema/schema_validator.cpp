#include "core/schema/schema_validator.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_set>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "core/json_object.hpp"
#include "core/text/printable.hpp"

namespace attnbench::schema {
namespace {

using Adapter = valijson::adapters::NlohmannJsonAdapter;

bool fits(const valijson::Schema& schema, const Json& value, valijson::ValidationResults* results) {
  valijson::Validator validator(valijson::Validator::kStrongTypes);
  return validator.validate(schema, Adapter(value), results);
}

/// valijson writes a path as "<root>", "[\"key\"]" or "[3]" for each step.
Json::json_pointer pointer_from(const std::vector<std::string>& context) {
  Json::json_pointer pointer;
  for (const std::string& step : context) {
    if (step.size() < 2 || step.front() != '[') continue;
    const std::size_t quote = step[1] == '"' ? 1 : 0;
    pointer.push_back(step.substr(1 + quote, step.size() - 2 - 2 * quote));
  }
  return pointer;
}

/// 5.0 as 5, which JSON Schema takes for an integer as well.
Json plain(const Json& value) {
  if (!value.is_number_float()) return value;
  constexpr double exact = 9007199254740992.0;  // 2^53: beyond it doubles skip integers
  const double number = value.get<double>();
  const bool whole = std::abs(number) <= exact && number == std::floor(number);
  return whole ? Json(static_cast<std::int64_t>(number)) : value;
}

/// `value` with a few numbers instead of long lists of them: the least, the greatest and one that
/// is not an integer. They fit the list's rule where all do, in a hundredth of the time.
Json summarised(const Json& value) {
  constexpr std::size_t few = 8;
  if (!value.is_structured()) return plain(value);
  if (value.is_array() && value.size() > few &&
      std::all_of(value.begin(), value.end(), [](const Json& one) { return one.is_number(); })) {
    const auto [least, greatest] = std::minmax_element(value.begin(), value.end());
    Json some = {plain(*least), plain(*greatest)};
    const auto real = std::find_if(value.begin(), value.end(),
                                   [](const Json& one) { return plain(one).is_number_float(); });
    if (real != value.end()) some.push_back(*real);
    return some;
  }
  Json copy = value.is_array() ? Json::array() : Json::object();
  for (const auto& [key, member] : value.items()) {
    if (value.is_array()) {
      copy.push_back(summarised(member));
    } else {
      copy[key] = summarised(member);
    }
  }
  return copy;
}

/// `value` with the first `most` items of each list.
Json shortened(const Json& value, std::size_t most) {
  if (!value.is_structured()) return plain(value);
  Json copy = value.is_array() ? Json::array() : Json::object();
  for (const auto& [key, member] : value.items()) {
    if (value.is_object()) {
      copy[key] = shortened(member, most);
    } else if (copy.size() < most) {
      copy.push_back(shortened(member, most));
    }
  }
  return copy;
}

void erase_keys(Json& value, const char* key) {
  if (value.is_object()) value.erase(key);
  for (Json& member : value) {
    if (member.is_structured()) erase_keys(member, key);
  }
}

std::string number_text(const Json& rule) {
  const bool whole = rule["type"] == "integer";
  if (rule.value("exclusiveMinimum", Json()) == 0) {
    return whole ? "a positive integer" : "a positive number";
  }
  std::string text = whole ? "an integer" : "a number";
  const bool least = rule.contains("minimum");
  const bool most = rule.contains("maximum");
  if (least) text += (most ? " from " : " of at least ") + rule["minimum"].dump();
  if (most) text += (least ? " to " : " of at most ") + rule["maximum"].dump();
  return text;
}

/// What a value that `rule` is for must be.
std::string expectation(const Json& rule) {
  if (!rule.is_object()) return "another value";
  static const std::array<std::pair<const char*, const char*>, 4> words{
      {{"object", "an object"},
       {"array", "an array"},
       {"string", "a string"},
       {"boolean", "true or false"}}};
  if (rule.contains("title")) return rule["title"];
  if (rule.contains("const")) return rule["const"].dump();
  if (rule.contains("enum")) {
    std::string text;
    for (const Json& one : rule["enum"]) {
      text += (text.empty() ? "one of " : ", ") + one.get<std::string>();
    }
    return text;
  }
  const Json type = rule.value("type", Json());
  if (type == "number" || type == "integer") return number_text(rule);
  for (const auto& [name, word] : words) {
    if (type == name) return word;
  }
  return "another value";
}

/// The misfit at `pointer`: the value there, or the first member that it lacks.
Misfit misfit_at(const Json& schema, const Json& value, const Json::json_pointer& pointer) {
  std::vector<std::string> keys;
  for (Json::json_pointer rest = pointer; !rest.empty(); rest.pop_back()) {
    keys.push_back(rest.back());
  }
  const Json* at = &value;
  const Json* rule = &resolved_rule(schema, schema);
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    rule = &member_rule(schema, *rule, at->is_array(), *key);
    at = at->is_array() ? &at->at(std::stoul(*key)) : &at->at(*key);
  }
  if (at->is_object() && rule->is_object()) {
    for (const Json& name : rule->value("required", Json::array())) {
      if (at->contains(name.get_ref<const std::string&>())) continue;
      const Json& missing = member_rule(schema, *rule, false, name);
      return {(pointer / name.get<std::string>()).to_string(), expectation(missing), "nothing"};
    }
  }
  return {pointer.to_string(), expectation(*rule), found_text(*at)};
}

}  // namespace

struct SchemaValidator::Compiled {
  valijson::Schema schema;
};

std::string Misfit::text() const {
  return (pointer.empty() ? "/" : text::quotable(pointer)) + ": expected " + expected + ", found " +
         found;
}

SchemaValidator::SchemaValidator(const Json& schema)
    : rules_(schema), compiled_(std::make_unique<Compiled>()) {
  erase_keys(rules_, "uniqueItems");
  valijson::SchemaParser(valijson::SchemaParser::kDraft7)
      .populateSchema(Adapter(rules_), compiled_->schema);
}

SchemaValidator::~SchemaValidator() = default;

std::optional<Misfit> SchemaValidator::misfit(const Json& value) const {
  // valijson notes every fault with its path, of which a file may hold millions: only where a fault
  // is known to be, and in as little of the lists as shows it.
  if (fits(compiled_->schema, summarised(value), nullptr)) return std::nullopt;
  for (std::size_t most = 8;; most *= 8) {
    const bool whole = most > 1'000'000;
    const Json part = shortened(value, whole ? std::string::npos : most);
    valijson::ValidationResults results;
    valijson::ValidationResults::Error first;
    if (!fits(compiled_->schema, part, &results) && results.popError(first)) {
      return misfit_at(rules_, value, pointer_from(first.context));
    }
    if (whole) return Misfit{"", expectation(rules_), found_text(value)};
  }
}

std::vector<std::string> SchemaValidator::failing_pointers(const Json& value) const {
  valijson::ValidationResults results;
  if (fits(compiled_->schema, value, &results)) return {};
  std::vector<std::string> found;
  std::unordered_set<std::string> seen;
  std::unordered_set<std::string> outer;
  for (const auto& error : results) {
    std::string pointer = pointer_from(error.context).to_string();
    if (!seen.insert(pointer).second) continue;
    found.push_back(pointer);
    while (!pointer.empty()) {
      pointer.resize(pointer.rfind('/'));
      if (!outer.insert(pointer).second) break;  // and so are those above it
    }
  }
  std::erase_if(found, [&](const std::string& pointer) { return outer.count(pointer) != 0; });
  return found;
}

const Json& resolved_rule(const Json& schema, const Json& rule) {
  if (!rule.is_object() || !rule.contains("$ref")) return rule;
  const auto& reference = rule["$ref"].get_ref<const std::string&>();
  return resolved_rule(schema, schema.at(Json::json_pointer(reference.substr(1))));
}

const Json& member_rule(const Json& schema, const Json& rule, bool of_array,
                        const std::string& key) {
  static const Json none;
  if (of_array) return rule.contains("items") ? resolved_rule(schema, rule["items"]) : none;
  if (rule.contains("properties") && rule["properties"].contains(key)) {
    return resolved_rule(schema, rule["properties"][key]);
  }
  for (const char* others : {"patternProperties", "additionalProperties"}) {
    if (!rule.contains(others) || !rule[others].is_object() || rule[others].empty()) continue;
    const bool pattern = others[0] == 'p';  // of one pattern each
    return resolved_rule(schema, pattern ? rule[others].front() : rule[others]);
  }
  return none;
}

}  // namespace attnbench::schema
