// What every mechanism says of its options and patterns, and which of them contradict one another.
#include <algorithm>
#include <set>

#include "tests/attention/fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench {
namespace {

using test::count;
using test::Overrides;
using test::registry;
using test::word;

constexpr Pattern kPatterns[] = {Pattern::causal, Pattern::bidirectional, Pattern::cross};

/// Four heads of eight numbers.
Problem sized(Pattern pattern = Pattern::causal) {
  Problem problem;
  problem.heads = problem.kv_heads = 4;
  problem.length = problem.key_length = 20;
  problem.head_dim = problem.value_dim = 8;
  problem.pattern = pattern;
  return problem;
}

Options derived(const std::string& name, const Overrides& said, const Problem& problem) {
  const Entry& entry = registry().entry(name);
  return entry.derive(Options::resolve(entry.options, said), problem);
}

Support support(const std::string& name, const Overrides& said, const Problem& problem) {
  const Entry& entry = registry().entry(name);
  const auto& has = entry.patterns;
  if (std::find(has.begin(), has.end(), problem.pattern) == has.end()) return Support::no("none");
  return entry.supports(derived(name, said, problem), problem);
}

}  // namespace

TEST_CASE("an option outside its declared range or words is refused, naming it", "[options]") {
  std::set<std::string> seen;
  for (const auto& name : registry().mechanisms()) {
    const Entry& entry = registry().entry(name);
    for (const Option& option : entry.options) {
      CAPTURE(name, option.name);
      std::vector<OptionValue> wrong;
      if (option.type == OptionType::text) wrong.push_back(word("no such word"));
      for (const auto& [bound, outwards] : {std::pair(option.minimum, -1), {option.maximum, 1}}) {
        if (!bound) continue;
        const bool whole = option.type == OptionType::integer;
        wrong.push_back(whole ? count(static_cast<std::int64_t>(*bound) + outwards)
                              : OptionValue(*bound + outwards));
      }
      for (const OptionValue& value : wrong) {
        CHECK_THROWS_AS(Options::resolve(entry.options, {{option.name, value}}), UsageError);
        CHECK_THROWS_WITH(Options::resolve(entry.options, {{option.name, value}}),
                          Catch::Contains(option.name));
        seen.insert(name + "." + option.name);
      }
    }
  }
  // A size that divides, a share, a count and a word.
  for (const char* bounded : {"abc.chunk",
                              "abc.latents_per_head",
                              "cosformer.maximum_length",
                              "cosformer.epsilon",
                              "delta.beta_limit",
                              "delta.epsilon",
                              "delta.gate",
                              "fox.output",
                              "gla.gate_temperature",
                              "hgrn2.lower_bound",
                              "latte.before",
                              "linear.feature",
                              "latte.taps",
                              "linformer.projected_length",
                              "longshort.segment",
                              "longshort.norm",
                              "mamba.state",
                              "mamba.output",
                              "mamba.turning",
                              "mamba2.state",
                              "mla.latent",
                              "mla.rotary",
                              "moba.block",
                              "moba.blocks",
                              "nsa.blocks",
                              "nystromformer.landmarks",
                              "nystromformer.iterations",
                              "retention.gamma",
                              "retention.decay",
                              "rg_lru.first_input",
                              "rwkv7.epsilon"}) {
    CHECK(seen.count(bounded) == 1);
  }
}

TEST_CASE("the patterns of a mechanism are those for which its papers define it", "[options]") {
  const std::map<std::string, std::string> wanted{{"abc", "causal bidirectional cross "},
                                                  {"cosformer", "causal bidirectional cross "},
                                                  {"delta", "causal "},
                                                  {"fox", "causal "},
                                                  {"gla", "causal "},
                                                  {"hgrn2", "causal "},
                                                  {"latte", "causal bidirectional cross "},
                                                  {"lavo", "causal bidirectional cross "},
                                                  {"linear", "causal bidirectional cross "},
                                                  {"linformer", "bidirectional cross "},
                                                  {"longshort", "causal bidirectional "},
                                                  {"luna", "causal bidirectional cross "},
                                                  {"macchiato", "causal bidirectional "},
                                                  {"mamba", "causal "},
                                                  {"mamba2", "causal "},
                                                  {"mla", "causal bidirectional cross "},
                                                  {"moba", "causal "},
                                                  {"nsa", "causal "},
                                                  {"nystromformer", "bidirectional "},
                                                  {"perceiver", "causal bidirectional cross "},
                                                  {"performer", "causal bidirectional cross "},
                                                  {"retention", "causal "},
                                                  {"rg_lru", "causal "},
                                                  {"rwkv7", "causal "},
                                                  {"softmax", "causal bidirectional cross "},
                                                  {"window", "causal bidirectional "}};
  for (const auto& [mechanism, patterns] : wanted) {
    CAPTURE(mechanism);
    std::string found;
    for (const Pattern pattern : kPatterns) {
      if (support(mechanism, {}, sized(pattern))) found += std::string(to_string(pattern)) + " ";
    }
    CHECK(found == patterns);
  }
}

