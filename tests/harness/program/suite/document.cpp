#include "harness/program/suite/document.hpp"

#include <filesystem>

#include "tests/harness/program/suite/malformed.hpp"
#include "tests/support/files.hpp"

using attnbench::test::check_malformed;
using attnbench::test::Malformed;

namespace {

std::string repeated(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

const std::vector<Malformed> unreadable = {
    {"", 1, "/", {"empty", "JSON object"}},
    {"  \n\t\n", 1, "/", {"empty"}},
    {"{\"name\": \"s\",\n \"set\": {\"length\": [1, 2", 2, "/set/length/2", {"cut off"}},
    {"{\"name\": \"s\"", 1, "/name", {"cut off"}},
    {"{\"name\": \"s", 1, "/name", {"missing closing quote"}},
    {"{\n \"a\": 1,\n}", 3, "/a", {"not JSON", "expected string literal"}},
    {"{\n \"a\": 1\n \"b\": 2}", 3, "/a", {"not JSON", "expected"}},
    {"{\"a\": 'b'}", 1, "/a", {"not JSON"}},
    {"{} {}", 1, "/", {"not JSON", "expected end of input"}},
    {"// a comment\n{}", 1, "/", {"not JSON"}},
    {"{\"a\": NaN}", 1, "/a", {"not JSON"}},
    {"{\"a\": [1, Infinity]}", 1, "/a/1", {"not JSON"}},
    {"{\"a\":\n 1e999}", 2, "/a", {"1e999", "too large"}},
    {"{\"a\": [\n-1e400]}", 2, "/a/0", {"-1e400", "too large"}},
    {"{\"a\": 9223372036854775808}", 1, "/a", {"9223372036854775808", "too large"}},
    {"{\"a\": -99999999999999999999}", 1, "/a", {"too large"}},
    {"{\"a\": 1,\n\"b\": 2,\n\"a\": 3}", 3, "/a", {"second time", "line 1"}},
    {"{\"set\": {\"x/y\": 1, \"x/y\": 2}}", 1, "/set/x~1y", {"second time"}},
    {"\xEF\xBB\xBF{}", 1, "/", {"byte order mark", "UTF-8"}},
    {"\xFF\xFE{\0}\0", 1, "/", {"UTF-16"}},
    {"{\n\"a\": \"\xFF\"}", 2, "/", {"not UTF-8", "0xff"}},
    {"{\"a\": \"\xC0\x80\"}", 1, "/", {"not UTF-8", "0xc0"}},
    {"{\"a\": \"\xED\xA0\x80\"}", 1, "/", {"not UTF-8"}},
    {"{\"a\": \"caf\xE9\"}", 1, "/", {"not UTF-8", "0xe9"}},
    {std::string("{}\n\0x", 5), 2, "/", {"zero byte"}},
    {repeated("[", 40) + repeated("]", 40), 1, repeated("/0", 32), {"32 deep"}},
    {repeated("{\"a\":", 100000), 1, repeated("/a", 32), {"32 deep"}},
    {"[" + repeated("1,", 150000) + "1]", 1, "/99999", {"more than 100000 values"}},
    {"{\"a\": \"" + repeated("x", 5 << 20) + "\"}", 1, "/", {"4 MiB"}},
};

}  // namespace

TEST_CASE("What is no suite in JSON is refused, with line and pointer", "[suite]") {
  for (const Malformed& wrong : unreadable) check_malformed(wrong);
}

TEST_CASE("Every value knows its line", "[suite]") {
  const auto document = attnbench::suite::parse_document("s.json",
                                                         "{\"a\": 1,\n"
                                                         " \"b\": [10,\n"
                                                         "   20\n"
                                                         "   , {\"c\": true}],\n"
                                                         "\n"
                                                         " \"d\": {\n"
                                                         "   \"e~/\": 3\n"
                                                         "}}");
  CHECK(document.place("/a") == "s.json:1: /a: ");
  CHECK(document.place("/b") == "s.json:2: /b: ");
  CHECK(document.place("/b/0") == "s.json:2: /b/0: ");
  CHECK(document.place("/b/1") == "s.json:3: /b/1: ");
  CHECK(document.place("/b/2/c") == "s.json:4: /b/2/c: ");
  CHECK(document.place("/d/e~0~1") == "s.json:7: /d/e~0~1: ");
  CHECK(document.place("/d/nothing/here") == "s.json:6: /d/nothing/here: ");
  CHECK(document.place("") == "s.json:1: /: ");
}

TEST_CASE("Objects keep the file's order, files their hash", "[suite]") {
  const auto document = attnbench::suite::parse_document("s.json", R"({"z": 1, "a": 2})");
  CHECK(document.value.dump() == R"({"z":1,"a":2})");
  CHECK(document.hash.size() == 32);
  CHECK(document.hash != attnbench::suite::parse_document("s.json", R"({"z":1, "a": 2})").hash);
}

TEST_CASE("The hash of settings is that of the file as it is read, whatever the order", "[suite]") {
  using attnbench::suite::settings_hash;
  using Json = nlohmann::json;
  const auto hash = [](const std::string& text) {
    return settings_hash(Json(attnbench::suite::parse_document("s.json", text).value));
  };
  const std::string text = R"({"z": 1e-3, "a": [9007199254740993, -2, 1.0], "notes": "x"})";
  CHECK(hash(text) == settings_hash(Json::parse(text)));
  CHECK(hash(text) == hash(R"({"a": [9007199254740993, -2, 1.0], "z": 0.001})"));
  CHECK(hash(text) != hash(R"({"a": [9007199254740993, -2, 1.0], "z": 0.002})"));
  // What a file should not have: no words are looked for in it.
  CHECK(hash(R"({"tasks": 1, "profiles": [{"title": "x"}]})") !=
        hash(R"({"tasks": 1, "profiles": [{}]})"));
}

TEST_CASE("A file that cannot be read is named, with its neighbour", "[suite]") {
  const attnbench::test::TemporaryFolder folder;
  attnbench::test::write_file(folder / "quickstart.json", "{}");
  const auto message = [&](const std::string& name) -> std::string {
    try {
      attnbench::suite::read_document(folder / name);
    } catch (const attnbench::UsageFailure& failure) {
      return failure.what();
    }
    return {};
  };
  CHECK_THAT(message("quikstart.json"), Catch::Contains("no such file"));
  CHECK_THAT(message("quikstart.json"), Catch::Contains("quickstart.json\"?"));
  CHECK_THAT(message(""), Catch::Contains("folder"));
  CHECK(message("quickstart.json").empty());
}
