// A task that classifies, as the tasks of Long Range Arena do, run as the worker runs it.
#include <algorithm>

#include "tasks/training/task.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/tasks/run_cell.hpp"
#include "tests/tasks/training/synthetic_classes.hpp"

using namespace attnbench;
using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

class SyntheticTask final : public tasks::training::TrainingTask {
 public:
  explicit SyntheticTask(std::int64_t towers = 1) : towers_(towers) {}
  std::string name() const override { return "synthetic"; }
  std::string title() const override { return "classes of short sequences"; }
  bool classifies() const override { return true; }
  std::vector<Option> data_settings() const override {
    std::vector<Option> declared = {tasks::training::input_setting()};
    for (const auto& [size, value] : {std::pair("vocabulary", SyntheticClasses::vocabulary),
                                      std::pair("length", SyntheticClasses::length)}) {
      Option option = Option::integer(size, value, "of the data", 1);
      declared.push_back(option);
    }
    return declared;
  }
  std::unique_ptr<tasks::training::DataSet> data_set(const Options& settings,
                                                     std::uint64_t) const override {
    return std::make_unique<SyntheticClasses>(towers_, settings.text("input") == "values");
  }
  void add_facts(const tasks::ResolvedCell&, const tasks::TaskForecast&,
                 const tasks::training::DataSet& data, const tasks::training::StateBytes&,
                 result::Training& record) const override {
    record.chance = 1.0 / static_cast<double>(data.classes());
  }

 private:
  std::int64_t towers_;
};

const Settings few_steps{
    {"batch", n(16)},     {"width", n(16)},          {"heads", n(2)},
    {"steps", n(3)},      {"evaluate_every", n(2)},  {"dropout", 0.1},
    {"head_width", n(8)}, {"projection_bias", true}, {"positions", s("learned")}};

struct Outcome {
  tasks::TaskForecast forecast;
  Json check, sections;
};

Outcome classified_cell(const SyntheticTask& task, const std::string& mechanism,
                        const Settings& settings, const Settings& options = {}) {
  tasks::ResolvedCell cell;
  cell.id = "test";
  cell.mechanism = mechanism;
  cell.implementation = "auto";
  cell.said = options;
  cell.settings = Options::resolve(task.settings(), settings);
  Outcome out;
  out.forecast = task.forecast(registry(), cell);
  if (!out.forecast.support) return out;
  worker::ChildContext context(quick_settings(0), registry(), {});
  const auto work = task.make(registry(), cell);
  work->prepare(context);
  out.check = work->check(context);
  out.sections = work->run(context);
  return out;
}

}  // namespace

TEST_CASE("every bidirectional mechanism classifies, and its mixes are checked with padding",
          "[classification]") {
  worker::install_counting_allocator();
  int seen = 0;
  for (const std::string& name : registry().mechanisms()) {
    INFO(name);
    const auto& patterns = registry().entry(name).patterns;
    if (std::find(patterns.begin(), patterns.end(), Pattern::bidirectional) == patterns.end()) {
      continue;
    }
    ++seen;
    Settings options;
    if (name == "rg_lru") options["directions"] = s("both");
    if (name == "macchiato") {
      options["directions"] = s("both");
      options["before"] = s("rg_lru");
    }
    const Outcome out = classified_cell(SyntheticTask(), name, few_steps, options);
    INFO(out.forecast.support.reason);
    REQUIRE(out.forecast.support);
    INFO(out.check.dump());
    CHECK(out.check["verdict"] == "ok");
    CHECK(out.sections["training"]["curve"].size() == 2);
    CHECK(out.sections["training"]["selection"]["keep"] == "best_validation");
  }
  CHECK(seen >= 14);
}

TEST_CASE("two sequences, numbers and a cls token pass through a task", "[classification]") {
  worker::install_counting_allocator();
  const Outcome two = classified_cell(SyntheticTask(2), "softmax", few_steps);
  CHECK(two.check["verdict"] == "ok");
  CHECK(two.forecast.problem.batch == 32);
  CHECK(two.sections["training"]["confusion"].size() == 2);
  const Outcome numbers =
      classified_cell(SyntheticTask(), "linear", with(few_steps, {{"input", s("values")}}));
  CHECK(numbers.check["verdict"] == "ok");
  const Outcome cls =
      classified_cell(SyntheticTask(), "linformer", with(few_steps, {{"pooling", s("cls")}}));
  CHECK(cls.check["verdict"] == "ok");
  CHECK(cls.forecast.problem.length == 21);
  const auto causal_cls = [&] {
    classified_cell(SyntheticTask(), "softmax",
                    with(few_steps, {{"pooling", s("cls")}, {"pattern", s("causal")}}));
  };
  CHECK_THROWS_WITH(causal_cls(), Contains("pooling last or mean"));
  const Outcome forward = classified_cell(SyntheticTask(), "rg_lru", few_steps);
  CHECK_THAT(forward.forecast.support.reason, Contains("directions=both"));
}

TEST_CASE("examples of classes are written without their padding", "[classification]") {
  for (const std::int64_t towers : {1, 2}) {
    const TemporaryFolder folder;
    const SyntheticClasses data(towers);
    tasks::training::write_jsonl(data, folder.path());
    const std::string text = read_file(folder / "test.jsonl");
    const Json line = Json::parse(text.substr(0, text.find('\n')));
    const auto batch = data.batch(tasks::training::Split::test, 0, {0});
    CHECK(line["label"] == batch.labels[0].item<std::int64_t>());
    const Json first = towers == 1 ? line["tokens"] : line["tokens"][0];
    CHECK(first.size() == static_cast<std::size_t>(batch.lengths[0].item<std::int64_t>()));
    CHECK(first[0] == batch.tokens[0][0].item<std::int64_t>());
    if (towers == 2) {
      CHECK(line["tokens"][1].size() ==
            static_cast<std::size_t>(batch.lengths[1].item<std::int64_t>()));
    }
    CHECK_FALSE(line.contains("questions"));
  }
}
