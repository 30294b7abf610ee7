// JSON Schema, draft 7. The only place that sees valijson, whose headers cost seconds to compile.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace attnbench::schema {

using Json = nlohmann::json;

/// A value that breaks a schema.
struct Misfit {
  std::string pointer;   ///< JSON pointer of the value
  std::string expected;  ///< "a number"
  std::string found;     ///< "nothing" where the value is missing

  /// The misfit as text: "/cells/0/id: expected a string, found 3".
  std::string text() const;
};

/// A compiled schema. Calls of const functions may overlap.
class SchemaValidator {
 public:
  explicit SchemaValidator(const Json& schema);
  ~SchemaValidator();
  SchemaValidator(const SchemaValidator&) = delete;
  SchemaValidator& operator=(const SchemaValidator&) = delete;

  /// The first value found that breaks the schema, described by the `title`, else by `enum`, `type`
  /// and bounds of its rule. Takes time in proportion to the value, whatever it is.
  std::optional<Misfit> misfit(const Json& value) const;

  /// JSON pointers of all values that break the schema, the innermost ones only: a list with a bad
  /// item fails as well, which says nothing new. A rule "uniqueItems" is the caller's to check:
  /// here it would take quadratic time.
  std::vector<std::string> failing_pointers(const Json& value) const;

 private:
  struct Compiled;
  Json rules_;
  std::unique_ptr<Compiled> compiled_;
};

/// The rule itself, or what its `$ref` into `schema` leads to.
const Json& resolved_rule(const Json& schema, const Json& rule);

/// The rule in `schema` for the member `key` of an object, or for the items of an array, that
/// `rule` is for; null where there is none.
const Json& member_rule(const Json& schema, const Json& rule, bool of_array,
                        const std::string& key);

}  // namespace attnbench::schema
