// attnbench list and describe.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/process.hpp"

namespace {

using namespace attnbench::test;
using Json = nlohmann::json;

std::vector<std::string> names(const Json& items) {
  std::vector<std::string> all;
  for (const Json& item : items) all.push_back(item["name"]);
  return all;
}

bool has(const Json& items, const std::string& name) {
  const auto all = names(items);
  return std::find(all.begin(), all.end(), name) != all.end();
}

}  // namespace

TEST_CASE("list: everything there is, for people and as JSON", "[program]") {
  const Finished plain = call("list", {}, test::source_folder());
  INFO(plain.err);
  REQUIRE(plain.exit_code == 0);
  for (const char* word :
       {"mechanisms", "aliases", "tasks", "suites", "shapes", "devices", "presets", "latte",
        "flash", "softmax/tiled", "quickstart.json", "cpu"}) {
    CHECK_THAT(plain.out, Catch::Contains(word));
  }
  const Json all = Json::parse(call("list --json", {}, test::source_folder()).out);
  for (const char* name : {"softmax", "window", "latte", "linear"}) {
    CHECK(has(all["mechanisms"], name));
  }
  CHECK(has(all["aliases"], "flash"));
  CHECK(has(all["tasks"], "kernel"));
  CHECK(has(all["tasks"], "decode"));
  CHECK(has(all["shapes"], "llama3-8b"));
  CHECK(all["suites"].size() >= 5);
}

TEST_CASE("list: one kind alone, and a kind that is none", "[program]") {
  const Finished finished = call("list implementations --json");
  REQUIRE(finished.exit_code == 0);
  CHECK(has(Json::parse(finished.out), "latte/scan"));
  CHECK(call("list mechanism").exit_code == 2);
  // The suites are found from wherever the program is called.
  CHECK_THAT(call("list suites", {}, "/").out, Catch::Contains("quickstart.json"));
}

