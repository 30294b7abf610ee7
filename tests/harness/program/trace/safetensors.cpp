#include "tests/harness/program/trace/safetensors.hpp"

#include "core/failure.hpp"
#include "harness/program/trace/safetensors.hpp"
#include "tests/support/catch.hpp"

using attnbench::trace::whole_numbers;
using Numbers = std::vector<std::int64_t>;

namespace {

std::string complaint_of(const std::string& content, const std::string& name = "a") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "f.safetensors", content);
  try {
    whole_numbers(folder / "f.safetensors", name);
  } catch (const attnbench::UsageFailure& failure) {
    return failure.what();
  }
  return "";
}

std::string with_entry(const std::string& entry, const std::string& data) {
  return test::safetensors_text(R"({"a": )" + entry + "}", data);
}

}  // namespace

TEST_CASE("lists of whole numbers are read by their name", "[trace]") {
  const test::TemporaryFolder folder;
  const auto file = folder / "f.safetensors";
  test::write_file(file, test::safetensors_of({{"a", {0, 7, 300}}, {"b", {-1}}, {"none", {}}}));
  CHECK(whole_numbers(file, "a") == Numbers{0, 7, 300});
  CHECK(whole_numbers(file, "b") == Numbers{-1});
  CHECK(whole_numbers(file, "none").empty());
  const std::string wide("\x05\0\0\0\x01\0\0\0", 8);
  test::write_file(file,
                   with_entry(R"({"dtype": "I64", "shape": [1], "data_offsets": [0, 8]})", wide));
  CHECK(whole_numbers(file, "a") == Numbers{(std::int64_t{1} << 32) + 5});
}

TEST_CASE("what is no list of whole numbers in safetensors is refused", "[trace]") {
  const std::string good = test::safetensors_of({{"offsets", {0, 7}}});
  CHECK_THAT(complaint_of(good), Catch::Contains("f.safetensors: there is no tensor \"a\"") &&
                                     Catch::Contains("offsets"));
  CHECK_THAT(complaint_of(""), Catch::Contains("ends within its header"));
  CHECK_THAT(complaint_of(good.substr(0, 12)), Catch::Contains("ends within its header"));
  CHECK_THAT(complaint_of(std::string(8, '\xff') + "{}"), Catch::Contains("within its header"));
  CHECK_THAT(complaint_of(test::safetensors_text("[1]", "")), Catch::Contains("is no object"));
  CHECK_THAT(complaint_of(test::safetensors_text("{\"a\"", "")),
             Catch::Contains("expected a file of safetensors"));
  const std::string four(4, '\0');
  CHECK_THAT(
      complaint_of(with_entry(R"({"dtype": "F32", "shape": [1], "data_offsets": [0, 4]})", four)),
      Catch::Contains("is F32 of 1 dimensions; expected a list of I32 or I64"));
  CHECK_THAT(complaint_of(
                 with_entry(R"({"dtype": "I32", "shape": [1, 1], "data_offsets": [0, 4]})", four)),
             Catch::Contains("of 2 dimensions"));
  CHECK_THAT(complaint_of(with_entry(R"({"dtype": "I32", "shape": [1]})", four)),
             Catch::Contains("/a/data_offsets"));
  for (const char* offsets : {"[0, 8]", "[-4, 0]", "[4, 0]", "[0]", "[0, 3]"}) {
    INFO(offsets);
    CHECK_THAT(
        complaint_of(with_entry(
            std::string(R"({"dtype": "I32", "shape": [1], "data_offsets": )") + offsets + "}",
            four)),
        Catch::Contains("is not within the file"));
  }
  CHECK_THAT(
      complaint_of(with_entry(
          R"({"dtype": "I32", "shape": [4611686018427387904], "data_offsets": [0, 4]})", four)),
      Catch::Contains("is not within the file"));
}
