// attnbench new, in the tree and out of it: what it writes builds, holds and measures as it is.
#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "tests/end_to_end/installed.hpp"
#include "tests/end_to_end/symbols.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench::test;
using Json = nlohmann::json;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

/// Enough of attnbench's sources to be taken for them.
void pretend_sources(const fs::path& folder) {
  fs::create_directories(folder / "attention/mechanisms");
  fs::create_directories(folder / "cmake");
  write_file(folder / "attention/mechanisms/softmax.cpp", "");
  write_file(folder / "cmake/builtins.cmake", "");
}

/// The build's command for one of its files, without the place of its output, for another.
std::string command_for(const std::string& like, const std::string& file) {
  for (const Json& command :
       Json::parse(read_file(test::build_folder() + "/compile_commands.json"))) {
    const std::string name = command["file"];
    if (!name.ends_with(like)) continue;
    std::string text = command["command"];
    text.replace(text.rfind(name), name.size(), file);
    return text.erase(text.rfind(" -o "), text.rfind(" -c ") - text.rfind(" -o "));
  }
  FAIL("the build compiles no " + like);
  return {};
}

Finished shell(const std::string& command) {
  return run({"sh", "-c", command}, 580, {}, test::build_folder());
}

/// The lower-case words of a text that are short enough for a name.
std::set<std::string> words_of(const std::string& text) {
  std::set<std::string> words;
  std::string word;
  for (const char c : text + "\n") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      word += c;
      continue;
    }
    const bool plain = std::all_of(word.begin(), word.end(), [](char letter) {
      return std::isupper(static_cast<unsigned char>(letter)) == 0;
    });
    if (plain && word.size() <= 60 && !word.empty() && word[0] >= 'a') words.insert(word);
    word.clear();
  }
  return words;
}

/// The macros of such a name that are left at the end of a preprocessed text.
std::set<std::string> macros_of(const std::string& preprocessed) {
  std::set<std::string> names;
  std::istringstream lines(preprocessed);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("#undef ", 0) == 0) names.erase(line.substr(7));
    if (line.rfind("#define ", 0) != 0) continue;
    const std::string name = line.substr(8, line.find_first_of(" (", 8) - 8);
    if (words_of(name).size() == 1 && name.back() != '_' && name.find("__") == std::string::npos) {
      names.insert(name);
    }
  }
  return names;
}

}  // namespace

TEST_CASE("new writes a mechanism and its reference into the sources, and nothing else",
          "[program][new]") {
  const TemporaryFolder folder;
  pretend_sources(folder.path());
  fs::create_directories(folder / "deep/below");
  const Finished finished = call("new my_mix", {}, folder / "deep/below");
  INFO(finished.err);
  CHECK(finished.exit_code == 0);
  CHECK_THAT(finished.out, Contains("attention/mechanisms/my_mix.cpp: ") &&
                               Contains("attention/reference/my_mix.cpp: ") &&
                               Contains("./attnbench check my_mix"));
  const std::string mechanism = read_file(folder / "attention/mechanisms/my_mix.cpp");
  CHECK_THAT(mechanism, Contains("Entry my_mix() {") && Contains("class MyMix : public Mechanism"));
  CHECK_THAT(mechanism, !Contains("example_mechanism"));
  CHECK_THAT(read_file(folder / "attention/reference/my_mix.cpp"),
             Contains("Reference my_mix() {"));

  const Finished again = call("new my_mix", {}, folder.path());
  CHECK(again.exit_code == 2);
  CHECK_THAT(again.err, Contains("attention/mechanisms/my_mix.cpp is there already"));
}