TEST_CASE("list: a plugin path of 5,000 letters makes no message as long", "[program]") {
  std::map<std::string, std::string> environment;
  environment["ATTNBENCH_PLUGIN_PATH"] = "/no/such/" + std::string(5'000, 'x') + ".so";
  const Finished finished = call("list mechanisms", environment);
  CHECK(finished.exit_code == 0);
  CHECK_THAT(finished.err, Catch::Contains("/no/such/xxx"));
  CHECK(finished.err.size() < 2'048);
}

TEST_CASE("describe: mechanisms, aliases, tasks and presets by name", "[program]") {
  const Finished latte = call("describe latte");
  CHECK(latte.exit_code == 0);
  CHECK_THAT(latte.out, Catch::Contains("latents_total") && Catch::Contains("Dolga") &&
                            Catch::Contains("scan") && Catch::Contains("bidirectional"));
  const Finished flash = call("describe flash");
  CHECK(flash.exit_code == 0);
  CHECK_THAT(flash.out, Catch::Contains("stands for softmax/tiled"));
  CHECK_THAT(call("describe kernel").out, Catch::Contains("input_scale"));
  CHECK_THAT(call("describe latte_v1.figure_2").out, Catch::Contains("  width            128\n"));
  CHECK_THAT(flash.out, Catch::Contains("time ~ T^2 D,"));
  const Finished suite = call("describe latte_v1_figure_2");
  CHECK_THAT(suite.out, Catch::Contains("latte, scan") && Catch::Contains("Dolga") &&
                            Catch::Contains("figures --claims latte_v1_figure_2"));
  CHECK(Json::parse(call("describe latte_v1_figure_2 --json").out)["name"] == "latte_v1_figure_2");
  // A name that a task and a suite share.
  CHECK_THAT(call("describe decode").out,
             Catch::Contains("setting") && Catch::Contains("attnbench plan decode"));
  CHECK_THAT(call("describe quickstar").err, Catch::Contains("quickstart"));
  const Finished unknown = call("describe late");
  CHECK(unknown.exit_code == 2);
  CHECK_THAT(unknown.err, Catch::Contains("did you mean \"latte\"?"));
}

TEST_CASE("describe: a shape with the source of its sizes", "[program]") {
  const Finished described = call("describe deepseek-v3");
  INFO(described.err);
  CHECK(described.exit_code == 0);
  CHECK_THAT(described.out, Catch::Contains("config_671B.json") && Catch::Contains("latents") &&
                                Catch::Contains("--shape deepseek-v3") &&
                                Catch::Contains("  head_dim      192\n"));
  const Json json = Json::parse(call("describe gemma2-9b --json").out);
  CHECK(json["window"] == 4096);
  CHECK(json["source"].get<std::string>().find("gemma_pytorch") != std::string::npos);
  CHECK_THAT(call("describe llama38b").err, Catch::Contains("did you mean \"llama3-8b\"?"));
}

TEST_CASE("describe: what differs from published code, and the roles", "[program]") {
  const std::map<std::string, std::vector<std::string>> known{
      {"perceiver", {"differs from", "ABC", "luna with tied=false", "Peng"}},
      {"rg_lru", {"first_input=plain", "decay_init=recurrentgemma"}},
      {"lavo", {"differs from", "scale=1 gives the paper's form"}},
      {"macchiato", {"differs from", "scale=1 gives the paper's form"}},
      {"luna", {"the published packing ignores the key mask"}},
      {"mqar", {"differs from", "variant=forgetting"}},
      {"mad", {"differs from", "one token more"}}};
  for (const auto& [name, words] : known) {
    const Finished described = call("describe " + name);
    INFO(described.out);
    REQUIRE(described.exit_code == 0);
    for (const std::string& word : words) CHECK_THAT(described.out, Catch::Contains(word));
  }
  const auto shapes = [](const std::string& name) {
    std::map<std::string, std::string> all;
    const Json described = Json::parse(call("describe --json " + name).out);
    for (const Json& role : described.at("roles")) all[role["name"]] = role["shape"];
    return all;
  };
  CHECK(shapes("softmax") == std::map<std::string, std::string>{{"query", "[B, H, T, D]"},
                                                                {"key", "[B, G, S, D]"},
                                                                {"value", "[B, G, S, Dv]"}});
  CHECK(shapes("macchiato")["query_logits"] == "[B, H, T, L + 1]");
  CHECK(shapes("macchiato")["key_logits"] == "[B, G, S, L]");
  CHECK(shapes("perceiver")["latent_query"] == "[B, H, L, D]");
  // Widths that options are.
  CHECK(shapes("mla") == std::map<std::string, std::string>{{"query", "[B, H, T, D]"},
                                                            {"latent", "[B, G, S, latent]"},
                                                            {"key_rotary", "[B, G, S, rotary]"}});
  CHECK(shapes("mamba2")["key"] == "[B, G, S, state]");
  CHECK(shapes("rg_lru")["input_gate"] == "[B, H, S, Dv]");
  CHECK_THAT(call("describe luna").out, Catch::Contains("pack_key"));
  // Every mechanism that there is says its roles.
  for (const Json& one : Json::parse(call("list mechanisms --json").out)) {
    const Json described =
        Json::parse(call("describe --json " + one["name"].get<std::string>()).out);
    INFO(described["name"]);
    CHECK_FALSE(described.contains("roles_unknown"));
    CHECK(described.value("roles", Json()).size() > 0);
  }
}

TEST_CASE("a command that there is not is told by its name", "[program]") {
  const Finished slip = call("rnu suites/quickstart.json");
  CHECK(slip.exit_code == 2);
  CHECK(slip.err == "attnbench: there is no command \"rnu\"; did you mean \"run\"?\n");
  CHECK(call("embiggen --help").exit_code == 2);
  CHECK_THAT(call("embiggen").err, Catch::Contains("there are: run, report, check"));
  const Finished none = call("");
  CHECK(none.exit_code == 2);
  CHECK_THAT(none.err, Catch::Contains("--help"));
  CHECK(call("--help").exit_code == 0);
  const Finished version = call("--version");
  CHECK(version.exit_code == 0);
  for (const char* line : {"attnbench ", "\ncommit    ", "\nLibTorch  ", "\nBLAS      "}) {
    CHECK_THAT(version.out, Catch::Contains(line));
  }
  CHECK_THAT(version.out, !Catch::Contains("LibTorch  not known"));
}

TEST_CASE("each help has examples of its own command", "[program]") {
  CHECK_THAT(call("report --help").out,
             Catch::Contains("attnbench report runs/") && !Catch::Contains("attnbench ab"));
  CHECK_THAT(call("run --help").out, Catch::Contains("--resume runs/decode-latest"));
  CHECK_THAT(call("--help").out, Catch::Contains("attnbench ab latte/chunked"));
}

TEST_CASE("list, describe and plan start no worker for what is remembered, figures never",
          "[program]") {
  // The program with a worker beside it that notes when it is started.
  const TemporaryFolder folder;
  std::filesystem::copy_file(program(), folder / "attnbench");
  const std::string notes = folder / "started", worker = folder / "attnbench-worker";
  write_file(worker, "#!/bin/sh\necho >>" + notes + "\nexec " + worker_program() + " \"$@\"\n");
  std::filesystem::permissions(worker, std::filesystem::perms::owner_all);
  write_file(notes, "");
  const auto starts = [&](const std::string& line) {
    const std::size_t before = read_file(notes).size();
    const Finished finished = run(words((folder / "attnbench").string() + " " + line), 300,
                                  {{"XDG_CACHE_HOME", folder / "cache"}}, test::source_folder());
    INFO(line << "\n" << finished.err);
    CHECK(finished.exit_code == 0);
    return read_file(notes).size() - before;
  };
  CHECK(starts("list") > 0);
  const std::string plan = "plan latte softmax --length 64,128";
  CHECK(starts(plan) > 0);
  for (const std::string& again : {std::string("list"), std::string("describe latte"), plan}) {
    CHECK(starts(again) == 0);
  }
}

TEST_CASE("a temporary folder that is not there is named", "[program]") {
  const TemporaryFolder folder;
  const Finished finished =
      call("list mechanisms", {{"TMPDIR", folder / "none"}, {"XDG_CACHE_HOME", folder / "cache"}});
  CHECK(finished.exit_code == 3);
  CHECK_THAT(finished.err, Catch::Contains("TMPDIR=") && Catch::Contains("/none: ") &&
                               Catch::Contains("set TMPDIR"));
}
