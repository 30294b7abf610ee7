#include "core/option.hpp"

#include "core/errors.hpp"
#include "core/problem.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;

namespace {

std::vector<Option> declared() {
  return {Option::number("scale", 0, "a factor", 0),
          Option::integer("query_chunk", 1024, "queries", 1, 4096),
          Option::boolean("tied", true, "keys are values"),
          Option::text("kind", {"plain", "dissected"}, "which"),
          {"window", OptionType::window, Window{127, 0}, "keys"}};
}

std::string refusal(const std::map<std::string, OptionValue>& said) {
  try {
    Options::resolve(declared(), said);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("options: defaults are filled in and integers widen to numbers") {
  const auto options = Options::resolve(declared(), {{"scale", std::int64_t{2}}});
  CHECK(options.number("scale") == 2.0);
  CHECK(options.integer("query_chunk") == 1024);
  CHECK(options.boolean("tied"));
  CHECK(options.text("kind") == "plain");
  CHECK(options.window("window") == Window{127, 0});
}

TEST_CASE("options: a number without a fraction is an integer, another is not") {
  CHECK(Options::resolve(declared(), {{"query_chunk", 64.0}}).integer("query_chunk") == 64);
  CHECK(refusal({{"query_chunk", 64.5}}) == "option query_chunk must be an integer, not 64.5");
}

TEST_CASE("options: refusals name the place, what was expected and the nearest word") {
  CHECK(refusal({{"query_chunks", std::int64_t{1}}}) ==
        "unknown option query_chunks; did you mean query_chunk? The options are: scale, "
        "query_chunk, tied, kind, window");
  CHECK(refusal({{"query_chunk", std::int64_t{0}}}) ==
        "option query_chunk must be from 1 to 4096, not 0");
  CHECK(refusal({{"scale", -0.5}}) == "option scale must be at least 0, not -0.5");
  CHECK(refusal({{"tied", std::int64_t{1}}}) == "option tied must be a boolean, not 1");
  CHECK(refusal({{"kind", std::string("disected")}}) ==
        "option kind must be one of plain, dissected, not \"disected\"; did you mean dissected?");
  CHECK(refusal({{"window", Window{-1, 0}}}) ==
        "option window must not be negative on either side, not {\"left\":-1,\"right\":0}");
}

TEST_CASE("options: reading an undeclared name or another type is a programming error") {
  const auto options = Options::resolve(declared(), {});
  CHECK_THROWS_AS(options.integer("latents"), std::logic_error);
  CHECK_THROWS_WITH(options.integer("scale"), "option scale is read as integer but is number");
}

TEST_CASE("options: the closest word, or none where nothing is near") {
  CHECK(closest_word("sofmax", {"latte", "softmax", "window"}) == "softmax");
  CHECK(closest_word("lattte", {"latte", "softmax"}) == "latte");
  CHECK(closest_word("lattem", {"luna", "latte"}) == "latte");
  CHECK(closest_word("wnidow", {"latte", "window"}) == "window");
  CHECK(closest_word("perf", {"performer", "luna"}) == "performer");
  CHECK(closest_word("xyz", {"latte", "softmax"}).empty());
}

TEST_CASE("options: values are written as JSON writes them") {
  CHECK(to_string(OptionValue(0.1)) == "0.1");
  CHECK(to_string(OptionValue(1.0 / 3)) == "0.3333333333333333");
  CHECK(to_string(OptionValue(std::int64_t{-3})) == "-3");
  CHECK(to_string(OptionValue(false)) == "false");
  CHECK(to_string(OptionValue(std::string("a\"b\n"))) == "\"a\\\"b\\u000a\"");
  CHECK(to_string(OptionValue(Window{3, 1})) == "{\"left\":3,\"right\":1}");
}

TEST_CASE("problem: words go both ways and unknown ones are refused") {
  CHECK(pattern_from("causal") == Pattern::causal);
  CHECK(std::string(to_string(Dtype::bfloat16)) == "bfloat16");
  CHECK_THROWS_WITH(dtype_from("float23"),
                    "dtype must be one of float32, float64, bfloat16, float16, not \"float23\"; "
                    "did you mean float32?");
}

TEST_CASE("problem: visible pairs equal a count over all pairs") {
  for (const std::int64_t queries : {1, 3, 8}) {
    for (const std::int64_t keys : {1, 5, 8, 11}) {
      for (const Window window : {Window{0, 0}, Window{2, 0}, Window{3, 2}, Window{20, 20}}) {
        Problem problem;
        problem.length = queries;
        problem.key_length = keys;
        problem.pattern = Pattern::bidirectional;
        std::int64_t banded = 0;
        std::int64_t causal = 0;
        for (std::int64_t t = 0; t < queries; ++t) {
          for (std::int64_t s = 0; s < keys; ++s) {
            const std::int64_t distance = s - (t + keys - queries);
            banded += distance >= -window.left && distance <= window.right;
            causal += distance <= 0;
          }
        }
        CHECK(visible_pairs(problem, window.left, window.right) == banded);
        CHECK(visible_pairs(problem) == queries * keys);
        problem.pattern = Pattern::causal;
        CHECK(visible_pairs(problem) == causal);
      }
    }
  }
}
