// Workloads of serving from the command line: chunks after a past, batches of several lengths.
#include <nlohmann/json.hpp>

#include "tests/end_to_end/runs.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace attnbench::test;
using Catch::Contains;

Json planned(const std::string& line) {
  const Finished finished = call("plan " + line + " --json");
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  return Json::parse(finished.out).at(0).at("cells");
}

}  // namespace

TEST_CASE("serving: a small part of the suite runs to its end", "[program]") {
  const TemporaryFolder folder;
  const std::string out = folder / "run";
  const Finished ran = call(
      "run serving --profile quick --only flash --skip past=(2048|8192)\\b "
      "--set heads=2 head_dim=16 max_seconds=0.02 --rounds 1 --now "
      "--no-ceilings --out " +
      out);
  INFO(ran.out << ran.err);
  REQUIRE(ran.exit_code == 0);
  const Json result = Json::parse(read_file(out + "/result.json"));
  std::map<std::string, int> cells;
  for (const Json& cell : result["attnbench"]["cells"]) {
    INFO(cell.dump());
    CHECK(was_measured(cell));
    CHECK(cell["check"]["verdict"] == "ok");
    const std::string task = cell["task_label"];
    ++cells[task];
    const Json& settings = cell["settings"];
    if (task == "chunk") {
      CHECK(cell["problem"]["length"] == 128);
      CHECK(cell["problem"]["key_length"] == 128 + settings["past"].get<int>());
      CHECK(cell.value("metrics", Json::object()).contains("state_bytes") ==
            (settings["past"] != 0));
    } else if (task == "ragged") {
      CHECK(cell["metrics"]["executed_tokens"] == 4 * 512);
      CHECK(settings["batch"] == 4);
    } else {
      CHECK(cell["metrics"]["tokens_per_second"] > 0);
    }
  }
  CHECK(cells == std::map<std::string, int>{{"chunk", 2}, {"ragged", 2}, {"decode", 2}});
  const std::string page = read_file(out + "/index.html");
  CHECK_THAT(page, Contains("512+256+128+32"));
}

TEST_CASE("serving: past and lengths are settings of the command line", "[program]") {
  const Json chunk = planned("flash latte --length 16 --past 0,64").at(1);
  CHECK(chunk["settings"]["past"] == 64);
  CHECK(chunk["forecast"]["problem"]["length"] == 16);
  CHECK(chunk["forecast"]["problem"]["key_length"] == 80);
  const Json whole = planned("flash --length 80").at(0);
  const Json before = planned("flash --length 64").at(0);
  const auto flops = [](const Json& cell) {
    return cell["forecast"]["cost"]["model_flops"].get<double>();
  };
  CHECK(flops(chunk) == Approx(flops(whole) - flops(before)));
  for (const char* task : {"kernel", "decode"}) {
    const Json ragged = planned(std::string("flash --set lengths=20+9 --task ") + task).at(0);
    CHECK(ragged["settings"]["batch"] == 2);
    CHECK(ragged["settings"]["length"] == 20);
  }
}

TEST_CASE("serving: what contradicts itself is refused, with what was expected", "[program]") {
  const std::pair<const char*, const char*> faults[] = {
      {"flash --past=-1", "--set past=-1: is -1; expected an integer from 0 to"},
      {"flash --past 64 --pattern bidirectional", "only causal tokens continue from a state"},
      {"flash --past 64 --pass forward+backward", "a state has no gradient"},
      {"flash --past 64 --scope layer", "the scope is layer: say mix"},
      {"flash --past 64 --set lengths=20+9", "say past or lengths"},
      {"flash --set lengths=20+0", "0 is no length"},
      {"flash --set lengths=20,9", "is 9; expected a word: tokens of each sequence"},
      {"flash --set lengths=20+9 batch=3", "make it 2, the number of them"},
      {"flash --set lengths=20+9 --length 64", "make it 20, the longest of them"},
      {"flash --set lengths=20+9 --pattern cross", "the pattern cross has keys of others"},
      {"flash --set lengths=20+9 scope=model --task decode", "say scope mix"},
  };
  const TemporaryFolder folder;
  for (const auto& [line, expected] : faults) {
    INFO(line);
    const Finished refused =
        call(std::string("run ") + line + " --out " + (folder / "run").string());
    CHECK(refused.exit_code == 2);
    CHECK_THAT(refused.err, Contains(expected));
  }
  const Finished stateless = call("plan nystromformer --past 64 --pattern causal --cells");
  CHECK_THAT(stateless.out + stateless.err, Contains("unsupported"));
}
