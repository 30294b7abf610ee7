// attnbench ab on suites: builds, plugins, options and implementations as sides.
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "tests/end_to_end/ab_bench.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

/// The flags that hold this build against itself.
std::string this_build_twice() {
  return "--base " + test::build_folder() + " --new " + worker_program() + " ";
}

}  // namespace

TEST_CASE("ab holds two builds against each other on suites, by their gates", "[program][ab]") {
  const Ab ab;
  const std::string first = small_suite(ab, {{"mechanisms", {{"tiles", nullptr}}}});
  const std::string second = ab.folder / "second.json";
  const std::string markdown = ab.folder / "ab.md", junit = ab.folder / "ab.xml";
  Json changed = Json::parse(read_file(first));
  changed["name"] = "second";
  changed["mechanisms"] = {{"linear", Json::object()}};
  write_file(second, changed.dump());
  const Finished finished =
      ab(this_build_twice() + first + " " + second +
         " --no-report --json --seconds-most 600 --markdown " + markdown + " --junit " + junit);
  INFO(finished.out << finished.err);
  CHECK((finished.exit_code == 0 || finished.exit_code == 4));
  CHECK_THAT(finished.err, Contains("An A/A run"));
  const Json both = Json::parse(finished.out);
  REQUIRE(both.size() == 2);
  CHECK(both[0]["pairs"][0]["name"] == "kernel plain");
  CHECK(both[1]["pairs"][0]["name"] == "kernel linear");
  for (const Json& one : both) {
    CHECK(one["plan"]["builds"].size() == 2);
    CHECK(one["turns"]["gate"]["relative_change"] == 0.5);
    CHECK(one["turns"]["gate"]["rounds"] == 6);
    CHECK(one["turns"]["gate"]["confidence"] == Approx(0.95));  // of 0.9 for both together
    CHECK(one["turns"]["gate"]["seconds_most"].get<double>() < 600);
    CHECK(one["pairs"][0]["rounds"] == 6);
  }
  CHECK(ab.read("small/ab.json")["pairs"].size() == 1);
  for (const auto& [label, cell] : cells_of(ab.out() + "/second")) CHECK(was_measured(cell));
  CHECK_THAT(read_file(markdown), Catch::StartsWith("<!-- attnbench ab small, ab second") &&
                                      Contains("kernel plain") && Contains("6 rounds"));
  CHECK_THAT(read_file(junit), Contains("<testcase ") && Contains("kernel plain"));
}

TEST_CASE("ab holds two sets of options against each other", "[program][ab]") {
  const Ab ab;
  const std::string suite =
      small_suite(ab, {{"mechanisms", {{"latte", {{"implementation", "chunked"}}}}}});
  const Finished sets =
      ab("--base-set chunk=8 --new-set chunk=16 " + suite + " --rounds 6 --no-report --json");
  INFO(sets.out << sets.err);
  CHECK((sets.exit_code == 0 || sets.exit_code == 4));
  CHECK_THAT(sets.err, Contains("are the same on both sides"));
  const Json verdicts = Json::parse(sets.out);
  CHECK(verdicts["turns"]["base"] == "chunk=8");
  REQUIRE(verdicts["pairs"].size() == 1);
  CHECK(verdicts["pairs"][0]["name"] == "kernel latte");
}

TEST_CASE("ab holds two settings of a mechanism against each other, without a suite",
          "[program][ab][night]") {
  const Ab ab;
  const Finished sets =
      ab("--base-set chunk=8 --new-set chunk=16 latte/chunked --length 64 "
         "--rounds 6 --no-report --json");
  INFO(sets.out << sets.err);
  CHECK((sets.exit_code == 0 || sets.exit_code == 4));
  const Json verdicts = Json::parse(sets.out);
  CHECK(verdicts["turns"]["base"] == "chunk=8");
  REQUIRE(verdicts["pairs"].size() == 1);
  CHECK_THAT(verdicts["pairs"][0]["name"].get<std::string>(), Contains("latte/chunked"));
}

TEST_CASE("ab lists what one plugin alone has, and measures the rest", "[program][ab][night]") {
  const Ab ab;
  const std::string suite = small_suite(ab, {{"mechanisms", {{"mine", {{"use", "misbehave"}}}}}});
  const Finished finished =
      ab("--base " + test::build_folder() + "/lib/libcopying.so --new " + misbehave_plugin() + " " +
         suite + " --no-report --json --skip tiles");
  INFO(finished.out << finished.err);
  CHECK((finished.exit_code == 0 || finished.exit_code == 4));
  const Json pairs = Json::parse(finished.out)["pairs"];
  REQUIRE(pairs.size() == 2);
  CHECK(pairs[1]["name"] == "kernel mine");
  CHECK(pairs[1]["verdict"] == "NEW");
}