TEST_CASE("new leaves what is there as it is, and says where it cannot write", "[program][new]") {
  const TemporaryFolder folder;
  pretend_sources(folder.path());
  write_file(folder / "plugin.cpp", "mine");
  write_file(folder / "file", "");
  const std::vector<std::array<std::string, 3>> places{
      {"--plugin", ".", "plugin.cpp is there already; nothing was written"},
      {"--plugin", folder / "file", "name a folder that"},
      {"--plugin", std::string(300, 'x'), "name a folder that"},
      {"--plugin", "", "--plugin: expected a text"},
      {"--workflow", "", "--workflow: expected a text"}};
  for (const auto& [flag, place, complaint] : places) {
    const Finished finished =
        run({program(), "new", "my_mix", flag, place}, 580, {}, folder.path());
    INFO(finished.err);
    CHECK(finished.exit_code == 2);
    CHECK_THAT(finished.err, Contains(complaint) && !Contains("filesystem error"));
  }
  CHECK(read_file(folder / "plugin.cpp") == "mine");
  CHECK_FALSE(fs::exists(folder / "mechanism.cpp"));
  CHECK_FALSE(fs::exists(folder / "attention/mechanisms/my_mix.cpp"));
}

TEST_CASE("new refuses names that cannot be one, or that have a meaning", "[program][new]") {
  const TemporaryFolder folder;
  pretend_sources(folder.path());
  const std::vector<std::pair<std::string, std::string>> names{
      {"My_Mix", "lower-case letters"},
      {"2mix", "begins with a letter"},
      {"../mix", "lower-case letters"},
      {"my__mix", "between words"},
      {"mix_", "between words"},
      {std::string(61, 'a'), "at most 60"},
      {"while", "has a meaning in C++"},
      {"std", "has a meaning"},
      {"at", "is used in the files"},
      {"composite", "is used in the files"},
      {"test", "has a meaning"},
      {"", "expected a text"},
      {"softmax", "already"},
      {"flash", "already"},
      {"kernel", "there is a task kernel"}};
  for (const auto& [name, complaint] : names) {
    const Finished finished = run({program(), "new", name}, 580, {}, folder.path());
    INFO(name << "\n" << finished.err);
    CHECK(finished.exit_code == 2);
    CHECK_THAT(finished.err, Contains(complaint));
  }
  CHECK_FALSE(fs::exists(folder / "attention/reference"));
}

TEST_CASE("new refuses what the compiler takes for a keyword or a macro", "[program][new]") {
  const TemporaryFolder folder;
  pretend_sources(folder.path());
  REQUIRE(call("new my_mix", {}, folder.path()).exit_code == 0);
  const std::string command =
      command_for("/attention/mechanisms/window.cpp", folder / "attention/mechanisms/my_mix.cpp");
  const Finished all = shell(command + " -E -dD -w -fno-pch-preprocess");
  REQUIRE(all.exit_code == 0);
  std::set<std::string> refused = macros_of(all.out);
  CHECK(refused.count("assert") == 1);

  // A line a word: the compiler says which lines are no declaration.
  std::set<std::string> words = words_of(all.out);
  words.merge(
      words_of(read_file(source_folder() + "/harness/program/templates/reserved_words.txt")));
  std::vector<std::string> candidates(words.begin(), words.end());
  std::string text;
  for (const std::string& word : candidates) text += "namespace here { int " + word + "(); }\n";
  write_file(folder / "attention/mechanisms/words.cpp", text);
  const Finished told =
      shell(command.substr(0, command.find(' ')) + " -std=c++20 -fsyntax-only " +
            "-fmax-errors=0 -w " + std::string(folder / "attention/mechanisms/words.cpp"));
  const std::regex place("words\\.cpp:([0-9]+):[0-9]+: error");
  for (std::sregex_iterator at(told.err.begin(), told.err.end(), place), end; at != end; ++at) {
    refused.insert(candidates.at(std::stoul((*at)[1]) - 1));
  }
  CHECK(refused.count("while") == 1);
  CHECK(refused.size() > 90);
  fs::remove_all(folder / "attention/mechanisms");
  pretend_sources(folder.path());
  for (const std::string& name : refused) {
    const Finished finished = run({program(), "new", name}, 580, {}, folder.path());
    INFO(name << "\n" << finished.err);
    CHECK(finished.exit_code == 2);
  }
}

