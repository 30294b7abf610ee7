#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/process.hpp"

namespace {

using namespace attnbench::test;
using Json = nlohmann::json;

Finished plan(const std::string& line) { return call("plan " + line); }

}  // namespace

TEST_CASE("plan: a suite in cells, memory and estimated time", "[program]") {
  const Finished finished = plan("quickstart --profile quick");
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  CHECK_THAT(finished.out, Catch::Contains("profile quick") && Catch::Contains("softmax, naive") &&
                               Catch::Contains("estimate, not a measurement") &&
                               Catch::Contains("`run --budget` that ranks, of 3 rounds: about "));
}

TEST_CASE("plan: a run without a file", "[program]") {
  const Finished finished = plan("latte/scan softmax --length 256..1024 --batch=2 --json");
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  const Json planned = Json::parse(finished.out).at(0);
  REQUIRE(planned["cells"].size() == 6);
  CHECK(planned["cells"][0]["implementation"] == "scan");
  CHECK(planned["cells"][5]["settings"]["length"] == 1024);
  CHECK(planned["cells"][5]["settings"]["batch"] == 2);
  for (const Json& cell : planned["cells"]) {
    CHECK(cell["forecast"]["supported"] == true);
    CHECK(cell["forecast"]["cost"]["model_flops"] > 0);
  }
  // Five rounds, of which three rank.
  const double all = planned["totals"]["estimated_seconds"];
  CHECK(all > 0);
  CHECK(planned["totals"]["ranking_seconds"].get<double>() < all);
  CHECK(planned["totals"]["ranking_seconds"].get<double>() > all / 2);
  // Quadratic and linear work, as the forecast sees it.
  const auto flops = [&](std::size_t i) {
    return planned["cells"][i]["forecast"]["cost"]["model_flops"].get<double>();
  };
  CHECK(flops(2) / flops(0) == Approx(4).epsilon(0.05));
  CHECK(flops(5) / flops(3) == Approx(16).epsilon(0.05));
}

TEST_CASE("plan: the shape of a known model, and what is said besides", "[program]") {
  const Finished finished = plan("flash window gla --shape mistral-7b --length=256 --cells");
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  CHECK_THAT(finished.out,
             Catch::Contains("shape mistral-7b (Mistral 7B v0.1: every layer): heads=32 "
                             "kv_heads=8 head_dim=128 window=4096") &&
                 Catch::Contains("said otherwise: length; not taken: layers") &&
                 Catch::Contains("unsupported, 1 cell: gla: "));
  const Json by_shape = Json::parse(plan("flash --shape llama3-8b --length 256 --json").out).at(0);
  const Json by_hand =
      Json::parse(plan("flash --heads 32 --kv-heads 8 --head-dim 128 --length 256 --json").out)
          .at(0);
  CHECK(by_shape["cells"][0]["id"] == by_hand["cells"][0]["id"]);
  CHECK(by_shape["suite"]["shapes"][0]["name"] == "llama3-8b");
  const Finished twice = plan("flash --shape gpt2 --shape vit-b-16");
  CHECK(twice.exit_code == 2);
  CHECK_THAT(twice.err, Catch::Contains("--shape is given more than once, gpt2, vit-b-16"));
  CHECK_THAT(plan("quickstart --shape llama3-8b").err,
             Catch::Contains("--shape llama3-8b: kv_heads 8 does not divide heads 2"));
}

TEST_CASE("plan: shapes of one's own, and a file of shapes that is malformed", "[program]") {
  const TemporaryFolder folder;
  const std::string shapes = folder / "suites/shapes.json";
  write_file(folder / "suites/form/suite.schema.json", "{}");  // marks a folder of suites
  const auto planned = [&] { return call("plan flash --shape mine", {}, folder.path()); };
  CHECK_THAT(planned().err, Catch::Contains("suites/shapes.json"));
  write_file(shapes, R"({"mine": {"title": "Mine", "source": "here", "heads": 2, "head_dim": 16,
                                  "pattern": "causal"}})");
  CHECK(planned().exit_code == 0);
  write_file(shapes, "{\"mine\": {\"title\": \"Mine\", \"source\": \"here\",\n\"head\": 2}}");
  const Finished malformed = planned();
  CHECK(malformed.exit_code == 2);
  CHECK_THAT(malformed.err, Catch::Contains("suites/shapes.json:2: /mine/head: ") &&
                                Catch::Contains("did you mean \"heads\"?"));
  const Finished validated = call("validate suites/shapes.json", {}, folder.path());
  CHECK(validated.exit_code == 2);
  CHECK_THAT(validated.err, Catch::Contains("suites/shapes.json:2: /mine/head: "));
  CHECK_THAT(call("validate suites/shapes.json", {}, source_folder()).out,
             Catch::Contains("suites/shapes.json: ok, "));
}