TEST_CASE("ab goes on where it was interrupted, and gives the verdict of the rounds there are",
          "[program][ab][processes]") {
  const Ab ab;
  const std::string log = ab.folder / "log";
  const auto records = [&] {
    std::size_t count = 0;
    std::ifstream journal(ab.folder / "run/journal.jsonl");
    for (std::string line; std::getline(journal, line);) {
      count += line.find("\"type\":\"record\"") != std::string::npos ? 1 : 0;
    }
    return count;
  };
  {
    Running running(ab.command(this_build_twice() + small_suite(ab) + " --no-report"), log);
    REQUIRE(wait_until([&] { return records() >= 6; }));
    running.signal(SIGINT);
    CHECK(running.wait() == 130);
  }
  INFO(read_file(log));
  CHECK_THAT(read_file(log), Contains("attnbench ab --resume"));
  const Json early = ab.read("ab.json");
  CHECK(early["state"] == "interrupted");
  CHECK(early["pairs"].size() == 2);
  const std::size_t before = records();
  CHECK(before < 36);
  // What run would not do right goes on with ab.
  const Finished wrong = call("run --resume " + ab.out());
  CHECK(wrong.exit_code == 2);
  CHECK_THAT(wrong.err, Contains("continue with: attnbench ab --resume"));
  const Finished refused = call("ab --margin 0.1 --resume " + ab.out());
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.err, Contains("leave --margin out"));
  const Finished finished = call("ab --no-ceilings --no-report --resume " + ab.out());
  INFO(finished.out << finished.err);
  CHECK((finished.exit_code == 0 || finished.exit_code == 4));
  CHECK(records() == 36);  // two cells, three sides, six rounds: none was measured twice
  CHECK(ab.read("ab.json")["state"] == "complete");
}

TEST_CASE("ab refuses sides and suites of which no verdict follows", "[program][ab]") {
  const Ab ab;
  const std::string suite = small_suite(ab);
  const std::string twice = this_build_twice(), base = "--base " + test::build_folder() + " ";
  const auto with_gate = [&](const std::string& name, const Json& gate) {
    Json changed = Json::parse(read_file(suite));
    changed["gate"] = gate;
    write_file(ab.folder / name, changed.dump());
    return twice + (ab.folder / name).string();
  };
  const std::string empty = ab.folder / "empty", same_name = ab.folder / "other.json";
  std::filesystem::create_directories(empty);
  write_file(same_name, read_file(suite));
  // Gates of which no verdict follows: tests/harness/program/compare/gate.cpp.
  const std::vector<std::pair<std::string, std::string>> bad{
      {base + suite, "needs two sides"},
      {twice, "it was given none"},
      {twice + suite + " softmax", "softmax is not one"},
      {twice + suite + " " + suite, "is named twice"},
      {twice + suite + " " + same_name + " --rounds 7", "and one folder: run them apart"},
      {base + "--new " + empty + " " + suite, "there is no attnbench-worker in"},
      {base + "--new ./nowhere " + suite, "neither a folder of a build"},
      {base + "--new flash " + suite, "of one kind"},
      {"--base flash --new flash " + suite, "named twice"},
      {"--base nowhere.so --new nothing.so " + suite, "nowhere.so"},
      {twice + "--base-set chunk=8 " + suite, "choose"},
      {"--base-set length=16 --new-set length=16 " + suite, "the sides are the same"},
      {"--base-set length=16,32 --new-set length=64 " + suite, "one value"},
      {"--base-set lenght=16 --new-set length=64 " + suite, "lenght"},
      {twice + suite + " --only nothing", "nothing"},
      {twice + suite + " --profile none", "profile"},
      {twice + suite + " --rounds 3", "3 rounds give no interval"},
      {with_gate("sure.json", {{"confidence", 1}}), "/gate/confidence"},
      {with_gate("short.json", {{"seconds_most", -1}}), "/gate/seconds_most"}};
  for (const auto& [line, complaint] : bad) {
    const Finished finished = ab(line);
    INFO(complaint << "\n" << finished.out << finished.err);
    CHECK(finished.exit_code == 2);
    CHECK_THAT(finished.err, Contains(complaint));
    CHECK_FALSE(std::filesystem::exists(ab.out()));
  }
  const std::vector<std::pair<std::string, std::string>> alone{
      {twice + "mqar_smoke --only softmax", "all cells"},
      {"--resume " + empty, "journal"},
      {"--resume " + empty + " " + suite, "name no sides and no suite"}};
  for (const auto& [line, complaint] : alone) {
    const Finished finished = call("ab " + line);
    INFO(complaint << "\n" << finished.out << finished.err);
    CHECK(finished.exit_code == 2);
    CHECK_THAT(finished.err, Contains(complaint));
  }
}

TEST_CASE("ab tells of a worker of another protocol, and of one that dies", "[program][ab]") {
  const Ab ab;
  const std::string base = "--base " + test::build_folder() + " --new ";
  const std::string suite = small_suite(ab);
  std::filesystem::create_directories(ab.folder / "dead");
  write_file(ab.folder / "dead/attnbench-worker", "#!/bin/sh\nkill -9 $$\n");
  std::filesystem::permissions(ab.folder / "dead/attnbench-worker",
                               std::filesystem::perms::owner_all);
  const Finished dead = ab(base + (ab.folder / "dead").string() + " " + suite);
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
  const Finished old = ab(base + (ab.folder / "old").string() + " " + suite);
  INFO(old.err);
  CHECK(old.exit_code == 3);
  CHECK_THAT(old.err, Contains("protocol 99") && Contains("this attnbench 1"));
}
