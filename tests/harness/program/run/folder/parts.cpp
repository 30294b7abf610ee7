#include "harness/program/run/folder/parts.hpp"

#include "tests/support/catch.hpp"

using namespace attnbench;
using Catch::Matchers::Contains;

namespace {

result::RoundRecord record(double wall, const Json& parts) {
  result::RoundRecord round;
  round.wall_seconds = wall;
  if (!parts.is_null()) round.measured.further["parts"] = parts;
  return round;
}

}  // namespace

TEST_CASE("the parts of rounds are added up, the largest first", "[run]") {
  const run::Records rounds{
      {"a", {record(2, {{"samples", 1.0}, {"warm_up", 0.5}}), record(1, {{"samples", 0.75}})}},
      {"b", {record(1, {{"samples", 0.5}, {"warm_up", 0.5}})}}};
  const std::string table = run::parts_table(rounds, 5);
  CHECK_THAT(table, Contains("where the time of 3 rounds went"));
  CHECK_THAT(table, Contains("samples                       2.2 s   56.2 %   median 750 ms, "
                             "greatest 1000 ms"));
  CHECK_THAT(table, Contains("warm up                       1.0 s   25.0 %"));
  CHECK_THAT(table, Contains("start and end                 0.8 s   18.8 %   median 250 ms"));
  CHECK_THAT(table, Contains("outside of rounds             1.0 s   20.0 % of the run"));
  CHECK(table.find("samples") < table.find("warm up"));
  CHECK(run::parts_table(rounds, std::nullopt) == table.substr(0, table.find("  outside")));
}

TEST_CASE("rounds that do not say what their parts took are left out", "[run]") {
  CHECK(run::parts_table({{"a", {record(1, nullptr)}}}, 1) == "");
  CHECK_THAT(run::parts_table({{"a", {record(1, {{"samples", 1.0}}), record(1, nullptr)}}}, 1),
             Contains("of 1 round went"));
}
