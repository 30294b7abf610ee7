#include "core/json_object.hpp"
#include "core/json_schema.hpp"

#include "tests/support/catch.hpp"

namespace attnbench::listed {

using Json = nlohmann::json;

/// Unknown keys are errors.
struct Strict {
  int count = 7;
  std::optional<double> share;
  std::string word;
  OptionValues options;
};
ATTNBENCH_JSON_CODEC(Strict) {
  JSON_AT(count);
  JSON_MAYBE(share, word, options);
}

/// Unknown keys are kept.
struct Keeping {
  std::map<std::string, std::vector<Strict>> parts;
  double always = 0;
  Values further;
};
ATTNBENCH_JSON_CODEC(Keeping) {
  JSON_MAYBE(parts);
  JSON_USUAL(always);
  JSON_REST;
}

/// Unknown keys are left out, and nothing is written.
struct Reading {
  unsigned count = 0;
};
ATTNBENCH_JSON_READER(Reading) { JSON_MAYBE(count); }

/// Described.
struct Inner {
  std::vector<std::size_t> indices;
};
struct Described {
  double seconds = 0;
  std::optional<std::int64_t> length;
  std::map<std::string, Inner> parts;
  Values further;
};
ATTNBENCH_DESCRIBED(Inner);
ATTNBENCH_DESCRIBED(Described);
ATTNBENCH_DESCRIBED_CODEC(Inner) { JSON_AT(indices); }
ATTNBENCH_DESCRIBED_CODEC(Described) {
  JSON_KEY(at, seconds, "of a call", Rule::positive);
  JSON_MAYBE(length);
  JSON_KEY(usual, parts, "by name");
  json.further("python", "its version", Rule::text);
  JSON_REST;
}

template <class T>
std::string fault(const Json& json) {
  try {
    json.get<T>();
  } catch (const SchemaError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a list of members reads and writes a struct", "[json]") {
  const Json json = {
      {"count", 3}, {"share", 0.5}, {"options", {{"window", {{"left", 1}, {"right", 0}}}}}};
  const auto read = json.get<Strict>();
  CHECK(read.count == 3);
  CHECK(read.share == 0.5);
  CHECK(std::get<Window>(read.options.at("window")) == Window{1, 0});
  CHECK(Json(read) == json);
  CHECK(Json(Strict{}).dump() == R"({"count":7})");  // what is empty is not written
  CHECK(Json({{"count", 1e3}}).get<Strict>().count == 1000);
}

TEST_CASE("a list of members describes a struct", "[json]") {
  CHECK(schema_for<Described>() == Json::parse(R"({
    "type": "object",
    "required": ["seconds"],
    "properties": {
      "seconds": {"type": "number", "exclusiveMinimum": 0, "description": "of a call"},
      "length": {"type": "integer"},
      "parts": {"type": "object", "description": "by name", "additionalProperties": {
        "type": "object",
        "required": ["indices"],
        "properties": {"indices": {"type": "array", "items": {"type": "integer", "minimum": 0}}}}},
      "python": {"type": "string", "description": "its version"}}})"));
  const Json json = {{"seconds", 2.0}, {"parts", Json::object()}, {"python", "3.13"}};
  CHECK(Json(json.get<Described>()) == json);
}

TEST_CASE("unknown keys are refused, kept or left out, as the list says", "[json]") {
  CHECK(fault<Strict>({{"count", 1}, {"wrod", "x"}}) ==
        "/wrod: unknown key; did you mean \"word\"?");
  const Json more = {{"always", 0.0}, {"mine", {1, 2}}};
  CHECK(Json(more.get<Keeping>()) == more);
  CHECK(fault<Reading>({{"count", 2}, {"mine", 3}}).empty());
}

TEST_CASE("a value of another form is named with its place", "[json]") {
  const auto inside = [](const Json& part) {
    return fault<Keeping>({{"parts", {{"a", {{{"count", 1}}, part}}}}});
  };
  CHECK(inside({{"count", 2}}).empty());
  CHECK(inside(3) == "/parts/a/1: expected an object, found 3");
  CHECK(inside(Json::object()) == "/parts/a/1/count: expected a value, found nothing");
  CHECK(inside({{"count", 1.5}}) == "/parts/a/1/count: expected a whole number, found 1.5");
  CHECK(inside({{"count", 4'000'000'000}}) ==
        "/parts/a/1/count: expected a whole number, found 4000000000");
  CHECK(inside({{"count", 1}, {"share", "half"}}) ==
        "/parts/a/1/share: expected a number, found \"half\"");
  CHECK(inside({{"count", 1}, {"word", Json::array()}}) ==
        "/parts/a/1/word: expected a string, found an array");
  CHECK_THAT(inside({{"count", 1}, {"options", {{"scale", nullptr}}}}),
             Catch::StartsWith("/parts/a/1/options/scale: expected a number, a word"));
  CHECK(fault<Reading>({{"count", -1}}) ==
        "/count: expected a whole number of at least 0, found -1");
  CHECK(fault<Keeping>({{"parts", 3}}) == "/parts: expected an object, found 3");
}

}  // namespace attnbench::listed
