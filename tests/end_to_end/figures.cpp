// attnbench figures: the index, and runs and pictures in a folder of their own.
#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/end_to_end/runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/process.hpp"

namespace {

using namespace attnbench::test;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

Finished figures(const std::string& line, const std::string& folder = test::source_folder()) {
  return call("figures " + line, {}, folder);
}

/// A folder with one small suite that follows a figure.
class Repository {
 public:
  Repository() {
    fs::create_directories(folder_ / "suites/form");
    fs::copy(source_folder() + "/suites/form/suite.schema.json", folder_ / "suites/form");
    write_suite(R"([64, 128])");
  }
  void write_suite(const std::string& lengths) const {
    write_file(folder_ / "suites/latte_v2_figure_7.json", R"({"name": "latte_v2_figure_7",
      "title": "Time over length", "figure": "latte_v2.figure_7", "task": "kernel",
      "set": {"heads": 2, "head_dim": 16, "length": 4096}, "mechanisms": ["linear"],
      "figures": ["time"],
      "profiles": {"quick": {"set": {"length": )" + lengths + R"(},
                             "measure": {"rounds": 2, "max_seconds": 0.02}}}})");
  }
  std::string path() const { return folder_.path(); }
  std::string stored() const { return folder_ / "reports/gallery/latte_v2_figure_7.json"; }
  Json index() const { return Json::parse(figures("--json", path()).out); }
  std::string state() const {
    const Json all = index();
    for (const Json& figure : all["figures"]) {
      if (!figure["suites"].empty()) return figure["suites"][0]["state"];
    }
    return "no suite";
  }
  std::vector<std::string> runs() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_ / "runs/figures")) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

 private:
  TemporaryFolder folder_;
};

const std::string quickly = "--run --no-report --no-ceilings --now";

}  // namespace

TEST_CASE("figures: 31 lines, each with a suite or a reason", "[program][figures]") {
  const Finished plain = figures("");
  INFO(plain.err);
  REQUIRE(plain.exit_code == 0);
  CHECK_THAT(plain.out, Contains("latte_v1.figure_2") && Contains("lavo.table_9") &&
                            Contains("Multi-News") && Contains("crossover_map"));
  const Json all = Json::parse(figures("--json").out);
  CHECK(all["figures"].size() == 31);
  for (const Json& figure : all["figures"]) {
    CHECK((!figure["suites"].empty() || !figure["missing"].get<std::string>().empty()));
  }
  const Json lavo = Json::parse(figures("lavo --json").out);
  CHECK(lavo["figures"].size() == 11);
  CHECK(lavo["others"].empty());
  // From wherever the program is called.
  CHECK_THAT(figures("blog", "/").out, Contains("blog.table_2"));
}

TEST_CASE("figures --claims: what papers claim, by stored results or by a run",
          "[program][figures]") {
  const Finished plain = figures("--claims latte_v1");
  INFO(plain.err);
  REQUIRE(plain.exit_code == 0);
  CHECK_THAT(plain.out,
             Contains("latte_v1.scan_overtakes") && Contains(" claims: ") && Contains(" not run"));
  const Json one = Json::parse(figures("--claims latte_v1.scan_overtakes --json").out);
  REQUIRE(one.size() == 1);
  CHECK(one[0]["evidence"]["outcome"] == "seen");
  const std::string run = source_folder() + "/reports/gallery/copy_task.json";
  for (const Json& claim : Json::parse(figures("--claims --json " + run).out)) {
    CHECK(claim["suite"] == "copy_task");
  }
  const Finished slip = figures("--claims latte_v1.scan_overtake");
  CHECK(slip.exit_code == 2);
  CHECK_THAT(slip.err, Contains("did you mean \"latte_v1.scan_overtakes\"?"));
  CHECK(figures("--claims --run").exit_code == 2);
}

TEST_CASE("figures: words that name nothing, and settings, are refused", "[program][figures]") {
  const Finished slip = figures("latte_v1.figure_3O");
  CHECK(slip.exit_code == 2);
  CHECK_THAT(slip.err, Contains("did you mean \"latte_v1.figure_3\"?"));
  const Finished set = figures("--run --length 12");
  CHECK(set.exit_code == 2);
  CHECK_THAT(set.err, Contains("as their suites say"));
}

TEST_CASE("figures: measures once, and again when the suite changes", "[program][figures]") {
  const Repository here;
  CHECK(here.state() == "none");
  const Finished first = figures(quickly, here.path());
  INFO(first.out << first.err);
  REQUIRE(first.exit_code == 0);
  CHECK(here.state() == "current");
  const std::string kept = read_file(here.stored());
  CHECK_THAT(kept, !Contains("samples_seconds") && Contains("\"profile\":\"quick\""));
  const Finished second = figures(quickly, here.path());
  CHECK(second.exit_code == 0);
  CHECK_THAT(second.out, Contains("every stored result is current"));
  CHECK(here.runs().size() == 1);

  here.write_suite("[64, 128, 256]");
  CHECK(here.state() == "stale");
  CHECK(figures(quickly, here.path()).exit_code == 0);
  CHECK(here.state() == "current");
  CHECK(Json::parse(read_file(here.stored()))["attnbench"]["cells"].size() == 3);
  CHECK(here.runs().size() == 2);
  // What is no result may be somebody's file. By --force it is replaced; what the run had is taken.
  write_file(here.stored(), "{}");
  CHECK(here.state() == "unreadable");
  CHECK(figures(quickly, here.path()).exit_code == 2);
  CHECK(read_file(here.stored()) == "{}");
  CHECK(figures(quickly + " --force", here.path()).exit_code == 0);
  CHECK(here.state() == "current");
  CHECK(here.runs().size() == 2);
}

TEST_CASE("figures --run: goes on after Ctrl-C", "[program][figures][processes]") {
  const Repository here;
  here.write_suite("[64, 128, 256, 512, 1024, 2048, 4096]");
  const std::string line =
      "cd '" + here.path() + "' && exec '" + program() + "' figures " + quickly;
  {
    Running running({"/bin/sh", "-c", line}, here.path() + "/output");
    const auto records = [&] {
      std::error_code ignored;
      if (!fs::exists(here.path() + "/runs/figures", ignored)) return false;
      const auto names = here.runs();
      if (names.empty()) return false;
      const std::string journal = here.path() + "/runs/figures/" + names[0] + "/journal.jsonl";
      return fs::exists(journal, ignored) &&
             read_file(journal).find("\"record\"") != std::string::npos;
    };
    REQUIRE(wait_until(records));
    running.signal(SIGINT);
    CHECK(running.wait() == 130);
  }
  CHECK_FALSE(fs::exists(here.stored()));
  const Finished resumed = figures(quickly, here.path());
  INFO(resumed.out << resumed.err);
  CHECK(resumed.exit_code == 0);
  CHECK(here.runs().size() == 1);
  CHECK(here.state() == "current");
}