TEST_CASE("plan: the notes of a suite are those of the profile, without control characters",
          "[program]") {
  const TemporaryFolder folder;
  write_file(folder / "noted.json", R"({
    "name": "noted", "task": "kernel", "set": {"length": 8}, "mechanisms": ["softmax"],
    "notes": "for \u001b[31mGPUs",
    "profiles": {"quick": {"notes": "no ranking"}, "silent": {"notes": null}}})");
  const std::string suite = folder / "noted.json";
  const Finished whole = plan(suite);
  INFO(whole.err);
  REQUIRE(whole.exit_code == 0);
  CHECK_THAT(whole.out, Catch::Contains("  for \\u001b[31mGPUs\n"));
  const Finished quick = plan(suite + " --profile quick");
  CHECK_THAT(quick.out, Catch::Contains("  no ranking\n") && !Catch::Contains("GPUs"));
  const Finished silent = plan(suite + " --profile silent");
  CHECK_THAT(silent.out, !Catch::Contains("GPUs") && !Catch::Contains("no ranking"));
  const Json planned = Json::parse(plan(suite + " --profile quick --json").out).at(0);
  CHECK(planned["suite"]["notes"] == "no ranking");
}

TEST_CASE("plan: paper profiles of Long Range Arena say that they are for GPUs", "[program]") {
  for (const char* name : {"latte_v1_table_2", "latte_v2_table_3", "lavo_table_11"}) {
    INFO(name);
    const std::string suite = (test::source_folder() + "/suites/") + name + ".json";
    CHECK_THAT(plan(suite + " --profile paper").out, Catch::Contains("is for GPUs"));
    const Finished quick = plan(suite + " --profile quick");
    REQUIRE(quick.exit_code == 0);
    CHECK_THAT(quick.out, !Catch::Contains("is for GPUs"));
    const bool has_pathfinder = std::string(name) == "latte_v1_table_2";
    CHECK((quick.out.find("Pathfinder stays at chance") != quick.out.npos) == has_pathfinder);
  }
}

TEST_CASE("plan: several settings may follow one --set", "[program]") {
  const Finished several = plan("latte --set heads=4 head_dim=80 --length 512 --json");
  INFO(several.err);
  REQUIRE(several.exit_code == 0);
  const Json settings = Json::parse(several.out).at(0)["cells"].at(0)["settings"];
  CHECK(settings["heads"] == 4);
  CHECK(settings["head_dim"] == 80);
  const Finished slip = plan("latte headz=4");
  CHECK(slip.exit_code == 2);
  CHECK_THAT(slip.err, Catch::Contains("headz") && Catch::Contains("heads"));
}

TEST_CASE("plan: cells without their data do not run, and have an estimate apart", "[program]") {
  const TemporaryFolder folder;
  write_file(folder / "both.json", R"({
    "name": "both", "mechanisms": ["latte"],
    "tasks": {"timed": {"task": "kernel", "set": {"length": 64}},
              "reviews": {"task": "lra.text", "set": {"width": 16, "pattern": "bidirectional"}}}})");
  const std::string suite = folder / "both.json";
  const std::map<std::string, std::string> without{{"ATTNBENCH_DATA", ""}};
  const Finished said = call("plan " + suite, without);
  INFO(said.err);
  REQUIRE(said.exit_code == 0);
  CHECK_THAT(said.out, Catch::Contains("once data are there") &&
                           Catch::Contains("skipped, 1 cell: ") &&
                           Catch::Contains("attnbench data lra.text") &&
                           Catch::Contains("Without their data 1 cell does not run"));
  const Json totals = Json::parse(call("plan " + suite + " --json", without).out)[0]["totals"];
  CHECK(totals["cells"] == 2);
  CHECK(totals["unsupported"] == 1);
  CHECK(totals["without_data"]["cells"] == 1);
  CHECK(totals["without_data"]["estimated_seconds"] > 100);
  CHECK(totals["without_data"]["peak_bytes"] > totals["peak_bytes"]);
  CHECK(totals["estimated_seconds"] < 100);
  const Finished timed = call("plan " + suite + " --only timed", without);
  CHECK_THAT(timed.out, !Catch::Contains("once data are there"));
}
