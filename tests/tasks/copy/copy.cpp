#include "tests/support/catch.hpp"
#include "tests/tasks/run_cell.hpp"

using namespace attnbench;
using namespace attnbench::test;
using Catch::Matchers::Contains;
using std::int64_t;

namespace {

Settings small_copy() {
  return {{"batch", int64_t{8}},
          {"width", int64_t{16}},
          {"heads", int64_t{2}},
          {"length", int64_t{16}},
          {"positions", std::string("sinusoidal")},
          {"order", std::string("fresh")},
          {"schedule", std::string("drop")},
          {"drop_after", int64_t{6}},
          {"train_examples", int64_t{24}},
          {"validation_examples", int64_t{10}},
          {"test_examples", int64_t{12}},
          {"epochs", int64_t{3}}};
}

}  // namespace

TEST_CASE("copying is trained on new examples in each epoch", "[copy]") {
  for (const char* name : {"softmax", "linear"}) {
    const Ran ran = run_cell(registry(), "copy", make_cell("copy", name, "auto", small_copy()));
    CHECK(ran.check["verdict"] == "ok");
    const Json& training = ran.sections["training"];
    CHECK(training["steps"] == 9);
    CHECK(training["examples_unique"] == 72);
    CHECK(training["examples_seen"] == 72);
    CHECK(training["chance"] == Approx(0.1));
    CHECK_FALSE(training.contains("guess"));
    CHECK(training["curve"][1]["learning_rate"] == Approx(1e-3));
    CHECK(training["curve"][2]["learning_rate"] == Approx(1e-4));
    CHECK(ran.sections["metrics"].contains("label_accuracy"));
  }
}
