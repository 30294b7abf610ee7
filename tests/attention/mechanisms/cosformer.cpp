// cosFormer's implementations against its definition, and what is known of it.
#include "tests/attention/held.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench {
namespace {

using test::Held;
using test::relative_error;
using test::Said;

Held cosformer(std::int64_t length, std::int64_t width, std::int64_t reach,
               Pattern pattern = Pattern::causal) {
  return {"cosformer",
          test::two_by_two(length, width, pattern),
          {{"maximum_length", reach}, {"chunk", test::count(16)}}};
}

}  // namespace

TEST_CASE("cosformer: every form equals the definition at odd sizes, up to the last token") {
  for (const std::int64_t length : {1, 3, 16, 133}) {
    const Held held = cosformer(length, 43, length);
    test::check_outputs(held, test::implementations_of("cosformer"), 5e-6);
  }
  for (const Pattern pattern : {Pattern::bidirectional, Pattern::cross}) {
    for (const auto& name : test::implementations_of("cosformer")) {
      const Held held = cosformer(33, 9, 40, pattern);
      CHECK(relative_error(held.output(name), held.expected()) < 1e-12);
    }
  }
}

TEST_CASE("cosformer: gradients, steps and padding are those of the definition") {
  const Held held = cosformer(37, 5, 37);
  for (const auto& name : test::implementations_of("cosformer")) {
    CAPTURE(name);
    test::check_gradients(held, name);
    test::check_padding(held, name, {30, 37, {"key", "value"}});
    test::check_gradients(cosformer(21, 5, 28, Pattern::cross), name);
  }
  test::check_steps(held, test::implementations_of("cosformer"), {1, 16, 20});
}

TEST_CASE("cosformer: without distances that matter it is linear attention with relu") {
  const Held held = cosformer(37, 8, 1'000'000'000);
  const at::Tensor query = at::relu(held.inputs["query"]), key = at::relu(held.inputs["key"]);
  const at::Tensor weights = at::matmul(query, key.transpose(-2, -1)).tril();
  const at::Tensor want =
      at::matmul(weights, held.inputs["value"]) / (weights.sum(-1, true) + 1e-6);
  for (const auto& name : test::implementations_of("cosformer")) {
    CAPTURE(name);
    CHECK(relative_error(held.output(name), want) < 1e-12);
  }
}

TEST_CASE("cosformer: refuses sequences beyond maximum_length, in one piece and step by step") {
  const Entry& entry = test::registry().entry("cosformer");
  const auto resolve = [&](const Said& said) { return Options::resolve(entry.options, said); };
  CHECK_THROWS_AS(resolve({{"maximum_length", test::count(0)}}), UsageError);
  CHECK_THROWS_AS(resolve({{"epsilon", 0.0}}), UsageError);
  Problem problem;
  problem.length = problem.key_length = 20;
  const Support support = entry.supports(resolve({{"maximum_length", test::count(19)}}), problem);
  CHECK_FALSE(support);
  CHECK(support.reason.find("maximum_length 19 is less than the 20 tokens") != std::string::npos);
  const Held held = cosformer(20, 4, 20);
  State state = held.empty_state();
  held.step("scan", state, 0, 20);
  CHECK_THROWS_AS(held.step("scan", state, 0, 1), UnsupportedError);
}

}  // namespace attnbench
