// Results as somebody edited them: every value in turn becomes another kind of value.
#include <map>

#include "core/failure.hpp"
#include "harness/program/compare/compare.hpp"
#include "reports/report.hpp"
#include "reports/tables/tables.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"
#include "tests/support/tier.hpp"

using namespace attnbench;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

/// Few cells, so that a report takes milliseconds; of each kind one.
json small_result() {
  json result = json::parse(test::read_file(test::fixture_file()));
  json& cells = result["attnbench"]["cells"];
  json kept = json::array();
  std::map<std::string, int> taken;
  for (const json& cell : cells) {
    const std::string kind = cell["task"].get<std::string>() + cell["status"].get<std::string>();
    if (taken[kind]++ < 2) kept.push_back(cell);
  }
  cells = kept;
  result["benchmarks"] = json::array();
  return result;
}

void find_pointers(const json& value, const std::string& pointer, std::vector<std::string>& all) {
  if (!pointer.empty()) all.push_back(pointer);
  std::size_t index = 0;
  for (auto item = value.begin(); value.is_structured() && item != value.end(); ++item, ++index) {
    if (value.is_array() && index > 1) break;  // the others are alike
    const std::string key = value.is_object() ? item.key() : std::to_string(index);
    find_pointers(*item, pointer + "/" + key, all);
  }
}

/// What becomes of a result: empty, or the complaint.
std::string outcome(const json& result, const test::TemporaryFolder& folder) {
  test::write_file(folder / "result.json", result.dump());
  try {
    reports::ReportOptions options;
    options.render = false;
    options.force = true;
    options.out = folder / "out";
    reports::write_report({folder / "result.json"}, options);
    const result::Result read = result::read_result(folder / "result.json");
    compare::to_text(compare::compare(read, read, 0.03), 100, true);
    reports::table(read, {});
    reports::status_line(read);
  } catch (const Failure& failure) {
    return failure.what();
  } catch (const std::exception& error) {
    return std::string("raw: ") + error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("a result whose values are of other kinds is refused with file and place",
          "[reports][malformed]") {
  const test::TemporaryFolder folder;
  const json whole = small_result();
  REQUIRE(outcome(whole, folder).empty());
  std::vector<std::string> pointers;
  find_pointers(whole, "", pointers);
  REQUIRE(pointers.size() > 200);
  const std::vector<json> others{nullptr, "word", -3, json::array(), json::object()};
  std::size_t number = 0, refused = 0;
  for (const std::string& pointer : pointers) {
    // Each value becomes one of the kinds, at night two: over all values of a key all come up.
    for (std::size_t turn = 0; turn < (test::at_night() ? 4 : 2); turn += 2) {
      const std::size_t kind = (number + turn) % others.size();
      json changed = whole;
      changed[json::json_pointer(pointer)] = others[kind];
      const std::string said = outcome(changed, folder);
      if (said.empty()) continue;
      ++refused;
      INFO(pointer << " = " << others[kind] << ": " << said);
      CHECK_THAT(said, Catch::Contains("result.json: /") && !Catch::Contains("raw: ") &&
                           !Catch::Contains("json.exception"));
      // The net below all checks, which knows no place: a check is missing where it catches.
      CHECK_THAT(said, !Catch::Contains("complete and unedited"));
      CHECK(said.size() < 2000);
    }
    ++number;
  }
  CHECK(refused > 25);
}

TEST_CASE("a control character or a long name costs no picture and no page", "[reports]") {
  const test::TemporaryFolder folder;
  auto result = small_result().get<result::Result>();
  const std::string long_label(350, 'k');
  for (result::CellRecord& cell : result.cells) {
    if (cell.task == "kernel") cell.task_label = long_label;
    if (cell.label == "softmax") cell.label = "soft\x1b[31mmax\x01";
  }
  result.suite.tasks[long_label] = result.suite.tasks["kernel"];
  REQUIRE(outcome(result, folder).empty());
  std::size_t figures = 0;
  for (const auto& entry : fs::directory_iterator(folder / "out/figures")) {
    // What the renderer reads has no control character either, written as JSON escapes it.
    CHECK_THAT(test::read_file(entry.path()),
               !Catch::Contains("\x1b") && !Catch::Contains("soft\\u001b"));
    CHECK(entry.path().filename().string().size() < 200);
    ++figures;
  }
  CHECK(figures > 3);
  CHECK_THAT(test::read_file(folder / "out/index.html"), !Catch::Contains("\x1b"));
}
