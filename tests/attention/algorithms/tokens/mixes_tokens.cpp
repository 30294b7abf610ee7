// What latte, window, macchiato and the mechanisms with a gated state may put before some of their
// projections: the options before, directions, taps and before_norm.
#include "attention/layer.hpp"
#include "tests/attention/fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench {
namespace {

using test::Overrides;
using test::relative_error;

const std::map<std::string, std::vector<std::string>> fed_roles{
    {"latte", {"query_logits", "key_logits"}},
    {"window", {"query", "key"}},
    {"macchiato", {"query_logits", "key_logits"}},
    {"retention", {"query", "key", "value"}},
    {"delta", {"query", "key", "value"}},
    {"gla", {"query", "key", "value"}},
    {"hgrn2", {"query", "gate", "value"}},
    {"mamba2", {"query", "key", "value"}},
    {"rwkv7", {"query", "key", "value", "decay", "learning_rate"}},
    {"abc", {"query", "key", "value"}}};

bool has_pattern(const std::string& name, Pattern pattern) {
  const auto& patterns = test::registry().entry(name).patterns;
  return std::find(patterns.begin(), patterns.end(), pattern) != patterns.end();
}

Problem token_sizes(Pattern pattern = Pattern::causal) {
  Problem problem;
  problem.batch = problem.heads = problem.kv_heads = 2;
  problem.length = problem.key_length = 45;
  problem.head_dim = problem.value_dim = 4;
  problem.pattern = pattern;
  problem.dtype = Dtype::float64;
  problem.gradient = true;
  return problem;
}

Options chosen(const std::string& name, const Problem& problem, const Overrides& said) {
  const Entry& entry = test::registry().entry(name);
  return entry.derive(Options::resolve(entry.options, said), problem);
}

struct Made {
  Made(const std::string& name, const Problem& problem, const Overrides& said)
      : mechanism(test::registry().entry(name).make(chosen(name, problem, said), problem)),
        layer(mechanism, test::registry().entry(name).implementation("composite"), Scope::layer,
              3) {}
  std::shared_ptr<Mechanism> mechanism;
  Layer layer;
};

}  // namespace

TEST_CASE("before: the roles that are fed are projected from it, the others from the tokens") {
  const Problem problem = token_sizes();
  const at::Tensor x = at::randn({2, 45, 8}, at::kDouble);
  const std::map<std::string, std::size_t> counts{{"none", 0}, {"conv", 1}, {"rg_lru", 5}};
  for (const auto& [name, fed] : fed_roles) {
    const std::size_t own = Made(name, problem, {}).mechanism->parameters().size();
    for (const auto& [word, count] : counts) {
      for (const bool norm : {false, true}) {
        if (norm && count == 0) continue;
        CAPTURE(name, word, norm);
        Made made(name, problem, {{"before", word}, {"before_norm", norm}});
        CHECK(made.mechanism->parameters().size() == own + count);
        const at::Tensor before = count == 0 ? x : made.mechanism->before(x, nullptr).detach();
        if (norm) {
          const at::Tensor plain =
              Made(name, problem, {{"before", word}}).mechanism->before(x, nullptr).detach();
          const at::Tensor want = plain / ((plain * plain).mean(-1, true) + 1e-5).sqrt();
          CHECK(relative_error(before, want) < 1e-12);
          CHECK(relative_error(before, plain) > 1e-2);
        }
        const Inputs inputs = made.layer.project(x, x);
        const auto weights = made.layer.named_parameters();
        for (const Role& role : made.mechanism->roles()) {
          CAPTURE(role.name);
          const bool from_before = std::count(fed.begin(), fed.end(), role.name) > 0;
          const at::Tensor y = at::matmul(from_before ? before : x, weights["weight_" + role.name]);
          CHECK(relative_error(inputs[role.name], y.view({2, 45, 2, -1}).transpose(1, 2)) < 1e-14);
        }
        made.layer.forward(x, x).output.sum().backward();
        for (const auto& item : made.mechanism->named_parameters()) {
          CAPTURE(item.key());
          CHECK(item.value().grad().abs().max().item<double>() > 0);
        }
      }
    }
  }
}

TEST_CASE("before: both directions see what follows, and padding is seen by neither") {
  const at::NoGradGuard no_grad;
  const Problem problem = token_sizes(Pattern::bidirectional);
  const at::Tensor x = at::randn({2, 45, 8}, at::kDouble);
  at::Tensor changed = x.clone();
  changed.select(1, 30).add_(1);
  const at::Tensor mask = at::arange(45).lt(31).unsqueeze(0).expand({2, 45});
  for (const auto& [name, fed] : fed_roles) {
    if (!has_pattern(name, Pattern::bidirectional)) continue;
    CAPTURE(name);
    const auto early = [&](const char* directions, const at::Tensor& tokens) {
      Made made(name, problem,
                {{"before", test::word("rg_lru")},
                 {"directions", test::word(directions)},
                 {"before_norm", true}});
      return made.layer.project(tokens, tokens, {}, nullptr, mask)[fed[0]].narrow(2, 0, 20);
    };
    CHECK(relative_error(early("forward", changed), early("forward", x)) == 0);
    CHECK(relative_error(early("both", changed), early("both", x)) > 1e-6);
    at::Tensor padded = x.clone();
    padded.narrow(1, 31, 14).fill_(7);
    CHECK(relative_error(early("both", padded), early("both", x)) == 0);
  }
}

TEST_CASE("before: refused where it contradicts the pattern or itself") {
  for (const auto& [name, fed] : fed_roles) {
    CAPTURE(name);
    const Entry& entry = test::registry().entry(name);
    const auto reason = [&](Pattern pattern, const Overrides& said) {
      const Problem problem = token_sizes(pattern);
      return entry.supports(chosen(name, problem, said), problem).reason;
    };
    const Overrides both{{"before", test::word("conv")}, {"directions", test::word("both")}};
    CHECK(reason(Pattern::causal, both).find("looks ahead") != std::string::npos);
    CHECK(reason(Pattern::bidirectional, both).empty() ==
          has_pattern(name, Pattern::bidirectional));
    CHECK(reason(Pattern::causal, {{"before", test::word("conv")}}).empty());
    CHECK(reason(Pattern::causal, {{"before_norm", true}}).find("nothing to normalise") !=
          std::string::npos);
    CHECK_FALSE(reason(Pattern::cross, {{"before", test::word("conv")}}).empty());
    CHECK_THROWS_AS(Options::resolve(entry.options, {{"taps", test::count(0)}}), UsageError);
    CHECK_THROWS_AS(Options::resolve(entry.options, {{"before", test::word("fft")}}), UsageError);
  }
}

}  // namespace attnbench
