#include "harness/run/worker/plugin_name.hpp"

#include "tests/support/catch.hpp"

using attnbench::run::PluginName;

TEST_CASE("a plugin may be named with a word for its mechanisms", "[run]") {
  const auto check = [](const char* text, const char* as, const char* path) {
    INFO(text);
    CHECK(PluginName(text).as == as);
    CHECK(PluginName(text).path == path);
  };
  check("build/libmine.so", "", "build/libmine.so");
  check("new=build/libmine.so", "new", "build/libmine.so");
  check("v_2=a=b.so", "v_2", "a=b.so");
  check("a b=c.so", "", "a b=c.so");
  check("New=c.so", "", "New=c.so");
  check("dir/x=c.so", "", "dir/x=c.so");
  check("=c.so", "", "=c.so");
  check("new=", "new", "");
}
