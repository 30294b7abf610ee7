#include "tasks/settings.hpp"

#include "core/errors.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;

namespace {

Problem problem_of(std::map<std::string, OptionValue> said) {
  std::vector<Option> declared = tasks::size_settings();
  declared.push_back({"length", OptionType::integer, std::int64_t{16}, "", {}, {}, {}});
  declared.push_back({"key_length", OptionType::integer, std::int64_t{0}, "", {}, {}, {}});
  declared.push_back({"pattern", OptionType::text, std::string("causal"), "", {}, {}, {}});
  return tasks::problem_from(Options::resolve(declared, said));
}

std::int64_t integer(std::int64_t value) { return value; }

std::string refusal(const std::map<std::string, OptionValue>& said) {
  try {
    problem_of(said);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("sizes that are not set are derived", "[sizes]") {
  const Problem problem = problem_of({});
  CHECK(problem.heads == 4);
  CHECK(problem.kv_heads == 4);
  CHECK(problem.head_dim == 64);
  CHECK(problem.value_dim == 64);
  CHECK(problem.key_length == 16);
  CHECK(problem.pattern == Pattern::causal);
  CHECK(problem.dtype == Dtype::float32);
}

TEST_CASE("the width is split over heads", "[sizes]") {
  CHECK(problem_of({{"width", integer(128)}}).head_dim == 32);
  CHECK(problem_of({{"width", integer(128)}, {"head_dim", integer(32)}}).head_dim == 32);
  CHECK(problem_of({{"head_dim", integer(8)}, {"value_dim", integer(3)}}).value_dim == 3);
  CHECK(problem_of({{"heads", integer(6)}, {"kv_heads", integer(2)}}).kv_heads == 2);
}

TEST_CASE("queries and keys have a width of their own beside that of the tokens", "[sizes]") {
  const Problem same = problem_of({{"width", integer(128)}, {"key_dim", integer(32)}});
  CHECK(same.model_width == 0);
  const Problem narrow = problem_of({{"width", integer(128)}, {"key_dim", integer(16)}});
  CHECK(narrow.head_dim == 16);
  CHECK(narrow.value_dim == 32);
  CHECK(narrow.width() == 128);
  const Problem both =
      problem_of({{"head_dim", integer(32)}, {"key_dim", integer(40)}, {"value_dim", integer(64)}});
  CHECK(both.head_dim == 40);
  CHECK(both.value_dim == 64);
  CHECK(both.width() == 128);
}

TEST_CASE("sizes that contradict each other are refused, naming both", "[sizes]") {
  CHECK(refusal({{"width", integer(130)}}).find("width 130 is not a multiple of heads 4") == 0);
  CHECK(refusal({{"width", integer(128)}, {"head_dim", integer(64)}}).find("head_dim 64") !=
        std::string::npos);
  CHECK(refusal({{"kv_heads", integer(3)}}).find("kv_heads 3 does not divide heads 4") == 0);
  CHECK(refusal({{"key_length", integer(8)}}).find("only the pattern cross allows") !=
        std::string::npos);
  CHECK(refusal({{"key_length", integer(8)}, {"pattern", std::string("cross")}}).empty());
}
