#include "core/result/document.hpp"
#include "core/output_file.hpp"

#include <sys/resource.h>

#include <csignal>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/failure.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using Json = nlohmann::json;

namespace {

const std::string fixture_path = test::source_folder() + "/tests/reports/fixture.json";

Json fixture() { return result::read_result(fixture_path); }

/// The fixture as a run would assemble it.
Json assembled() { return result::assemble(result::read_result(fixture_path), "attnbench"); }

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a result has the context that Google Benchmark's tools expect", "[result]") {
  const Json context = assembled()["context"];
  CHECK(context["date"] == "2026-01-02T03:04:05+00:00");
  CHECK(context["host_name"] == "bench-1");
  CHECK(context["executable"] == "attnbench");
  CHECK(context["num_cpus"] == 2);
  CHECK(context["mhz_per_cpu"] == 3000);
  CHECK(context["cpu_scaling_enabled"] == false);
  CHECK(context["library_build_type"] == "release");
  CHECK(context["json_schema_version"] == 1);
  REQUIRE(context["caches"].size() == 2);
  CHECK(context["caches"][1]["size"] == 2097152);
  CHECK(context["load_avg"] == Json({0.1, 0.2, 0.2}));
}

TEST_CASE("rows are one per cell, timing and round where all are undisturbed", "[result]") {
  const Json document = fixture();
  std::size_t expected = 0;
  for (const Json& cell : document["attnbench"]["cells"]) {
    const Json timings = cell.value("timing", Json::object());
    for (const Json& timing : timings) expected += timing["rounds"].size();
  }
  const Json rows = assembled()["benchmarks"];
  REQUIRE(rows.size() == expected);
  std::map<std::string, int> repetitions;
  for (const Json& row : rows) {
    for (const char* name : {"name", "run_name", "run_type", "time_unit"}) {
      CHECK(row[name].is_string());
    }
    for (const char* name : {"family_index", "per_family_instance_index", "repetitions",
                             "repetition_index", "threads", "iterations"}) {
      CHECK(row[name].is_number_integer());
    }
    CHECK(row["run_type"] == "iteration");
    CHECK(row["time_unit"] == "us");
    CHECK(row["real_time"].get<double>() > 0);
    CHECK(row["cpu_time"].get<double>() > 0);
    CHECK(row["repetition_index"] == repetitions[row["name"]]++);
  }
  // A name holds every setting that varies, so no two timings share one.
  for (const auto& [name, count] : repetitions) CHECK(count == 3);
  CHECK(rows[0]["real_time"].get<double>() ==
        Approx(document["attnbench"]["cells"][0]["timing"]["forward"]["rounds"][0]["median_seconds"]
                   .get<double>() *
               1e6));
}

TEST_CASE("a result survives writing and reading", "[result]") {
  const test::TemporaryFolder folder;
  const Json document = assembled();
  result::write_result(folder / "result.json", document);
  CHECK(Json(result::read_result(folder / "result.json")) == document);
  CHECK(Json(result::read_result(folder.path())) == document);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    files += entry.exists();
  }
  CHECK(files == 1);
}

TEST_CASE("records of earlier programs are carried through unchanged", "[result]") {
  for (const char* name :
       {"fixture", "fixtures/decode", "fixtures/mqar_smoke", "fixtures/quickstart"}) {
    INFO(name);
    const std::string file = test::source_folder() + "/tests/reports/" + name + ".json";
    const Json stored = Json::parse(test::read_file(file));
    // As text: 5 and 5.0 are equal values.
    CHECK(Json(result::read_result(file)).dump(1) == stored.dump(1));
  }
}

TEST_CASE("a value of another kind is named with its place", "[result]") {
  const auto complaint = [](const char* pointer, const Json& value) -> std::string {
    Json document = fixture();
    document[Json::json_pointer(pointer)] = value;
    try {
      document.get<result::Result>();
    } catch (const SchemaError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(complaint("/attnbench/cells/0/status", "fine") ==
        "/attnbench/cells/0/status: expected a status, found \"fine\"");
  CHECK(complaint("/attnbench/machine/cores", 1.5) ==
        "/attnbench/machine/cores: expected a whole number, found 1.5");
  CHECK(complaint("/attnbench/cells/0/timing/forward/rounds/1/median_seconds", "slow") ==
        "/attnbench/cells/0/timing/forward/rounds/1/median_seconds: expected a number, found "
        "\"slow\"");
  CHECK(complaint("/attnbench/suite/tasks", 3) ==
        "/attnbench/suite/tasks: expected an object, found 3");
}

TEST_CASE("no number that is not finite reaches the disk", "[result]") {
  const test::TemporaryFolder folder;
  Json document = fixture();
  document["attnbench"]["cells"][0]["metrics"]["rate"] = std::numeric_limits<double>::infinity();
  CHECK_THROWS_WITH(result::write_result(folder / "result.json", document),
                    Catch::Contains("/attnbench/cells/0/metrics/rate"));
  CHECK_FALSE(std::filesystem::exists(folder / "result.json"));
}

TEST_CASE("a disk that refuses leaves the old file and no other", "[result]") {
  const test::TemporaryFolder folder;
  write_atomically(folder / "result.json", "old");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{64, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string message =
      message_of([&] { write_atomically(folder / "result.json", std::string(4096, 'x')); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK_THAT(message, Catch::Contains((folder / "result.json").string()));
  CHECK_THAT(message, Catch::Contains("too large"));
  CHECK(test::read_file(folder / "result.json") == "old");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a folder that is not there is named", "[result]") {
  const test::TemporaryFolder folder;
  const std::string message =
      message_of([&] { write_atomically(folder / "none/result.json", "x"); });
  CHECK_THAT(message, Catch::Contains("none/result.json: No such file"));
}

TEST_CASE("a run that was ended before its end says how to continue it", "[result]") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "journal.jsonl", "");
  CHECK_THAT(message_of([&] { result::read_result(folder.path()); }),
             Catch::Contains("run --resume " + folder.path().string()));
}

TEST_CASE("text that is no JSON, and a path that is no file, are refused", "[result]") {
  const test::TemporaryFolder folder;
  const std::string whole = test::read_file(fixture_path);
  test::write_file(folder / "cut.json", whole.substr(0, whole.size() / 2));
  test::write_file(folder / "list.json", "[1, 2]");
  CHECK_THAT(message_of([&] { result::read_result(folder / "cut.json"); }),
             Catch::Contains("cut.json:1:"));
  CHECK_THAT(message_of([&] { result::read_result(folder / "list.json"); }),
             Catch::Contains("list.json: /: expected an object"));
  CHECK_THAT(message_of([&] { result::read_result(folder / "none.json"); }),
             Catch::Contains("none.json: there is no such file"));
  CHECK_THAT(message_of([&] { result::read_result(folder.path()); }),
             Catch::Contains("result.json: there is no such file"));
}
