#include "attention/plugin/plugin.hpp"

#include <cstring>
#include <random>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;

namespace {

std::string plugin(const std::string& name) {
  return test::build_folder() + "/plugins/" + name + ".so";
}

/// Whether it registers anything.
bool load_plugin(const std::string& path, Registry& registry) {
  return PluginLibrary(path).register_into(registry);
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

/// What read_stamp says of a file of that content, without the file's place.
std::string complaint_about(const std::string& content) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "some.so";
  test::write_file(path, content);
  try {
    read_stamp(path);
  } catch (const PluginError& error) {
    return std::string(error.what()).substr(("plugin " + path).size());
  }
  return "";
}

std::string with_byte(std::string content, std::size_t at, int value) {
  content.at(at) = static_cast<char>(value);
  return content;
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
        " failed while registering: the name mean is taken; nothing was registered");
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
  CHECK_FALSE(load_plugin(plugin("no_register"), registry));
  CHECK(refusal(plugin("throws"), registry) ==
        " failed while registering: the tables are missing; nothing was registered");
  CHECK(refusal(plugin("clash"), registry) ==
        " failed while registering: the name softmax is taken; nothing was registered");
  CHECK_THAT(refusal(plugin("unresolved"), registry),
             Catch::StartsWith(" cannot be loaded: ") &&
                 Catch::Contains("the plugin itself lacks function_of_another_version(attnbench::"
                                 "Registry&)") &&
                 Catch::EndsWith("and rebuild the plugin"));
  CHECK_THAT(refusal(plugin("unresolved_ours"), registry),
             Catch::Contains("this attnbench does not offer attnbench::function_of_tomorrow()") &&
                 Catch::Contains("rebuild the plugin"));
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
  attnbench::detail::copy_text(stamp.interface, "0123");
  CHECK_THAT(stamp_refusal(stamp), Catch::Contains("other headers of attnbench"));
  stamp = current_stamp();
  for (char& c : stamp.magic) c = 'x';
  CHECK_THAT(stamp_refusal(stamp), Catch::Contains("not one of attnbench"));
}

TEST_CASE("plugin: the stamp is read from the file, of which nothing is loaded") {
  const PluginStamp read = read_stamp(plugin("good"));
  const PluginStamp ours = current_stamp();
  CHECK(std::memcmp(&read, &ours, sizeof ours) == 0);
  CHECK(std::string(read_stamp(plugin("wrong_stamp")).torch) == "9.9.9 libtorch_cpu.so.9 1");
}

TEST_CASE("plugin: what is no shared object of this machine is refused by its file") {
  const std::string good = test::read_file(plugin("good"));
  CHECK(complaint_about(good).empty());
  CHECK(complaint_about("") == " is no shared object (ELF file)");
  CHECK(complaint_about(std::string(4096, 'x')) == " is no shared object (ELF file)");
  CHECK_THAT(complaint_about(with_byte(good, 18, 8)),  // the machine: MIPS
             Catch::Contains("was built for machine ") && Catch::Contains("rebuild the plugin"));
  CHECK_THAT(complaint_about(with_byte(good, 4, 1)), Catch::Contains("was built for "));  // 32 bits
  CHECK_THAT(complaint_about(with_byte(good, 16, 1)), Catch::Contains("link it with -shared"));
}

TEST_CASE("plugin: a file that is cut off or scrambled is refused, never followed") {
  const std::string good = test::read_file(plugin("good"));
  for (std::size_t length = 1; length < good.size(); length += 1 + good.size() / 97) {
    CHECK_FALSE(complaint_about(good.substr(0, length)).empty());
  }
  std::mt19937 random(1);
  const auto tables = good.size() - 64 * 40;  // the section headers stand at the end
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    std::string scrambled = good;
    const std::size_t at = i % 2 == 0 ? random() % 64 : tables + random() % (good.size() - tables);
    for (std::size_t k = at; k < std::min(at + 8, good.size()); ++k) {
      scrambled[k] = static_cast<char>(random());
    }
    refused += complaint_about(scrambled).empty() ? 0 : 1;
  }
  CHECK(refused > 30);  // the rest hit what does not matter for the stamp
}
