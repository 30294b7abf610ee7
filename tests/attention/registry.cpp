#include "attention/registry.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

using namespace attnbench;

namespace {

/// A copy of softmax under another name, with implementations whose support is scripted.
Entry scripted(const std::string& name) {
  Entry entry = test::registry().entry("softmax");
  entry.name = name;
  entry.aliases = {};
  entry.implementations.resize(1);
  auto add = [&](const std::string& word, int rank, Support support) {
    Implementation implementation = entry.implementations[0];
    implementation.name = word;
    implementation.rank = rank;
    implementation.supports = [support](const Options&, const Problem&) { return support; };
    entry.implementations.push_back(implementation);
  };
  add("quick", 5, {});
  add("quicker", 9, Support::no("float16 has no CPU kernel"));
  entry.implementations[1].differentiable = false;
  return entry;
}

reference::Reference nothing() {
  return [](const Options&, const Problem&, const reference::ReferenceInputs&,
            const std::vector<reference::RowIndex>&) { return std::vector<double>{}; };
}

Options defaults(const Entry& entry) { return Options::resolve(entry.options, {}); }

}  // namespace

TEST_CASE("registry: built-ins resolve by name, and unknown names are refused with the nearest") {
  const auto registry = Registry::with_builtins();
  CHECK(registry.resolve("softmax").entry->name == "softmax");
  CHECK(registry.resolve("softmax").implementation == "auto");
  CHECK_THROWS_WITH(registry.resolve("sofmtax"),
                    Catch::Contains("unknown mechanism sofmtax; did you mean softmax?"));
}

TEST_CASE("registry: every built-in has a citation, a reference and costs that are finite") {
  const auto registry = Registry::with_builtins();
  for (const auto& name : registry.mechanisms()) {
    const Entry& entry = registry.entry(name);
    CHECK(!entry.title.empty());
    CHECK(!entry.citation.empty());
    CHECK(!entry.formula.empty());
    CHECK(registry.reference(name));
    for (const auto& option : entry.options) CHECK(!option.meaning.empty());
  }
}

TEST_CASE("registry: auto takes the greatest rank that supports the problem and says so") {
  const auto entry = scripted("twin");
  Problem problem;
  auto choice = Registry::choose(entry, "auto", defaults(entry), problem);
  CHECK(choice.implementation->name == "quick");
  CHECK(choice.reason == "auto: the fastest that supports this problem");
  problem.gradient = true;
  choice = Registry::choose(entry, "auto", defaults(entry), problem);
  CHECK(choice.implementation->name == "composite");
  CHECK(choice.reason == "auto: the only one that supports this problem");
  CHECK(Registry::choose(entry, "composite", defaults(entry), problem).reason == "asked for");
}

TEST_CASE("registry: on a CUDA device auto goes by the rank there") {
  auto entry = scripted("twin");
  entry.implementations[1].cuda_rank = -1;
  Problem problem;
  CHECK(Registry::choose(entry, "auto", defaults(entry), problem).implementation->name == "quick");
  problem.device = "cuda:1";
  CHECK(Registry::choose(entry, "auto", defaults(entry), problem).implementation->name ==
        "composite");
  CHECK(Registry::choose(entry, "quick", defaults(entry), problem).reason == "asked for");
}

TEST_CASE("registry: a refusal names mechanism, implementation and reason") {
  auto entry = scripted("twin");
  const Problem problem;
  CHECK_THROWS_WITH(Registry::choose(entry, "quicker", defaults(entry), problem),
                    "twin/quicker: float16 has no CPU kernel");
  CHECK_THROWS_AS(Registry::choose(entry, "quickest", defaults(entry), problem), UsageError);
  entry.patterns = {Pattern::bidirectional};
  CHECK_THROWS_WITH(Registry::choose(entry, "auto", defaults(entry), problem),
                    "twin: the pattern causal is not defined for it");
}

TEST_CASE("registry: a refusal names the mechanism once, whether its reason does or not") {
  auto entry = scripted("twin");
  const Problem problem;
  for (const char* reason : {"twin: it is too long", "it is too long"}) {
    entry.supports = [reason](const Options&, const Problem&) { return Support::no(reason); };
    CHECK(support_of(entry, defaults(entry), problem).reason == "twin: it is too long");
    CHECK_THROWS_WITH(Registry::choose(entry, "auto", defaults(entry), problem),
                      "twin: it is too long");
    CHECK_THROWS_WITH(Registry::choose(entry, "quick", defaults(entry), problem),
                      "twin: it is too long");
    entry.supports = supports_all;
    entry.implementations[2].supports = [reason](const Options&, const Problem&) {
      return Support::no(reason);
    };
    CHECK_THROWS_WITH(Registry::choose(entry, "quicker", defaults(entry), problem),
                      "twin/quicker: it is too long");
  }
}

TEST_CASE("registry: no refusal of a built-in names it twice") {
  const auto registry = Registry::with_builtins();
  for (const auto& name : registry.mechanisms()) {
    const Entry& entry = registry.entry(name);
    for (const Pattern pattern : {Pattern::bidirectional, Pattern::causal, Pattern::cross}) {
      for (const Implementation& implementation : entry.implementations) {
        Problem problem;
        problem.pattern = pattern;
        problem.heads = 4;
        problem.kv_heads = 2;
        std::string refusal;
        try {
          Registry::choose(entry, implementation.name, defaults(entry), problem);
        } catch (const UnsupportedError& error) {
          refusal = error.what();
        }
        const std::size_t first = refusal.find(name + ": ");
        INFO(refusal);
        CHECK((first == std::string::npos ||
               refusal.find(name + ": ", first + 1) == std::string::npos));
      }
    }
  }
}

TEST_CASE("registry: taken, malformed and incomplete names are refused and change nothing") {
  auto registry = Registry::with_builtins();
  const auto before = registry.mechanisms();
  CHECK_THROWS_WITH(registry.add(scripted("softmax"), nothing()), "the name softmax is taken");
  CHECK_THROWS_AS(registry.add(scripted("softmax"), nothing()), NameTaken);
  CHECK_THROWS_AS(registry.add(scripted("Soft-max"), nothing()), PluginError);
  CHECK_THROWS_AS(registry.add(scripted("twin"), {}), PluginError);
  auto headless = scripted("twin");
  headless.implementations.erase(headless.implementations.begin());
  CHECK_THROWS_WITH(registry.add(headless, nothing()), Catch::Contains("must be composite"));
  CHECK(registry.mechanisms() == before);
  registry.add(scripted("twin"), nothing());
  CHECK(registry.entry("twin").implementations.size() == 3);
}

TEST_CASE("registry: an implementation may be added, but not under a taken name") {
  auto registry = Registry::with_builtins();
  Implementation extra = registry.entry("softmax").implementations[0];
  CHECK_THROWS_WITH(registry.add_implementation("softmax", extra),
                    "the name softmax/composite is taken");
  CHECK_THROWS_AS(registry.add_implementation("softmax", extra), NameTaken);
  extra.name = "other";
  registry.add_implementation("softmax", extra);
  CHECK(registry.entry("softmax").find_implementation("other") != nullptr);
  CHECK_THROWS_AS(registry.add_implementation("nobody", extra), PluginError);
}