TEST_CASE("the mechanism that new writes compiles in the tree, warnings and all",
          "[program][new][night]") {
  // Where the folder attention/mechanisms is another, CMake takes it from there: a build of the
  // whole library would only do once more what every other file of that folder shows. What differs,
  // the includes and the names, shows here.
  const TemporaryFolder folder;
  pretend_sources(folder.path());
  REQUIRE(call("new my_mix", {}, folder.path()).exit_code == 0);
  for (const std::string kind : {"/attention/mechanisms/", "/attention/reference/"}) {
    const Finished finished =
        shell(command_for(kind + "window.cpp", folder.path().string() + kind + "my_mix.cpp") +
              " -fsyntax-only");
    INFO(finished.out << finished.err);
    CHECK(finished.exit_code == 0);
  }
}

TEST_CASE("the plugin that new writes is built, checked, listed, run and drawn",
          "[program][new][night]") {
  const TemporaryFolder folder(test::build_folder());
  const std::string program = installed().program();
  const auto environment = installed().building_environment();
  const Finished written =
      run({program, "new", "my_mix", "--plugin", folder / "mix"}, 580, environment);
  INFO(written.out << written.err);
  REQUIRE(written.exit_code == 0);
  const std::string package = "-Dattnbench_DIR=" + installed().package();
  CHECK_THAT(written.out, Contains(package));
  // As its CI does; the package is found by way of PATH, too, as the tutorial has it.
  const Finished tested = run({folder / "mix/ci.sh", package, "-GNinja"}, 580, environment);
  INFO(tested.out << tested.err);
  REQUIRE(tested.exit_code == 0);
  CHECK_THAT(tested.out, Contains("100% tests passed, 0 tests failed out of 2"));
  const std::string plugin = folder / "mix/build/libmy_mix.so";

  // It needs what is offered to plugins alone, and shows its entry points alone.
  std::set<std::string> shown, needed, private_ones;
  for (const Symbol& symbol : symbols_of(plugin)) {
    if (symbol.defined) shown.insert(symbol.name);
    if (symbol.version == "ATTNBENCH") needed.insert(symbol.name);
    if (symbol.version == "ATTNBENCH_PRIVATE") private_ones.insert(symbol.name);
  }
  CHECK(needed.size() > 5);
  CHECK(private_ones == std::set<std::string>{});
  CHECK(shown == std::set<std::string>{"attnbench_plugin_register", "attnbench_plugin_stamp"});

  // It is found on ATTNBENCH_PLUGIN_PATH, once however often it is named.
  auto with_path = environment;
  with_path["ATTNBENCH_PLUGIN_PATH"] = "/no/such/place.so:" + (folder / "mix/build").string();
  const Finished listed = run({program, "list", "mechanisms", "--plugin", plugin}, 580, with_path);
  CHECK_THAT(listed.out, Contains("my_mix") && Contains("(from " + plugin + ")"));
  const Finished examined = run({program, "doctor", "--quick", "--plugin", plugin}, 580, with_path);
  INFO(examined.out);
  CHECK_THAT(examined.out, Contains("place.so: refused, plugin /no/such/place.so: there is no such "
                                    "file") &&
                               Contains("libmy_mix.so: ok") && !Contains("is taken"));
}

TEST_CASE("new writes a workflow for a plugin or a suite", "[program][new]") {
  const TemporaryFolder folder;
  const auto into = [&](const std::string& name, const char* place) {
    return run({program(), "new", name, "--workflow", folder / place});
  };
  CHECK(into("my_mix", "one").exit_code == 0);
  const std::string first = read_file(folder / "one/.github/workflows/speed.yml");
  CHECK_THAT(first, Contains("build/libmy_mix.so") && !Contains("example_mechanism"));
  CHECK(into("suites/my.json", "two").exit_code == 0);
  const std::string second = read_file(folder / "two/.github/workflows/speed.yml");
  CHECK_THAT(second, Contains("suite/suites/my.json") && !Contains("example_suite"));
  CHECK(into("my_mix", "one").exit_code == 2);
  for (const char* bad : {"../out.json", "/etc/x.json", "a b.json", "$(ls).json", "My-Mix"}) {
    INFO(bad);
    CHECK(into(bad, "three").exit_code == 2);
  }
}
