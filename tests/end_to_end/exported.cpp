// What the library shows, held to attention/exported.map. tests/end_to_end/new.cpp does so with a
// plugin.
#include <algorithm>
#include <regex>

#include "tests/end_to_end/symbols.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench::test;

namespace {

/// The linker's patterns under ATTNBENCH, in which ? is any letter and * any text.
std::vector<std::string> offered() {
  const std::string map = read_file(test::source_folder() + "/attention/exported.map");
  const std::string offers = map.substr(map.find("\nATTNBENCH {"));
  std::vector<std::string> patterns;
  const std::regex name_of(R"(\n\s+((?:typeinfo\?for\?|vtable\?for\?)?attnbench::[^;]+);)");
  for (auto found = std::sregex_iterator(offers.begin(), offers.end(), name_of);
       found != std::sregex_iterator(); ++found) {
    patterns.push_back((*found)[1]);
  }
  return patterns;
}

std::regex regex_of(const std::string& pattern) {
  std::string text;
  for (const char c : pattern) text += c == '*' ? ".*" : c == '?' ? "." : std::string(1, c);
  return std::regex(text);
}

}  // namespace

TEST_CASE("the library shows its own names alone, and all that it offers to plugins",
          "[exported]") {
  std::vector<std::string> shown;
  std::vector<std::string> foreign;
  const std::regex ours("((typeinfo|typeinfo name|vtable) for )?attnbench::.*");
  for (const Symbol& symbol : symbols_of(test::build_folder() + "/lib/libattnbench_attention.so")) {
    if (!symbol.defined) continue;
    const bool versioned = symbol.version.rfind("ATTNBENCH", 0) == 0;
    if (!versioned || !std::regex_match(symbol.name, ours)) foreign.push_back(symbol.name);
    if (symbol.version == "ATTNBENCH") shown.push_back(symbol.name);
  }
  CHECK(foreign == std::vector<std::string>{});
  const std::vector<std::string> patterns = offered();
  CHECK(patterns.size() > 50);
  std::vector<std::string> missing;
  for (const std::string& pattern : patterns) {
    const std::regex wanted = regex_of(pattern);
    if (std::none_of(shown.begin(), shown.end(),
                     [&](const std::string& name) { return std::regex_match(name, wanted); })) {
      missing.push_back(pattern);
    }
  }
  CHECK(missing == std::vector<std::string>{});
  CHECK(shown.size() < 2 * patterns.size());  // a pattern is one function, or its overloads
}
