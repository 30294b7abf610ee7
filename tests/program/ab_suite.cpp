// attnbench ab on suites: builds, plugins, options and implementations as sides.
#include <filesystem>
#include <fstream>

#include "tests/program/ab_bench.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

/// A small suite beside the folder of the run.
std::string small_suite(const Ab& ab, const Json& more = Json::object()) {
  Json suite = {{"name", "small"},
                {"task", "kernel"},
                {"set", {{"length", 16}, {"pattern", "causal"}}},
                {"mechanisms", {{"plain", {{"use", "softmax"}}}, {"tiles", {{"use", "flash"}}}}},
                {"gate",
                 {{"relative_change", 0.5},
                  {"confidence", 0.9},
                  {"rounds", 6},
                  {"rounds_most", 6},
                  {"confirm", 0}}}};
  suite.merge_patch(more);
  write_file(ab.folder / "small.json", suite.dump());
  return ab.folder / "small.json";
}


}  // namespace

TEST_CASE("ab holds two builds against each other on a suite, by the suite's gate",
          "[program][ab]") {
  const Ab ab;
  const Finished finished =
      ab({"--base", test::build_folder(), "--new", worker_program(), small_suite(ab), "--no-report",
          "--markdown", ab.folder / "ab.md", "--junit", ab.folder / "ab.xml"});
  INFO(finished.out << finished.err);
  CHECK((finished.exit_code == 0 || finished.exit_code == 4));
  CHECK_THAT(finished.err, Contains("An A/A run"));
  const Json verdicts = ab.read("ab.json");
  CHECK(verdicts["turns"]["gate"]["relative_change"] == 0.5);
  CHECK(verdicts["turns"]["gate"]["rounds"] == 6);
  CHECK(verdicts["plan"]["builds"].size() == 2);
  REQUIRE(verdicts["pairs"].size() == 2);
  CHECK(verdicts["pairs"][0]["name"] == "kernel plain");
  for (const Json& cell : ab.read("result.json")["attnbench"]["cells"]) CHECK(was_measured(cell));
  CHECK_THAT(read_file(ab.folder / "ab.md"), Catch::StartsWith("<!-- attnbench ab small -->\n") &&
                                                 Contains("kernel plain") && Contains("6 rounds"));
  CHECK_THAT(read_file(ab.folder / "ab.xml"), Contains("<testcase ") && Contains("kernel tiles"));

  // What run would not do right goes on with ab, and has nothing left to do.
  const Finished wrong = run({program(), "run", "--resume", ab.folder / "run"});
  CHECK(wrong.exit_code == 2);
  CHECK_THAT(wrong.err, Contains("continue with: attnbench ab --resume"));
}

TEST_CASE("ab holds two sets of options against each other, and two implementations",
          "[program][ab]") {
  const Ab ab;
  const std::string suite =
      small_suite(ab, {{"mechanisms", {{"latte", {{"implementation", "chunked"}}}}}});
  const Finished sets = ab({"--base-set", "chunk=8", "--new-set", "chunk=16", suite, "--rounds",
                            "6", "--no-report", "--json"});
  INFO(sets.out << sets.err);
  CHECK((sets.exit_code == 0 || sets.exit_code == 4));
  CHECK_THAT(sets.err, Contains("are the same on both sides"));
  const Json verdicts = Json::parse(sets.out);
  CHECK(verdicts["turns"]["base"] == "chunk=8");
  REQUIRE(verdicts["pairs"].size() == 1);
  CHECK(verdicts["pairs"][0]["name"] == "kernel latte");

  const Ab other;
  const Finished two = other({"--base", "softmax/composite", "--new", "flash", small_suite(other),
                              "--no-report", "--json"});
  INFO(two.out << two.err);
  CHECK((two.exit_code == 0 || two.exit_code == 4));
  CHECK(Json::parse(two.out)["pairs"].size() == 1);
}

