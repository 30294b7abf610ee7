#include "reports/claims/claim.hpp"

#include "core/failure.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using Catch::Matchers::Contains;
using reports::claims::PaperClaim;
using reports::claims::read_claims;

namespace {

const Json time_of_latte = {{"of", "time"}, {"label", "latte"}, {"length", 256}};
const Json time_of_softmax = {{"of", "time"}, {"label", "softmax"}, {"length", 256}};

Json claim_with(const Json& predicate) {
  return {{"name", "faster"},
          {"claim", "Latte is faster than attention."},
          {"place", "Figure 2"},
          {"suite", "latte_v1_figure_2"},
          {"predicate", predicate}};
}

const Json good_claim = claim_with({{"less", {time_of_latte, time_of_softmax}}});

std::vector<PaperClaim> read(const std::vector<Json>& claims) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "latte_v1.json",
                   Json{{"paper", "latte_v1"}, {"claims", claims}}.dump());
  return read_claims(folder / "");
}

/// What reading a claim with `patch` (a merge patch) is refused with.
void form_refused(const Json& patch, const std::string& message) {
  Json claim = good_claim;
  claim.merge_patch(patch);
  INFO(patch.dump());
  CHECK_THROWS_WITH(read({claim}), Contains(message) && Contains("latte_v1.json"));
}

void predicate_refused(const Json& predicate, const std::string& message) {
  INFO(predicate.dump());
  CHECK_THROWS_WITH(read({claim_with(predicate)}), Contains(message));
}

}  // namespace

TEST_CASE("claims are read, and written as they were", "[claims]") {
  Json full =
      claim_with({{"all",
                   {{{"crossing", {time_of_latte, time_of_softmax}},
                     {"along", "length"},
                     {"within", {nullptr, 4000}}},
                    {{"slope", time_of_latte}, {"along", "length"}, {"within", {0.8, 1.2}}}}}});
  full["published"] = {{"value", "3000"}, {"source", "Figure 4"}};
  full["size"] = {{"length", 16000}};
  const auto claims = read({full});
  REQUIRE(claims.size() == 1);
  CHECK(claims[0].id() == "latte_v1.faster");
  CHECK(claims[0].predicate->all[0].within->high == 4000.0);
  CHECK(claims[0].predicate->all[1].slope->settings.at("length") == 256);
  full["paper"] = "latte_v1";
  CHECK(Json(claims[0]) == full);
}

TEST_CASE("a folder without claims has none", "[claims]") {
  const test::TemporaryFolder folder;
  CHECK(read_claims(folder / "").empty());
  CHECK(read_claims(folder / "nowhere").empty());
}

TEST_CASE("claims of another form are refused with file and place", "[claims]") {
  form_refused({{"claim", nullptr}}, "/claims/0/claim: expected a value");
  form_refused({{"claim", ""}}, "a sentence");
  form_refused({{"predikate", 1}}, "predikate");
  form_refused({{"predicate", nullptr}}, "a predicate, or else the reason");
  form_refused({{"not_run", "no weights"}}, "a predicate, or else the reason");
  form_refused({{"suite", nullptr}}, "the suite that the predicate is about");
  form_refused({{"published", {{"value", "3000"}}}}, "source");
  form_refused({{"published", {{"value", "3000"}, {"source", ""}}}},
               "a published value with its source");
  form_refused({{"size", {{"length", "long"}}}}, "/claims/0/size/length: expected a number");
  CHECK_THROWS_WITH(read({good_claim, good_claim}),
                    Contains("/claims/1/name: expected a name of its own"));
  const test::TemporaryFolder folder;
  test::write_file(folder / "a.json", "{");
  CHECK_THROWS_AS(read_claims(folder / ""), UsageFailure);
  test::write_file(folder / "a.json", "[]");
  CHECK_THROWS_WITH(read_claims(folder / ""), Contains("a.json"));
}

TEST_CASE("predicates of no known form are refused", "[claims]") {
  const Json pair = {time_of_latte, time_of_softmax};
  predicate_refused({{"greater", pair}}, "greater");
  predicate_refused(Json::object(), "exactly one of less");
  predicate_refused({{"less", pair}, {"ratio", pair}, {"within", {0, 1}}}, "exactly one of less");
  predicate_refused({{"less", {time_of_latte}}}, "two quantities or more");
  predicate_refused({{"less", pair}, {"within", {0, 1}}}, "no \"within\"");
  predicate_refused({{"ratio", pair}}, "bounds");
  predicate_refused({{"ratio", {time_of_latte}}, {"within", {0, 1}}}, "two quantities");
  predicate_refused({{"difference", pair}}, "bounds");
  predicate_refused({{"crossing", pair}}, "along");
  predicate_refused({{"value", time_of_latte}}, "bounds");
  predicate_refused({{"value", time_of_latte}, {"along", "length"}, {"within", {0, 1}}},
                    "no \"along\"");
  predicate_refused({{"slope", time_of_latte}, {"within", {0, 1}}}, "along");
  predicate_refused({{"slope", time_of_latte}, {"along", "length"}}, "bounds");
  predicate_refused({{"all", {{{"less", pair}}}}, {"along", "length"}}, "in the parts of all");
  for (const Json& within : {Json(1), Json{1}, Json{nullptr, nullptr}, Json{2, 1}, Json{"a", 1}}) {
    predicate_refused({{"ratio", pair}, {"within", within}}, "[LOW, HIGH]");
  }
  predicate_refused({{"less", {{{"of", "time"}}, time_of_softmax}}}, "label");
}
