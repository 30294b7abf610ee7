#include "harness/worker/python_host.hpp"

#include <signal.h>
#include <unistd.h>

#include "core/process/python_word.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/variable.hpp"

using namespace attnbench;
using Catch::Matchers::Contains;

namespace {

/// A mechanism whose title says from which process its own was forked, how many threads that one
/// has, and a number drawn by NumPy.
const char* const tells = R"(
import os
import numpy

def f(query, key, value, causal):
    return value

parent = os.getppid()
threads = len(os.listdir(f"/proc/{parent}/task"))
f.title = f"{parent} {threads} {numpy.random.random()}"
)";

struct Told {
  pid_t parent = 0;
  int threads = 0;
  double drawn = 0;
};

Told told(const worker::PythonPlugin& plugin) {
  INFO(plugin.outcome.reason);
  REQUIRE(plugin.outcome.status == Status::ok);
  Told found;
  std::istringstream(plugin.description.title) >> found.parent >> found.threads >> found.drawn;
  return found;
}

}  // namespace

TEST_CASE("children of the host of Python begin with what it has imported", "[python]") {
  if (!std::filesystem::exists(test::build_folder() + "/lib/libattnbench-python.so")) {
    WARN("needs Python: the worker was built without it");
    return;
  }
  const test::TemporaryFolder folder;
  const test::Variable environment("VIRTUAL_ENV", std::nullopt);
  const test::Variable cache("XDG_CACHE_HOME", folder.path().string());
  std::vector<std::string> words;
  for (const std::string file : {"one.py", "two.py"}) {
    test::write_file(folder / file, tells);
    words.push_back("python:" + (folder / file).string() + ":f");
  }
  CHECK_FALSE(worker::remembered_plugins(words));
  worker::PythonHost host({}, 1);
  std::vector<std::string> steps;
  const auto plugins =
      host.declarations(words, 120, [&](const std::string& word) { steps.push_back(word); });
  CHECK(steps == words);
  REQUIRE(plugins.size() == 2);
  const Told one = told(plugins[0]), two = told(plugins[1]);
  CHECK(one.parent == two.parent);
  CHECK(one.parent != getpid());
  CHECK(one.threads == 1);  // a copy of a process with several would hang
  CHECK(one.drawn != two.drawn);

  SECTION("what it declares is remembered, and planned there") {
    CHECK(worker::remembered_plugins(words)->size() == 2);
    host.load(words, plugins);
    const worker::Loaded loaded = worker::load_all(words, plugins);
    Cell cell;
    cell.id = "one";
    cell.task = "kernel";
    cell.mechanism = plugins[0].mechanism;
    const auto planned = host.plan({cell});
    REQUIRE(planned.size() == 1);
    CHECK(planned[0].reason == "");
    CHECK(planned[0].supported);
  }
  SECTION("where it has ended, that is said") {
    kill(one.parent, SIGKILL);
    CHECK_THROWS_WITH(host.plan({}), Contains("has ended") || Contains("closed"));
    CHECK_THAT(host.process().outcome().reason, Contains("killed"));
  }
}
