#include "attention/plugin.hpp"

#include "tests/support/catch.hpp"

using namespace attnbench;

namespace {

std::string plugin(const std::string& name) {
  return std::string(ATTNBENCH_BINARY_DIR) + "/plugins/" + name + ".so";
}

/// The refusal, without the file's place, which must begin it.
std::string refusal(const std::string& path, Registry& registry) {
  try {
    load_plugin(path, registry);
  } catch (const PluginError& error) {
    const std::string text = error.what();
    const std::string begin = "plugin " + path;
    CHECK(text.compare(0, begin.size(), begin) == 0);
    return text.substr(begin.size());
  }
  return "taken";
}

}  // namespace

TEST_CASE("plugin: a good one adds a mechanism, an alias and an implementation") {
  auto registry = Registry::with_builtins();
  load_plugin(plugin("good"), registry);
  const Resolved resolved = registry.resolve("average");
  CHECK(resolved.entry->name == "mean");
  CHECK(registry.entry("softmax").find_implementation("from_plugin") != nullptr);
  Problem problem;
  problem.batch = 2;
  problem.length = problem.key_length = 4;
  problem.value_dim = 3;
  problem.pattern = Pattern::bidirectional;
  const auto choice = Registry::choose(*resolved.entry, "auto", {}, problem);
  const auto mechanism = resolved.entry->make({}, problem);
  Inputs inputs;
  inputs.tensors["value"] = at::rand({2, 1, 4, 3});
  const auto mixed = choice.implementation->mix(*mechanism, inputs, nullptr);
  CHECK(at::allclose(mixed.output.select(2, 3), inputs["value"].mean(2)));
}

TEST_CASE("plugin: loaded twice clashes with itself") {
  auto registry = Registry::with_builtins();
  load_plugin(plugin("good"), registry);
  CHECK(refusal(plugin("good"), registry) ==
        " failed while registering: the name mean is taken; nothing of it was taken");
}

TEST_CASE("plugin: refusals name the cause and what to do, and leave the registry as it was") {
  auto registry = Registry::with_builtins();
  const auto count = registry.entry("softmax").implementations.size();
  CHECK_THAT(refusal(plugin("wrong_stamp"), registry),
             Catch::StartsWith(" is refused: it was built against LibTorch 9.9.9") &&
                 Catch::EndsWith(": rebuild the plugin against the latter"));
  CHECK(refusal(plugin("no_stamp"), registry) ==
        " has no symbol attnbench_plugin_stamp: write ATTNBENCH_PLUGIN(function) in one of its "
        "files and rebuild it");
  CHECK_THAT(refusal(plugin("no_register"), registry),
             Catch::StartsWith(" has no symbol attnbench_plugin_register"));
  CHECK(refusal(plugin("throws"), registry) ==
        " failed while registering: the tables are missing; nothing of it was taken");
  CHECK(refusal(plugin("clash"), registry) ==
        " failed while registering: the name softmax is taken; nothing of it was taken");
  CHECK_THAT(refusal(plugin("unresolved"), registry),
             Catch::StartsWith(" cannot be loaded: ") &&
                 Catch::Contains("function_of_another_version") &&
                 Catch::EndsWith("rebuild it against this attnbench"));
  CHECK(refusal(plugin("nowhere"), registry) == ": there is no such file");
  CHECK(registry.entry("softmax").implementations.size() == count);
}

TEST_CASE("plugin: a stamp tells which side to rebuild") {
  CHECK(stamp_refusal(current_stamp()).empty());
  auto stamp = current_stamp();
  stamp.abi = ATTNBENCH_ABI + 1;
  CHECK_THAT(stamp_refusal(stamp), Catch::Contains("rebuild attnbench"));
  stamp.abi = ATTNBENCH_ABI - 1;
  CHECK_THAT(stamp_refusal(stamp), Catch::EndsWith("rebuild the plugin"));
  stamp = current_stamp();
  attnbench::detail::copy_text(stamp.compiler, "Clang 30 C++20");
  CHECK_THAT(stamp_refusal(stamp), Catch::Contains("it was compiled by Clang 30 C++20"));
  stamp = current_stamp();
  for (char& c : stamp.magic) c = 'x';
  CHECK_THAT(stamp_refusal(stamp), Catch::Contains("not one of attnbench"));
}
