#include "harness/worker/plugins.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/variable.hpp"

using namespace attnbench;
using Catch::Matchers::Contains;

namespace {

/// What becomes of misbehave, which does `on_load` when it is registered.
PluginSpec loaded(const std::string& on_load, double limit_seconds = 60) {
  const test::Variable told("MISBEHAVE_ON_LOAD", on_load);
  const worker::Loaded all =
      worker::load_all({test::build_folder() + "/lib/libmisbehave.so"}, {}, limit_seconds);
  CHECK(all.registry.mechanisms() == Registry::with_builtins().mechanisms());
  return all.plugins.at(0);
}

}  // namespace

TEST_CASE("a plugin clashes where a name of it is taken, not where it says so", "[plugins]") {
  CHECK(loaded("clash").status == "clash");
  const PluginSpec words = loaded("words");
  CHECK(words.status == "refused");
  CHECK_THAT(words.reason, Contains("the name softmax is taken"));
}

TEST_CASE("a plugin that does not come back is left out after its limit", "[plugins]") {
  const PluginSpec hung = loaded("hang", 1);
  CHECK(hung.status == "crashed");
  CHECK_THAT(hung.reason, Contains("while it was loaded: no answer within 1 s"));
}
