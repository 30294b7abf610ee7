#include "tasks/task.hpp"

#include "tests/support/catch.hpp"

using namespace attnbench;

TEST_CASE("tasks are found by name, sorted", "[task]") {
  const auto& all = tasks::all_tasks();
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
  for (const auto& task : tasks::all_tasks()) {
    CHECK_NOTHROW(Options::resolve(task->settings(), {}));
    for (const Option& option : task->settings()) CHECK_FALSE(option.meaning.empty());
    CHECK_FALSE(task->figures().empty());
  }
}
