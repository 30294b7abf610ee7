// Retention's implementations against its definition, and what is known of it.
#include "attention/algorithms/causal_product/causal_product.hpp"
#include "tests/attention/held.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench {
namespace {

using test::Held;
using test::relative_error;
using test::Said;

Held retention(std::int64_t length, std::int64_t width, Said said = {}) {
  said.insert({"chunk", test::count(8)});
  return {"retention", test::two_by_two(length, width), said};
}

const std::vector<Said> retentions{{}, {{"decay", test::word("fixed")}}, {{"gamma", 0.5}}};

}  // namespace

TEST_CASE("retention: every form equals the definition at odd sizes, with each decay") {
  for (const Said& said : retentions) {
    for (const auto& [length, width] : test::odd_sizes(8)) {
      const Held held = retention(length, width, said);
      test::check_outputs(held, test::implementations_of("retention"));
    }
  }
}

TEST_CASE("retention: gradients, steps and padding are those of the definition") {
  for (const Said& said : retentions) {
    const Held held = retention(37, 5, said);
    for (const auto& name : test::implementations_of("retention")) {
      CAPTURE(name);
      test::check_gradients(held, name);
      test::check_padding(held, name, {30, 37, {"key", "value"}});
    }
    test::check_steps(held, test::implementations_of("retention"), {1, 8, 20});
  }
}

TEST_CASE("retention: without decay it is linear attention without a normaliser") {
  const Held held = retention(53, 16, {{"decay", test::word("fixed")}, {"gamma", 1.0}});
  const at::Tensor product =
      causal_product::scan(held.inputs["query"] / 4, held.inputs["key"], held.inputs["value"], {});
  for (const auto& name : test::implementations_of("retention")) {
    CAPTURE(name);
    CHECK(relative_error(held.output(name), product) < 1e-12);
  }
  // The first head of Lightning Attention does not forget either.
  const Held lightning = retention(53, 16, {{"decay", test::word("fixed")}});
  CHECK(relative_error(lightning.output("chunked").select(1, 0), product.select(1, 0)) < 1e-12);
}

TEST_CASE("retention: factors that underflow over a chunk are right in float32") {
  const Held held = retention(70, 8, {{"gamma", 1e-6}, {"chunk", test::count(64)}});
  const at::Tensor expected = held.expected();
  for (const auto& name : test::implementations_of("retention")) {
    CAPTURE(name);
    CHECK(relative_error(held.output(name, at::kFloat), expected) < 2e-6);
    for (const auto& [role, gradient] : held.gradients(name, at::kFloat)) {
      CAPTURE(role);
      CHECK(at::isfinite(gradient).all().item<bool>());
    }
  }
}

TEST_CASE(
    "retention: refuses decays that are not above 0 and at most 1, chunks of no token, and other "
    "patterns") {
  const Entry& entry = test::registry().entry("retention");
  const auto resolve = [&](const Said& said) { return Options::resolve(entry.options, said); };
  CHECK_THROWS_AS(resolve({{"gamma", 1.5}}), UsageError);
  CHECK_THROWS_AS(resolve({{"gamma", -0.5}}), UsageError);
  CHECK_THROWS_AS(resolve({{"decay", test::word("slow")}}), UsageError);
  CHECK_THROWS_AS(resolve({{"chunk", test::count(0)}}), UsageError);
  Problem problem;
  for (const Pattern pattern : {Pattern::bidirectional, Pattern::cross}) {
    problem.pattern = pattern;
    const Support support = entry.supports(resolve({}), problem);
    CHECK_FALSE(support);
    CHECK(support.reason.find("use the causal pattern") != std::string::npos);
  }
  problem.pattern = Pattern::causal;
  CHECK(entry.supports(resolve({}), problem));
  problem.heads = 4;
  problem.kv_heads = 2;
  CHECK_FALSE(entry.supports(resolve({}), problem));
}

}  // namespace attnbench
