#include "tasks/task.hpp"

#include "tasks/training/task.hpp"
#include "tests/support/catch.hpp"
#include "tests/tasks/run_cell.hpp"

using namespace attnbench;
using namespace attnbench::test;
using tasks::training::Split;

TEST_CASE("tasks are found by name, sorted", "[task]") {
  const auto& all = tasks::builtin_tasks().all();
  REQUIRE(all.size() >= 2);
  for (std::size_t i = 1; i < all.size(); ++i) CHECK(all[i - 1]->name() < all[i]->name());
  CHECK(tasks::find_task("kernel").axis() == "length");
  CHECK(tasks::find_task("decode").axis() == "length");
}

TEST_CASE("an unknown task is refused with the nearest one", "[task]") {
  try {
    tasks::find_task("kernal");
    FAIL("found a task that is not there");
  } catch (const UsageError& error) {
    const std::string message = error.what();
    CHECK(message.find("did you mean \"kernel\"") != std::string::npos);
    CHECK(message.find("decode") != std::string::npos);
  }
}

TEST_CASE("every setting declares a default of its own type, and a meaning", "[task]") {
  for (const auto& task : tasks::builtin_tasks().all()) {
    CHECK_NOTHROW(Options::resolve(task->settings(), {}));
    for (const Option& option : task->settings()) CHECK_FALSE(option.meaning.empty());
    CHECK_FALSE(task->figures().empty());
  }
}

namespace {

/// A task of any name, with one setting.
class Named final : public tasks::Task {
 public:
  explicit Named(std::string name, OptionValue fallback = std::int64_t{1})
      : name_(std::move(name)), fallback_(std::move(fallback)) {}
  std::string name() const override { return name_; }
  std::string title() const override { return "a test's"; }
  std::vector<Option> settings() const override {
    return {{"length", OptionType::integer, fallback_, "tokens", 1.0, {}, {}}};
  }
  std::vector<std::string> figures() const override { return {"time"}; }
  std::string axis() const override { return "length"; }
  tasks::TaskForecast forecast(const Registry&, const tasks::ResolvedCell&) const override {
    return {};
  }
  std::unique_ptr<tasks::Work> make(const Registry&, const tasks::ResolvedCell&) const override {
    return nullptr;
  }

 private:
  std::string name_;
  OptionValue fallback_;
};

}  // namespace

TEST_CASE("a task table takes further tasks, in copies, and refuses invalid ones", "[task]") {
  tasks::TaskTable table = tasks::TaskTable::with_builtins();
  const std::size_t count = table.all().size();
  const tasks::TaskTable before = table;
  table.add(std::make_shared<Named>("a.first"));
  CHECK(table.all().front()->name() == "a.first");
  CHECK(table.all().size() == count + 1);
  CHECK(before.all().size() == count);
  for (const char* name : {"kernel", "a.first"}) {
    CHECK_THROWS_WITH(table.add(std::make_shared<Named>(name)), Catch::Contains("is taken"));
    CHECK_THROWS_AS(table.add(std::make_shared<Named>(name)), NameTaken);
  }
  for (const char* name : {"", "Two Words", ".a", "a.", "9"}) {
    CHECK_THROWS_AS(table.add(std::make_shared<Named>(name)), PluginError);
  }
  CHECK_THROWS_AS(table.add(std::make_shared<Named>("b", OptionValue{std::string("x")})),
                  PluginError);
  CHECK(table.all().size() == count + 1);
}

TEST_CASE("generated examples follow seed, split, segment and number alone", "[data]") {
  std::vector<std::pair<const char*, Settings>> generated{
      {"mqar", {{"vocabulary", n(64)}, {"train_mix", s("16x3:20, 16x3:20")}}}, {"copy", {}}};
  for (const char* exercise : {"in_context_recall", "noisy_recall", "fuzzy_recall",
                               "selective_copying", "compression", "memorization"}) {
    generated.push_back({"mad", {{"exercise", s(exercise)}}});
  }
  for (const auto& [name, said] : generated) {
    INFO(name << " " << (said.empty() ? "" : to_string(said.begin()->second)));
    const auto& task = dynamic_cast<const tasks::training::TrainingTask&>(tasks::find_task(name));
    const Options settings = Options::resolve(task.settings(), said);
    const auto data = task.data_set(settings, 1);
    const auto tokens = [](const tasks::training::DataSet& from, Split split, std::size_t segment,
                           std::int64_t number) {
      return from.batch(split, segment, {number}).tokens;
    };
    const at::Tensor one = tokens(*data, Split::train, 0, 5);
    CHECK(at::equal(one, tokens(*task.data_set(settings, 1), Split::train, 0, 5)));
    CHECK_FALSE(at::equal(one, tokens(*task.data_set(settings, 2), Split::train, 0, 5)));
    CHECK_FALSE(at::equal(one, tokens(*data, Split::validation, 0, 5)));
    CHECK_FALSE(at::equal(one, tokens(*data, Split::test, 0, 5)));
    CHECK_FALSE(at::equal(one, tokens(*data, Split::train, 0, 6)));
    if (data->segments(Split::train).size() < 2) continue;
    CHECK_FALSE(at::equal(one, tokens(*data, Split::train, 1, 5)));
  }
}