TEST_CASE(
    "ab --gate ends with 1 where a cell is slower, and says which, by how much and how to repeat",
    "[program][ab]") {
  // `slowed` takes all its tokens a second time: on a machine at rest one attempt decides.
  constexpr int attempts = 5;
  for (int attempt = 1; attempt <= attempts; ++attempt) {
    const Ab ab;
    const std::string suite = small_suite(
        ab, {{"mechanisms",
              {{"plain", nullptr},
               {"tiles", nullptr},
               {"twice", {{"use", "slowed"}, {"implementation", "fused"}}}}},
             {"set", {{"length", 2048}}},
             {"gate", {{"relative_change", 0.2}, {"rounds_most", 24}, {"confirm", 8}}}});
    const Finished finished =
        ab({"--base-set", "percent=0", "--new-set", "percent=100", suite, "--plugin",
            test::build_folder() + "/plugins/slowed.so", "--gate", "--no-report", "--markdown",
            ab.folder / "ab.md", "--junit", ab.folder / "ab.xml"});
    INFO("attempt " << attempt << "\n" << finished.out << finished.err);
    const Json pairs = ab.read("ab.json")["pairs"];
    REQUIRE(pairs.size() == 1);
    const Json& pair = pairs[0];
    // Beside other programs rounds are left out, until too few are left.
    if (finished.exit_code == 4 && pair["verdict"] == "UNCLEAR") continue;
    REQUIRE(finished.exit_code == 1);
    CHECK(pair["verdict"] == "SLOW");
    CHECK(pair["name"] == "kernel twice");
    CHECK(pair["ratio_low"].get<double>() > 1.2);
    CHECK(pair["confirmation"]["ratio_low"].get<double>() > 1);
    const std::string id = pair["id"];
    CHECK_THAT(finished.out, Contains("slow    kernel twice, ") && Contains("; alone: ") &&
                                 Contains("--base-set percent=0 --new-set percent=100") &&
                                 Contains("--only " + id.substr(0, id.rfind('-'))));
    std::string line = finished.out.substr(finished.out.find("slow    kernel twice, "));
    line = line.substr(0, line.find('\n'));
    CHECK_THAT(line, Catch::Matches("slow    kernel twice, [0-9.]+ \\[[0-9.]+, [0-9.]+\\]; .*"));
    CHECK_THAT(read_file(ab.folder / "ab.md"), Contains("What moved") && Contains("SLOW"));
    CHECK_THAT(read_file(ab.folder / "ab.xml"), Contains("<failure message=\"SLOW "));
    return;
  }
  WARN("no verdict in " << attempts << " attempts: this machine is too disturbed for one");
}

TEST_CASE("ab of two suites has a folder for each, and one list of verdicts", "[program][ab]") {
  const Ab ab;
  const std::string first = small_suite(ab, {{"mechanisms", {{"tiles", nullptr}}}});
  const std::string second = ab.folder / "second.json";
  Json changed = Json::parse(read_file(first));
  changed["name"] = "second";
  changed["mechanisms"] = {{"linear", Json::object()}};
  write_file(second, changed.dump());
  const Finished finished =
      ab({"--base", test::build_folder(), "--new", build_folder(), first, second, "--no-report", "--json",
          "--seconds-most", "600", "--markdown", ab.folder / "ab.md"});
  INFO(finished.out << finished.err);
  CHECK((finished.exit_code == 0 || finished.exit_code == 4));
  const Json both = Json::parse(finished.out);
  REQUIRE(both.size() == 2);
  CHECK(both[0]["pairs"][0]["name"] == "kernel plain");
  CHECK(both[1]["pairs"][0]["name"] == "kernel linear");
  for (const Json& one : both) {
    CHECK(one["turns"]["gate"]["confidence"] == Approx(0.95));  // of 0.9 for both together
    CHECK(one["turns"]["gate"]["seconds_most"].get<double>() < 600);
    CHECK(one["pairs"][0]["rounds"] == 6);
  }
  CHECK(ab.read("small/ab.json")["pairs"].size() == 1);
  CHECK(ab.read("second/result.json")["attnbench"]["run"]["rounds"] == 6);
  CHECK_THAT(read_file(ab.folder / "ab.md"),
             Catch::StartsWith("<!-- attnbench ab small, ab second"));
}

TEST_CASE("ab says which cells had no time for their rounds", "[program][ab]") {
  const Ab ab;
  const Finished finished = ab({"--base", test::build_folder(), "--new", build_folder(), small_suite(ab),
                                "--no-report", "--seconds-most", "0.001", "--json"});
  INFO(finished.out << finished.err);
  CHECK(finished.exit_code == 4);
  const Json verdicts = Json::parse(finished.out);
  REQUIRE(verdicts["pairs"].size() == 2);
  for (const Json& pair : verdicts["pairs"]) {
    CHECK(pair["verdict"] == "UNCLEAR");
    CHECK_THAT(pair["reason"].get<std::string>(), Contains("1 of the first 6 rounds"));
  }
}