TEST_CASE("options that contradict one another, the pattern or the sizes are refused",
          "[options]") {
  struct Row {
    std::string mechanism;
    Overrides said;
    Pattern pattern = Pattern::causal;
  };
  for (const auto& [name, said, pattern] : std::vector<Row>{
           {"latte", {{"latents_total", count(42)}}},
           {"latte", {{"latents_total", count(16)}, {"latents_per_head", count(3)}}},
           {"latte", {{"latents_total", count(-4)}}},
           {"lavo", {{"window", Window{3, 2}}}},
           {"longshort", {{"window", Window{3, 1}}}},
           {"luna", {{"activation", word("latte_composed")}, {"tied", false}}},
           {"macchiato", {{"window", Window{4, 1}}}},
           {"macchiato", {{"latents_total", count(42)}}},
           {"mamba", {{"selective", false}, {"step_rank", count(2)}}},
           {"mla", {{"rotary", count(8)}}},
           {"mamba", {{"turning", word("linear")}}},
           {"performer", {{"projection", word("none")}}},
           {"performer", {{"kernel", word("relu")}, {"form", word("published")}}},
           {"window", {{"window", Window{3, 1}}}},
       }) {
    CAPTURE(name, said.begin()->first);
    CHECK_THROWS_AS(derived(name, said, sized(pattern)), UsageError);
  }
  const Pattern both = Pattern::bidirectional;
  for (const auto& [name, said, pattern] : std::vector<Row>{
           {"abc", {{"gated", true}}, both},
           {"cosformer", {{"maximum_length", count(19)}}},
           {"linformer", {{"max_length", count(19)}}, both},
           {"linformer", {{"l2_input", true}}, Pattern::cross},
           {"performer", {{"form", word("published")}}},
           {"rg_lru", {{"directions", word("forward")}}, both},
           {"rg_lru", {{"directions", word("both")}}},
       }) {
    CAPTURE(name, said.begin()->first);
    CHECK_FALSE(support(name, said, sized(pattern)));
  }
  CHECK(support("cosformer", {{"maximum_length", count(20)}}, sized()));
  CHECK(support("linformer", {{"max_length", count(20)}}, sized(both)));
  CHECK(support("rg_lru", {{"directions", word("both")}}, sized(both)));
  // Whose parameters are made for each head, or whose inputs are a head's slice, as wide as it.
  Problem shared = sized();
  shared.kv_heads = 2;
  for (const char* name : {"lavo", "perceiver", "retention"}) {
    CHECK_THAT(support(name, {}, shared).reason, Catch::Contains("(kv_heads)"));
  }
  for (const char* name : {"latte", "macchiato", "mla"}) CHECK(support(name, {}, shared));
  Problem narrow = sized();
  narrow.value_dim = 5;
  for (const char* name : {"lavo", "luna"}) {
    CHECK_THAT(support(name, {}, narrow).reason, Catch::Contains("value_dim"));
  }
  CHECK(support("luna", {{"tied", false}}, narrow));
}

TEST_CASE("options that are not said are derived from the sizes", "[options]") {
  const auto value = [](const char* name, const Overrides& said, const char* option,
                        Pattern pattern = Pattern::causal) {
    return derived(name, said, sized(pattern)).integer(option);
  };
  CHECK(value("latte", {}, "latents_total") == 32);
  CHECK(value("latte", {}, "latents_per_head") == 8);
  CHECK(value("latte", {{"latents_total", count(40)}}, "latents_per_head") == 10);
  CHECK(value("latte", {{"latents_per_head", count(3)}}, "latents_total") == 12);
  CHECK(value("luna", {}, "latents_per_head") == 32);
  CHECK(value("perceiver", {}, "latents_per_head") == 32);
  CHECK(value("perceiver", {}, "latents_total") == 128);
  CHECK(value("macchiato", {}, "latents_per_head") == 8);
  CHECK(value("longshort", {}, "projected_length") == 1);
  CHECK(value("performer", {{"features", count(5)}}, "features") == 5);
  CHECK(value("performer", {{"kernel", word("relu")}, {"projection", word("none")}}, "features") ==
        8);
  Problem wide = sized();
  for (const auto& [width, features] : {std::pair(64, 266), std::pair(1, 1)}) {
    wide.head_dim = width;
    CHECK(derived("performer", {}, wide).integer("features") == features);
  }
  CHECK(derived("lavo", {}, sized(Pattern::cross)).text("form") == "plain");
  const auto window = [](const char* name, const Overrides& said, Pattern pattern) {
    return derived(name, said, sized(pattern)).window("window");
  };
  const Overrides paper{{"window_convention", word("paper_eq17")}};
  for (const char* name : {"window", "macchiato"}) {
    CHECK(window(name, {}, Pattern::causal) == Window{127, 0});
    CHECK(window(name, {}, Pattern::bidirectional) == Window{64, 63});
  }
  CHECK(window("macchiato", paper, Pattern::causal) == Window{128, 0});
  CHECK(window("macchiato", paper, Pattern::bidirectional) == Window{128, 128});
}

}  // namespace attnbench
