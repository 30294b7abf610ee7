// Classification of prepared rows as a user runs it: by steps, and what cannot be trained. Kills
// are in train.cpp: the trainer is the same.
#include "tests/end_to_end/training_suite.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/stored_result.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

/// Short ListOps rows, prepared once for all that look at them.
const fs::path& prepared_rows() {
  static const TemporaryFolder folder;
  static const fs::path data = folder / "data";
  if (!fs::exists(data)) {
    const Finished done = call(
        "data lra.listops --set length_minimum=10 --set length_maximum=60 --set depth=5 "
        "--set train_examples=640 --set validation_examples=100 --set test_examples=100 "
        "--out " +
        data.string());
    INFO(done.err);
    REQUIRE(done.exit_code == 0);
  }
  return data;
}

/// A suite of those rows, and its run.
class ListOpsRun {
 public:
  explicit ListOpsRun(const Json& more = Json::object(),
                      const Json& mechanisms = {{"softmax", Json::object()}},
                      const fs::path& data = prepared_rows()) {
    Json set = {{"length_minimum", 10},   {"length_maximum", 60},  {"depth", 5},
                {"length", 64},           {"train_examples", 640}, {"validation_examples", 100},
                {"test_examples", 100},   {"width", 32},           {"heads", 2},
                {"positions", "learned"}, {"batch", 32},           {"steps", 8},
                {"evaluate_every", 2},    {"learning_rate", 0.003}};
    set.update(more);
    write_file(
        folder_ / "suite.json",
        Json{{"name", "listops"}, {"task", "lra.listops"}, {"set", set}, {"mechanisms", mechanisms}}
            .dump(1));
    finished =
        call("run " + (folder_ / "suite.json").string() + " --out " + out().string() +
             " --no-ceilings --no-report --progress plain --threads 2 --data " + data.string());
  }
  fs::path out() const { return folder_ / "run"; }

  Finished finished;

 private:
  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("classes are learned by steps, and the record tells what each rule selects",
          "[train][lra]") {
  const ListOpsRun run;
  INFO(run.finished.err);
  REQUIRE(run.finished.exit_code == 0);
  CHECK_THAT(run.finished.out,
             Contains("rule that selects the weights") && Contains("most frequent class"));
  const Json cell = cells_of(run.out()).at("softmax");
  CHECK(was_measured(cell));
  const Json& training = cell["training"];
  CHECK(training["steps"] == 8);
  CHECK(training["stopped"] == "steps");
  REQUIRE(training["curve"].size() == 4);
  CHECK(training["curve"][1]["step"] == 4);
  CHECK(training["curve"][3]["epoch"].get<double>() == Approx(8.0 / 20));  // 640 rows by 32
  CHECK(training["selection"]["keep"] == "best_validation");
  CHECK(training["selection"]["last"]["step"] == 8);
  CHECK(training["selection"]["last"].contains("test_accuracy"));
  CHECK_FALSE(training.contains("look_back"));
  CHECK(training["data"]["splits"]["train"]["rows"] == 640);
  CHECK(training["guess"] == training["data"]["splits"]["test"]["majority"]);
  int examples = 0;
  int right = 0;
  for (std::size_t i = 0; i < 10; ++i) {
    for (const Json& count : training["confusion"].at(i)) examples += count.get<int>();
    right += training["confusion"][i][i].get<int>();
  }
  CHECK(examples == 100);
  CHECK(right / 100.0 == Approx(cell["metrics"]["accuracy"].get<double>()));
}

TEST_CASE("what has no bidirectional form, or too few positions, is unsupported with the reason",
          "[lra]") {
  const ListOpsRun run(Json::object(),
                       {{"gla", Json::object()}, {"linformer", {{"max_length", 32}}}});
  INFO(run.finished.err);
  CHECK(run.finished.exit_code == 2);  // nothing can be measured
  auto cells = cells_of(run.out());
  for (const auto& [label, cell] : cells) CHECK(cell["status"] == "unsupported");
  CHECK_THAT(cells["gla"]["reason"].get<std::string>(), Contains("bidirectional"));
  CHECK_THAT(cells["linformer"]["reason"].get<std::string>(),
             Contains("64 keys") && Contains("max_length, now 32"));
}

TEST_CASE("a length below the longest row is refused unless rows may be cut", "[lra]") {
  const ListOpsRun refused(Json{{"length", 32}});
  INFO(refused.finished.err);
  CHECK(refused.finished.exit_code == 2);
  CHECK_THAT(refused.finished.err + refused.finished.out,
             Contains("length is 32") && Contains("truncate"));
  CHECK_FALSE(fs::exists(refused.out() / "result.json"));
  const ListOpsRun cut(Json{{"length", 32}, {"truncate", true}, {"steps", 2}});
  CHECK(cut.finished.exit_code == 0);
}

TEST_CASE("cells whose data are damaged are skipped with the file and what to do", "[lra]") {
  const TemporaryFolder folder;
  for (const auto& entry : fs::directory_iterator(prepared_rows())) {
    const std::string whole = read_file(entry.path());
    write_file(folder / ("data/" + entry.path().filename().string()),
               whole.substr(0, whole.size() / 2));
  }
  const ListOpsRun run(Json::object(), {{"softmax", Json::object()}}, folder / "data");
  INFO(run.finished.err);
  CHECK(run.finished.exit_code == 3);
  const Json cell = cells_of(run.out()).at("softmax");
  CHECK(cell["status"] == "skipped");
  CHECK_THAT(cell["reason"].get<std::string>(),
             Contains(".prepared") && Contains("attnbench data lra.listops"));
}
