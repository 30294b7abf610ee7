// Long-short attention against its definition, and what is known of it.
#include "tests/attention/held.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench {
namespace {

using test::Held;
using test::relative_error;
using test::Said;

Held longshort(std::int64_t length, std::int64_t width, Pattern pattern, Said said = {}) {
  said.insert({"segment", test::count(5)});
  said.insert({"projected_length", test::count(3)});
  said.insert({"window", pattern == Pattern::causal ? Window{6, 0} : Window{4, 3}});
  return {"longshort", test::two_by_two(length, width, pattern), said};
}

constexpr Pattern patterns[] = {Pattern::causal, Pattern::bidirectional};

}  // namespace

TEST_CASE("longshort: equals the definition at odd sizes, with and without its norms") {
  for (const Pattern pattern : patterns) {
    for (const std::int64_t length : {1, 4, 5, 6, 53}) {
      for (const char* norm : {"dual", "none"}) {
        const Held held = longshort(length, 9, pattern, {{"norm", test::word(norm)}});
        CAPTURE(to_string(pattern), length, norm);
        CHECK(relative_error(held.output("composite"), held.expected()) < 1e-12);
        CHECK(relative_error(held.output("composite", at::kFloat), held.expected()) < 5e-6);
      }
    }
  }
}

TEST_CASE("longshort: gradients, steps and padding are those of the definition") {
  for (const Pattern pattern : patterns) {
    const Held held = longshort(23, 5, pattern);
    test::check_gradients(held, "composite");
    test::check_padding(held, "composite", {12, 23, {"key", "value", "slots"}});
  }
  // Windows shorter and longer than a segment, blocks that complete no segment, one and several.
  for (const std::int64_t left : {0, 2, 9}) {
    test::check_steps(longshort(37, 5, Pattern::causal, {{"window", Window{left, 0}}}),
                      {"composite"}, {1, 4, 5, 17});
  }
}

TEST_CASE("longshort: a window over everything, before any slot is seen, is softmax attention") {
  const Held held = longshort(
      20, 8, Pattern::causal,
      {{"window", Window{19, 0}}, {"segment", test::count(20)}, {"norm", test::word("none")}});
  Held softmax("softmax", held.problem);
  for (const char* role : {"query", "key", "value"}) {
    softmax.inputs.tensors[role] = held.inputs[role];
  }
  CHECK(relative_error(held.output("composite"), softmax.expected()) < 1e-12);
}

TEST_CASE("longshort: refuses segments of no token, windows ahead and the cross pattern") {
  const Entry& entry = test::registry().entry("longshort");
  const auto resolve = [&](const Said& said) { return Options::resolve(entry.options, said); };
  CHECK_THROWS_AS(resolve({{"segment", test::count(0)}}), UsageError);
  CHECK_THROWS_AS(resolve({{"projected_length", test::count(-1)}}), UsageError);
  CHECK_THROWS_AS(resolve({{"norm", test::word("batch")}}), UsageError);
  Problem problem;
  CHECK_THROWS_AS(entry.derive(resolve({{"window", Window{3, 1}}}), problem), UsageError);
  CHECK(entry.derive(resolve({}), problem).integer("projected_length") == 1);
  problem.pattern = Pattern::cross;
  CHECK_FALSE(entry.supports(resolve({}), problem));
}

}  // namespace attnbench
