#include "harness/program/gallery/claims.hpp"

#include "core/failure.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using Catch::Matchers::Contains;
using reports::claims::ClaimOutcome;

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const fs::path of_claims = test::source_folder();

/// A copy of a suite with a stored result and one claim about it.
class OneClaim {
 public:
  OneClaim() {
    fs::create_directories(folder_ / "suites/claims");
    fs::create_directories(folder_ / "gallery");
    fs::copy_file(of_claims / "suites/latte_v1_figure_2.json",
                  folder_ / "suites/latte_v1_figure_2.json");
    fs::copy_file(of_claims / "reports/gallery/latte_v1_figure_2.json", stored());
    claim(Json::object());
  }
  fs::path stored() const { return folder_ / "gallery/latte_v1_figure_2.json"; }

  /// Writes the claim with `patch`, a merge patch.
  void claim(const Json& patch, const std::string& paper = "latte_v1") const {
    const auto time = [](const char* label) {
      return Json{{"of", "time"}, {"label", label}, {"length", "greatest"}};
    };
    Json one = {{"name", "faster"},
                {"claim", "Latte is faster in both directions."},
                {"place", "Figure 2"},
                {"suite", "latte_v1_figure_2"},
                {"predicate", {{"less", {time("latte, bidirectional"), time("latte, scan")}}}}};
    one.merge_patch(patch);
    test::write_file(folder_ / "suites/claims/latte_v1.json",
                     Json{{"paper", paper}, {"claims", {one}}}.dump());
  }
  std::vector<gallery::HeldClaim> held(const std::vector<std::string>& words = {},
                                       const std::vector<fs::path>& runs = {}) const {
    return gallery::hold_claims(gallery::read_index(folder_ / "suites", folder_ / "gallery"), words,
                                runs);
  }

 private:
  test::TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("a claim follows from the stored result, and turns with its numbers", "[gallery]") {
  const OneClaim one;
  const auto before = one.held();
  REQUIRE(before.size() == 1);
  CHECK(before[0].evidence.outcome == ClaimOutcome::seen);
  CHECK_FALSE(before[0].measured.empty());
  CHECK(before[0].command.empty());
  Json result = Json::parse(test::read_file(one.stored()));
  for (Json& cell : result["attnbench"]["cells"]) {
    if (cell["label"] != "latte, bidirectional") continue;
    for (Json& timing : cell["timing"]) {
      for (const char* key : {"median_seconds", "low_seconds", "high_seconds"}) {
        timing[key] = 100 * timing[key].get<double>();
      }
      for (Json& round : timing["rounds"]) {
        round["median_seconds"] = 100 * round["median_seconds"].get<double>();
      }
    }
  }
  test::write_file(one.stored(), result.dump());
  CHECK(one.held()[0].evidence.outcome == ClaimOutcome::opposite);
  fs::remove(one.stored());
  const auto after = one.held();
  CHECK(after[0].evidence.outcome == ClaimOutcome::not_run);
  CHECK(after[0].command == "attnbench figures --run latte_v1_figure_2");
  CHECK(gallery::counted_words(after) ==
        "1 claim: 0 seen, 0 opposite seen, 0 cannot tell, 1 not run");
}

TEST_CASE("claims are chosen by paper, figure, suite or name, or by runs", "[gallery]") {
  const OneClaim one;
  for (const char* word :
       {"latte_v1", "latte_v1.figure_2", "latte_v1_figure_2", "latte_v1.faster"}) {
    CHECK(one.held({word}).size() == 1);
  }
  CHECK_THROWS_WITH(one.held({"latte_v3"}), Contains("did you mean \"latte_v1\""));
  CHECK(one.held({}, {one.stored()}).size() == 1);
  CHECK_THROWS_WITH(one.held({}, {of_claims / "reports/gallery/decode.json"}),
                    Contains("which no claim is about"));
  CHECK_THROWS_AS(one.held({}, {of_claims / "README.md"}), UsageFailure);
}

TEST_CASE("a claim about what is not there is refused with the nearest name", "[gallery]") {
  const OneClaim one;
  one.claim({{"suite", "latte_v1_figure_3"}});
  CHECK_THROWS_WITH(one.held(), Contains("latte_v1.faster") && Contains("latte_v1_figure_2"));
  one.claim(Json::object(), "latte_v7");
  CHECK_THROWS_WITH(one.held(), Contains("no paper \"latte_v7\""));
  const Json pair = {{{"of", "time"}, {"label", "latte scan"}, {"length", "greatest"}},
                     {{"of", "time"}, {"label", "standard"}, {"length", "greatest"}}};
  one.claim({{"predicate", {{"less", pair}}}});
  CHECK_THROWS_WITH(one.held(), Contains("did you mean \"latte, scan\""));
  one.claim({{"predicate",
              {{"less",
                {{{"of", "metrics.speed"}, {"label", "latte, scan"}, {"length", "greatest"}},
                 {{"of", "metrics.speed"},
                  {"label", "latte, bidirectional"},
                  {"length", "greatest"}}}}}}});
  CHECK_THROWS_WITH(one.held(), Contains("metrics.speed"));
  Json result = Json::parse(test::read_file(one.stored()));
  one.claim(Json::object());
  result["attnbench"]["schema"] = 99;
  test::write_file(one.stored(), result.dump());
  CHECK_THROWS_AS(one.held(), UsageFailure);
}

TEST_CASE("every claim of the papers can be held against what is stored", "[gallery]") {
  const auto index = gallery::read_index(of_claims / "suites", of_claims / "reports/gallery");
  const auto claims = gallery::hold_claims(index, {}, {});
  CHECK(claims.size() >= 45);
  for (const auto& one : claims) {
    CAPTURE(one.claim.id());
    const bool explained = !one.evidence.found.empty() || !one.evidence.reason.empty();
    CHECK(explained);
    if (one.evidence.outcome == ClaimOutcome::undecided) CHECK_FALSE(one.evidence.reason.empty());
    // `figures --run` takes suites of the gallery alone.
    if (one.command.find("figures --run") == std::string::npos) continue;
    CHECK(index.find(one.claim.suite)->in_gallery());
  }
}
