#include "harness/program/suite/schema_check.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "core/schema/schema_validator.hpp"
#include "core/text/printable.hpp"
#include "core/text/spelling.hpp"

namespace attnbench::suite {
namespace {

using Ordered = nlohmann::ordered_json;

/// The rule for `key` of `parent`, which `rule` of `root` is for; null where there is none.
const Json& child_rule(const Json& root, const Json& rule, const Ordered& parent,
                       const std::string& key) {
  return schema::member_rule(root, rule, parent.is_array(), key);
}

bool is_closed(const Json& rule) {
  return rule.contains("additionalProperties") && rule["additionalProperties"] == false;
}

std::vector<std::string> property_names(const Json& rule) {
  std::vector<std::string> names;
  for (const auto& [name, ignored] : rule["properties"].items()) names.push_back(name);
  return names;
}

/// Takes unknown keys out of `value`, so that validation does not report them again in worse words,
/// and reports what a list has twice.
class UnknownKeys {
 public:
  UnknownKeys(const Json& root, const Places& place, Problems& problems)
      : root_(root), place_(place), problems_(problems) {}

  void remove_from(Ordered& value) { remove_from(value, schema::resolved_rule(root_, root_), ""); }

 private:
  void remove_from(Ordered& value, const Json& rule, const std::string& pointer) {
    if (rule.is_null()) return;
    if (value.is_array() && rule.value("uniqueItems", false)) refuse_twins(value, pointer);
    if (value.is_object() && is_closed(rule)) remove_unknown(value, rule, pointer);
    std::size_t index = 0;
    for (auto item = value.begin(); value.is_structured() && item != value.end(); ++item, ++index) {
      const std::string key = value.is_object() ? item.key() : std::to_string(index);
      remove_from(*item, child_rule(root_, rule, value, key), child_pointer(pointer, key));
    }
  }

  void refuse_twins(const Ordered& list, const std::string& pointer) {
    std::set<std::string> seen;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (seen.insert(list[i].dump()).second) continue;
      problems_.add(place_(child_pointer(pointer, std::to_string(i))),
                    shown(list[i]) + " stands in the list already; keep one");
    }
  }

  void remove_unknown(Ordered& value, const Json& rule, const std::string& pointer) {
    const std::vector<std::string> known = property_names(rule);
    const std::set<std::string> names(known.begin(), known.end());
    Ordered kept = Ordered::object();
    for (const auto& [key, member] : value.items()) {
      if (names.count(key) != 0) {
        kept[key] = member;
      } else {
        problems_.add(
            place_(child_pointer(pointer, key)),
            problems_.full() ? "" : "unknown key \"" + key + "\"; " + text::suggestion(key, known));
      }
    }
    value = std::move(kept);
  }

  const Json& root_;  ///< the schema
  const Places& place_;
  Problems& problems_;
};

/// The rule for the part of `whole` at `pointer`.
const Json& rule_at(const Json& root, const Ordered& whole, const Json::json_pointer& pointer) {
  if (pointer.empty()) return schema::resolved_rule(root, root);
  const Json::json_pointer parent = pointer.parent_pointer();
  return child_rule(root, rule_at(root, whole, parent), whole.at(parent), pointer.back());
}

void report(const Json& root, const Ordered& whole, const std::string& pointer, const Places& place,
            Problems& problems) {
  if (problems.full()) return problems.add(place(pointer), "");
  const Json::json_pointer at(pointer);
  const Ordered& value = whole.at(at);
  const Json& rule = rule_at(root, whole, at);
  bool missing = false;
  for (const Json& name : rule.value("required", Json::array())) {
    if (!value.is_object() || value.contains(name.get<std::string>())) continue;
    problems.add(place(pointer), "\"" + name.get<std::string>() + "\" is missing; expected " +
                                     rule.value("description", "another value"));
    missing = true;
  }
  if (missing) return;
  problems.add(place(pointer),
               "is " + shown(value) + "; expected " + rule.value("description", "another value"));
}

constexpr std::size_t longest_text = 4096;

/// Refuses long texts: the validator's regular expressions would recurse too deep.
bool refuse_long_texts(const Ordered& value, const std::string& pointer, const Places& place,
                       Problems& problems) {
  bool refused = false;
  const auto refuse = [&](const std::string& text, const std::string& at) {
    if (text.size() <= longest_text) return;
    problems.add(place(at), "a text of " + std::to_string(text.size()) +
                                " bytes stands here; expected at most " +
                                std::to_string(longest_text));
    refused = true;
  };
  if (value.is_string()) refuse(value.get_ref<const std::string&>(), pointer);
  std::size_t index = 0;
  for (auto item = value.begin(); value.is_structured() && item != value.end(); ++item, ++index) {
    const std::string key = value.is_object() ? item.key() : std::to_string(index);
    const std::string at = child_pointer(pointer, key);
    if (value.is_object()) refuse(key, at);
    if (refuse_long_texts(*item, at, place, problems)) refused = true;
  }
  return refused;
}

void check_against(const schema::SchemaValidator& validator, const Json& root, const Ordered& value,
                   const Places& place, Problems& problems) {
  if (refuse_long_texts(value, "", place, problems)) return;
  Ordered cleaned = value;
  UnknownKeys(root, place, problems).remove_from(cleaned);
  for (const std::string& pointer : validator.failing_pointers(Json(cleaned))) {
    report(root, cleaned, pointer, place, problems);
  }
}

}  // namespace

const Json& schema() {
  static const Json parsed = Json::parse(schema_text);
  return parsed;
}

std::string shown(const Ordered& value) {
  constexpr std::size_t longest = 40;
  const std::string text = value.dump(-1, ' ', false, Ordered::error_handler_t::replace);
  if (text.size() <= longest) return text::printable(text);
  if (value.is_object()) return "an object of " + std::to_string(value.size()) + " keys";
  if (value.is_array()) return "a list of " + std::to_string(value.size()) + " values";
  return "a text of " + std::to_string(text.size() - 2) + " bytes";
}

void check_schema(const Ordered& value, const Places& place, Problems& problems) {
  static const schema::SchemaValidator validator(schema());
  check_against(validator, schema(), value, place, problems);
}

void check_schema(const Json& root, const Ordered& value, const Places& place, Problems& problems) {
  check_against(schema::SchemaValidator(root), root, value, place, problems);
}

}  // namespace attnbench::suite