TEST_CASE("ab lists what one plugin alone has, and measures the rest", "[program][ab]") {
  const Ab ab;
  const std::string suite = small_suite(ab, {{"mechanisms", {{"mine", {{"use", "misbehave"}}}}}});
  const Finished finished =
      ab({"--base", test::build_folder() + "/lib/libcopying.so", "--new", misbehave_plugin(), suite,
          "--no-report", "--json", "--skip", "tiles"});
  INFO(finished.out << finished.err);
  CHECK((finished.exit_code == 0 || finished.exit_code == 4));
  const Json pairs = Json::parse(finished.out)["pairs"];
  REQUIRE(pairs.size() == 2);
  CHECK(pairs[1]["name"] == "kernel mine");
  CHECK(pairs[1]["verdict"] == "NEW");
}

TEST_CASE("ab goes on where it was interrupted, and gives the verdict of the rounds there are",
          "[program][ab]") {
  const Ab ab;
  const std::string log = ab.folder / "log";
  const std::vector<std::string> begun{program(),
                                       "ab",
                                       "--base",
                                       test::build_folder(),
                                       "--new",
                                       test::build_folder(),
                                       small_suite(ab),
                                       "--out",
                                       ab.folder / "run",
                                       "--no-ceilings",
                                       "--no-report",
                                       "--progress",
                                       "plain",
                                       "--set",
                                       "max_seconds=0.02",
                                       "--heads",
                                       "1",
                                       "--head-dim",
                                       "8"};
  const std::map<std::string, std::string> environment{
      {"XDG_CACHE_HOME", test::build_folder() + "/test_cache"}};
  const auto records = [&] {
    std::size_t count = 0;
    std::ifstream journal(ab.folder / "run/journal.jsonl");
    for (std::string line; std::getline(journal, line);) {
      count += line.find("\"type\":\"record\"") != std::string::npos ? 1 : 0;
    }
    return count;
  };
  {
    Running running(begun, log, environment);
    REQUIRE(wait_until([&] { return records() >= 6; }, 90));
    running.signal(2);
    CHECK(running.wait(60) == 130);
  }
  INFO(read_file(log));
  CHECK_THAT(read_file(log), Contains("attnbench ab --resume"));
  const Json early = ab.read("ab.json");
  CHECK(early["state"] == "interrupted");
  CHECK(early["pairs"].size() == 2);
  const std::size_t before = records();
  CHECK(before < 36);
  const Finished refused =
      run({program(), "ab", "--resume", ab.folder / "run", "--margin", "0.1"}, 60, environment);
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.err, Contains("leave --margin out"));
  const Finished finished =
      run({program(), "ab", "--resume", ab.folder / "run", "--no-ceilings", "--no-report"}, 120,
          environment);
  INFO(finished.out << finished.err);
  CHECK((finished.exit_code == 0 || finished.exit_code == 4));
  CHECK(records() == 36);  // two cells, three sides, six rounds: none was measured twice
  CHECK(ab.read("ab.json")["state"] == "complete");
}

