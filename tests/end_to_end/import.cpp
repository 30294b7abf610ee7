#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/process.hpp"

using namespace attnbench;
using Json = nlohmann::json;

namespace {

const std::string import_fixture = test::source_folder() + "/tests/reports/fixture.json";

/// One record of another program beside a cell of the fixture that has a forward time.
Json foreign() {
  const Json result = Json::parse(test::read_file(import_fixture));
  std::string id;
  for (const Json& cell : result.at("attnbench").at("cells")) {
    if (cell.value("timing", Json::object()).contains("forward")) id = cell.at("id");
  }
  return {{"schema", 1},
          {"program", {{"name", "Other"}, {"version", "2.0"}}},
          {"threads", 99},
          {"command", "other.py"},
          {"records", {{{"beside", id}, {"label", "flash"}, {"seconds", {{"forward", {{0.5}}}}}}}}};
}

}  // namespace

TEST_CASE("import sets a foreign file beside a run, and report draws it", "[program]") {
  const test::TemporaryFolder folder;
  const std::string file = (folder / "peers.json").string();
  const std::string out = (folder / "joined").string();
  const std::string line = "import " + file + " --beside " + import_fixture + " --out " + out;
  test::write_file(file, foreign().dump());
  const auto done = test::call(line);
  CHECK(done.exit_code == 0);
  CHECK(done.out == out + "/result.json\n");
  CHECK_THAT(done.err, Catch::Contains("peers.json: measured with 99 threads"));
  CHECK(test::call("report --no-render " + out).exit_code == 0);
  CHECK_THAT(test::read_file(out + "/index.html"), Catch::Contains("flash (Other 2.0)"));
  const auto again = test::call(line);
  CHECK(again.exit_code == 2);
  CHECK_THAT(again.err, Catch::Contains("is there already"));
}

TEST_CASE("import refuses what is no file of foreign records", "[program]") {
  const test::TemporaryFolder folder;
  const std::string file = (folder / "peers.json").string();
  const auto refused = [&](const std::string& beside) {
    const auto done = test::call("import " + file + " --beside " + beside + " --out " +
                                 (folder / "joined").string());
    CHECK(done.exit_code == 2);
    CHECK_FALSE(std::filesystem::exists(folder / "joined/result.json"));
    return done.err;
  };
  CHECK_THAT(refused(import_fixture),
             Catch::Contains("peers.json: there is no such file; expected a file of foreign"));
  test::write_file(file, "{");
  CHECK_THAT(refused(import_fixture),
             Catch::Contains("peers.json:1:2: the text ends in the middle of a value"));
  test::write_file(file, "{}");
  CHECK_THAT(refused(import_fixture), Catch::Contains("peers.json: /schema: expected"));
  test::write_file(file, foreign().dump());
  CHECK_THAT(refused((folder / "none").string()), Catch::Contains("none: there is no such file"));
}

namespace {

/// A prefill in FlashInfer's trace format, and a norm.
void write_trace(const test::TemporaryFolder& folder) {
  const auto constant = [](int value) { return Json{{"type", "const"}, {"value", value}}; };
  const Json varies = {{"type", "var"}};
  const Json prefill = {{"name", "gqa_ragged_prefill_causal_h4"},
                        {"op_type", "gqa_ragged"},
                        {"axes",
                         {{"num_qo_heads", constant(4)},
                          {"num_kv_heads", constant(2)},
                          {"head_dim", constant(16)},
                          {"len_indptr", varies},
                          {"total_q", varies},
                          {"total_kv", varies}}},
                        {"inputs", {{"q", {{"shape", {"total_q"}}, {"dtype", "float32"}}}}},
                        {"outputs", Json::object()},
                        {"reference", "def run(): pass"}};
  Json norm = prefill;
  norm["name"] = "rmsnorm_h64";
  norm["op_type"] = "rmsnorm";
  test::write_file(folder / "prefill.json", prefill.dump());
  test::write_file(folder / "norm.json", norm.dump());
  std::string lines;
  for (const auto& [queries, keys] : {std::pair{24, 24}, {8, 72}}) {
    lines += Json{{"definition", prefill["name"]},
                  {"workload",
                   {{"uuid", std::to_string(keys)},
                    {"axes", {{"len_indptr", 2}, {"total_q", queries}, {"total_kv", keys}}},
                    {"inputs", Json::object()}}}}
                 .dump() +
             "\n";
  }
  test::write_file(folder / "workloads.jsonl", lines);
}

}  // namespace

TEST_CASE("import --from-trace makes a suite of what is attention, which runs", "[program]") {
  const test::TemporaryFolder folder;
  write_trace(folder);
  const auto file = [&](const char* name) { return (folder / name).string(); };
  const std::string line = "import --from-trace " + file("norm.json") + " " + file("prefill.json") +
                           " " + file("workloads.jsonl");
  const auto printed = test::call(line);
  CHECK(printed.exit_code == 0);
  CHECK(printed.err == "rmsnorm_h64: left out: it is no attention\n");
  const auto done = test::call(line + " --out " + file("suite.json"));
  REQUIRE(done.exit_code == 0);
  CHECK(done.out.empty());
  CHECK(test::read_file(folder / "suite.json") == printed.out);
  CHECK_THAT(test::call("validate " + file("suite.json")).out, Catch::Contains("ok, 2 cells"));
  const auto ran = test::call("run " + file("suite.json") + " --rounds 1 --now --no-ceilings " +
                              "--set max_seconds=0.02 --no-report --out " + file("run"));
  INFO(ran.out << ran.err);
  REQUIRE(ran.exit_code == 0);
  const Json cells =
      Json::parse(test::read_file(file("run") + "/result.json"))["attnbench"]["cells"];
  REQUIRE(cells.size() == 2);
  CHECK(cells[1]["settings"]["past"] == 64);
  CHECK(cells[1]["check"]["verdict"] == "ok");
}

TEST_CASE("import --from-trace ends with 2 where nothing is attention", "[program]") {
  const test::TemporaryFolder folder;
  write_trace(folder);
  const auto file = [&](const char* name) { return (folder / name).string(); };
  const auto none = test::call("import --from-trace " + file("norm.json"));
  CHECK(none.exit_code == 2);
  CHECK(none.out.empty());
  CHECK_THAT(none.err, Catch::Contains("it is no attention") &&
                           Catch::Contains("nothing of these files is attention"));
  test::write_file(folder / "other.json", "{}");
  const auto other = test::call("import --from-trace " + file("other.json"));
  CHECK(other.exit_code == 2);
  CHECK_THAT(other.err, Catch::Contains("other.json: ") &&
                            Catch::Contains("expected a definition or a workload"));
  const auto beside =
      test::call("import --from-trace " + file("norm.json") + " --beside " + import_fixture);
  CHECK(beside.exit_code == 2);
  CHECK_THAT(beside.err, Catch::Contains("--beside is of foreign records"));
  CHECK_THAT(test::call("import " + file("norm.json")).err,
             Catch::Contains("--beside is required for foreign records") &&
                 Catch::Contains("--from-trace"));
}
