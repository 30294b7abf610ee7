#include "harness/program/suite/sides.hpp"

#include "core/failure.hpp"
#include "harness/program/suite/suite.hpp"
#include "tests/harness/program/suite/catalogue_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;

namespace {

const char* const two_tasks = R"({
  "name": "two",
  "tasks": {"forward": {"task": "kernel"},
            "both": {"task": "kernel", "mechanisms": ["old", "fused"]}},
  "mechanisms": {"old": {"use": "softmax"}, "fused": {"use": "latte", "implementation": "fused"}},
  "profiles": {"quick": {"mechanisms": {"old": null}}}
})";

Catalogue without_fused() {
  Catalogue catalogue = test::catalogue();
  for (MechanismSpec& mechanism : catalogue.mechanisms) {
    auto& all = mechanism.implementations;
    std::erase_if(all, [](const auto& one) { return one.name == "fused"; });
  }
  return catalogue;
}

std::vector<std::string> labels(const suite::Document& document, const Catalogue& catalogue) {
  std::vector<std::string> all;
  suite::Choices choices;
  choices.set = {"pattern=causal"};
  for (const Cell& cell : suite::expand(document, catalogue, choices).cells) {
    all.push_back(cell.task_label + " " + cell.label);
  }
  return all;
}

}  // namespace

TEST_CASE("a build runs the suite without what the other one alone has", "[suite][ab]") {
  const Catalogue older = without_fused();
  suite::Document document = suite::parse_document("two.json", two_tasks);
  CHECK_THROWS_AS(labels(document, older), UsageFailure);
  suite::drop_unknown(document, older, test::catalogue());
  CHECK(labels(document, older) == std::vector<std::string>{"forward old", "both old"});
  // What neither has is refused, as in any run.
  suite::Document neither = suite::parse_document("two.json", two_tasks);
  suite::drop_unknown(neither, older, older);
  CHECK_THROWS_AS(labels(neither, older), UsageFailure);
  suite::Document whole = suite::parse_document("two.json", two_tasks);
  suite::drop_unknown(whole, test::catalogue(), older);
  CHECK(labels(whole, test::catalogue()).size() == 4);
}

TEST_CASE("a mechanism takes the place of the suite's own in all its tasks", "[suite][ab]") {
  const suite::Document document =
      suite::with_mechanism(suite::parse_document("two.json", two_tasks), "latte/scan");
  CHECK(labels(document, test::catalogue()) ==
        std::vector<std::string>{"forward latte/scan", "both latte/scan"});
  suite::Choices quick;
  quick.profile = "quick";
  quick.set = {"pattern=causal"};
  CHECK(suite::expand(document, test::catalogue(), quick).cells.size() == 2);
}
