#include "core/json_file.hpp"

#include <sys/stat.h>

#include "core/failure.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using Catch::Contains;
using Catch::StartsWith;

namespace {

std::string repeated(const std::string& text, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

std::string complaint(const std::string& text) {
  try {
    parse_json(text, "f.json", "a result");
  } catch (const UsageFailure& failure) {
    return failure.what();
  }
  return {};
}

}  // namespace

TEST_CASE("only regular files of a bounded size are read", "[reading]") {
  const test::TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string& file : {std::string("/dev/zero"), std::string("/dev/null"), pipe}) {
    CHECK_THROWS_WITH(read_file(file, "a suite"), StartsWith(file + ": ") &&
                                                      Contains("not a regular file") &&
                                                      Contains("expected a suite"));
    CHECK_THROWS_AS(expect_regular_file(file, "a suite", 1000), UsageFailure);
  }
  CHECK_THROWS_WITH(read_file(folder.path(), "a suite"), Contains("folder"));
  CHECK_THROWS_WITH(read_file(folder / "no", "a suite"), Contains("no such file"));
  test::write_file(folder / "large", std::string(2000, 'x'));
  CHECK(read_file(folder / "large", "a suite", 2000).size() == 2000);
  CHECK_THROWS_WITH(read_file(folder / "large", "a suite", 1999), Contains("larger than"));
  // It has no size, and would not fit.
  CHECK_THROWS_AS(read_file("/proc/self/status", "a suite", 10), UsageFailure);
}

TEST_CASE("JSON from outside is told of with file, line and column", "[reading]") {
  CHECK(parse_json("{\"a\": [1, 2]}", "f.json", "a result")["a"][1] == 2);
  CHECK_THAT(complaint("{\n  \"a\": tru\n}"), StartsWith("f.json:2:") && Contains("is not JSON"));
  CHECK_THAT(complaint("{\"a\": 1,\n"), StartsWith("f.json:2:") && Contains("cut off"));
  CHECK_THAT(complaint(""), StartsWith("f.json:1:1: ") && Contains("expected a result"));
  CHECK_THAT(complaint("[1,\n 1e999]"), StartsWith("f.json:2:2: ") && Contains("too large"));
  CHECK_THAT(complaint("[\"\xff\"]"), StartsWith("f.json:1:"));
  for (const char* text : {"", "{", "[1,]", "{\"a\" 1}", "[1e999]", "\"\x01\"", "nul", "\xff"}) {
    CHECK_THAT(complaint(text), !Contains("json.exception") && !Contains("parse error"));
  }
  const std::string token = complaint("[" + std::string(1 << 20, 'n') + "]");
  CHECK(token.size() < 500);
}

TEST_CASE("nesting and weight are bounded before anything is built", "[reading]") {
  CHECK_THAT(complaint(repeated("[", 50000) + repeated("]", 50000)),
             StartsWith("f.json:1:65: ") && Contains("nested more than 64 deep"));
  CHECK_THAT(complaint(repeated("{\"a\":", 20000)), Contains("nested"));
  // Brackets in texts nest nothing.
  CHECK(complaint("\"" + repeated("[", 1000) + "\\\"" + repeated("[", 1000) + "\"").empty());
  const JsonBounds small{8, 1000};
  CHECK(bounds_fault("[" + repeated("1,", 1000) + "1]", small).position > 0);
  CHECK(bounds_fault("[" + repeated("{},", 20) + "1]", small).position > 0);
  CHECK(bounds_fault("[1, 2, 3]", small).reason.empty());
}

TEST_CASE("the library's complaints are said in our words", "[reading]") {
  const auto said = [](const auto& body) {
    try {
      body();
    } catch (const nlohmann::json::exception& error) {
      return json_complaint(error);
    }
    return std::string();
  };
  const Json value = {{"a", "text"}};
  CHECK(said([&] { (void)value.at("a").get<double>(); }) == "expected number, found string");
  CHECK(said([&] { (void)value.at("b"); }) == "expected the key 'b', found nothing");
  CHECK_THAT(said([&] { (void)value.at("a").at("b"); }), Contains("found string"));
  CHECK_THAT(said([&] { (void)value.at("a").value("b", 1); }), Contains("found string"));
}