TEST_CASE("ab refuses sides and suites of which no verdict follows", "[program][ab]") {
  const Ab ab;
  const std::string suite = small_suite(ab);
  const std::string here = test::build_folder();
  const auto with_gate = [&](const Json& gate) {
    const std::string file = ab.folder / "gate.json";
    Json changed = Json::parse(read_file(suite));
    changed["gate"] = gate;
    write_file(file, changed.dump());
    return file;
  };
  std::filesystem::create_directories(ab.folder / "empty");
  const std::string same_name = ab.folder / "other.json";
  write_file(same_name, read_file(suite));
  const std::vector<std::pair<std::vector<std::string>, std::string>> bad{
      {{"--base", here, suite}, "needs two sides"},
      {{"--base", here, "--new", here}, "it was given none"},
      {{"--base", here, "--new", here, "softmax"}, "softmax is not one"},
      {{"--base", here, "--new", here, suite, "softmax"}, "softmax is not one"},
      {{"--base", here, "--new", here, suite, suite}, "is named twice"},
      {{"--base", here, "--new", here, suite, same_name, "--rounds", "7"},
       "and one folder: run them apart"},
      {{"--base", here, "--new", ab.folder / "empty", suite}, "there is no attnbench-worker in"},
      {{"--base", here, "--new", "./nowhere", suite}, "neither a folder of a build"},
      {{"--base", here, "--new", "flash", suite}, "of one kind"},
      {{"--base", "flash", "--new", "flash", suite}, "named twice"},
      {{"--base", "nowhere.so", "--new", "nothing.so", suite}, "nowhere.so"},
      {{"--base", here, "--new", here, "--base-set", "chunk=8", suite}, "choose"},
      {{"--base-set", "length=16", "--new-set", "length=16", suite}, "the sides are the same"},
      {{"--base-set", "length=16,32", "--new-set", "length=64", suite}, "one value"},
      {{"--base-set", "lenght=16", "--new-set", "length=64", suite}, "lenght"},
      {{"--base", here, "--new", here, suite, "--only", "nothing"}, "nothing"},
      {{"--base", here, "--new", here, suite, "--profile", "none"}, "profile"},
      {{"--base", here, "--new", here, suite, "--rounds", "3"}, "3 rounds give no interval"},
      {{"--base", here, "--new", here, with_gate({{"confidence", 1}})}, "/gate/confidence"}};
  for (const auto& [words, complaint] : bad) {
    const Finished finished = ab(words);
    INFO(complaint << "\n" << finished.out << finished.err);
    CHECK(finished.exit_code == 2);
    CHECK_THAT(finished.err, Contains(complaint));
    CHECK_FALSE(std::filesystem::exists(ab.folder / "run"));
  }
  const std::vector<std::pair<std::vector<std::string>, std::string>> alone{
      {{"--base", here, "--new", here, "mqar_smoke", "--only", "softmax"}, "all cells"},
      {{"--resume", ab.folder / "empty"}, "journal"},
      {{"--resume", ab.folder / "empty", suite}, "name no sides and no suite"}};
  for (const auto& [words, complaint] : alone) {
    std::vector<std::string> all{program(), "ab"};
    all.insert(all.end(), words.begin(), words.end());
    const Finished finished = run(all, 120);
    INFO(complaint << "\n" << finished.out << finished.err);
    CHECK(finished.exit_code == 2);
    CHECK_THAT(finished.err, Contains(complaint));
  }
  for (const Json& gate : {Json{{"relative_change", -0.1}}, Json{{"rounds_most", 0}},
                           Json{{"seconds_most", -1}}, Json{{"confirm", 0.5}}}) {
    const Finished finished = ab({"--base", here, "--new", here, with_gate(gate)});
    INFO(gate.dump() << finished.err);
    CHECK(finished.exit_code == 2);
    CHECK_THAT(finished.err, Contains("/gate/" + gate.begin().key()));
  }
}

TEST_CASE("ab tells of a worker of another protocol, and of one that dies", "[program][ab]") {
  const Ab ab;
  const std::string suite = small_suite(ab);
  std::filesystem::create_directories(ab.folder / "dead");
  write_file(ab.folder / "dead/attnbench-worker", "#!/bin/sh\nkill -9 $$\n");
  std::filesystem::permissions(ab.folder / "dead/attnbench-worker",
                               std::filesystem::perms::owner_all);
  const Finished dead = ab({"--base", test::build_folder(), "--new", ab.folder / "dead", suite});
  INFO(dead.err);
  CHECK(dead.exit_code == 3);
  CHECK_THAT(dead.err, Contains("dead/attnbench-worker") && Contains("SIGKILL"));
  // It says another number where hello is asked for.
  std::filesystem::create_directories(ab.folder / "old");
  write_file(ab.folder / "old/attnbench-worker",
             "#!/usr/bin/env python3\n"
             "import socket, sys\n"
             "peer = socket.socket(fileno=int(sys.argv[2]))\n"
             "peer.recv(65536)\n"
             "peer.sendall(b'{\"type\": \"hello\", \"protocol\": 99}\\n')\n"
             "peer.recv(65536)\n");
  std::filesystem::permissions(ab.folder / "old/attnbench-worker",
                               std::filesystem::perms::owner_all);
  const Finished old = ab({"--base", test::build_folder(), "--new", ab.folder / "old", suite});
  INFO(old.err);
  CHECK(old.exit_code == 3);
  CHECK_THAT(old.err, Contains("protocol 99") && Contains("this attnbench 1"));
}
