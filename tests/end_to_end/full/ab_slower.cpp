// attnbench ab where one side is slower: it measures, and waits for a machine that is quiet enough
// for a verdict.
#include "tests/end_to_end/ab_bench.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;

TEST_CASE("ab --gate ends with 1 where a cell is slower, and says by how much and how to repeat it",
          "[program][ab]") {
  // `slowed` takes all its tokens a second time: on a machine at rest one attempt decides.
  constexpr int attempts = 5;
  for (int attempt = 1; attempt <= attempts; ++attempt) {
    const Ab ab;
    const std::string suite = small_suite(
        ab, {{"mechanisms",
              {{"plain", nullptr},
               {"tiles", nullptr},
               {"twice", {{"use", "slowed"}, {"implementation", "fused"}}}}},
             {"set", {{"length", 2048}}},
             {"gate", {{"relative_change", 0.2}, {"rounds_most", 24}, {"confirm", 8}}}});
    const std::string markdown = ab.folder / "ab.md", junit = ab.folder / "ab.xml";
    const Finished finished =
        ab("--base-set percent=0 --new-set percent=100 " + suite + " --plugin " +
           test::build_folder() + "/plugins/slowed.so --gate --no-report --markdown " + markdown +
           " --junit " + junit);
    INFO("attempt " << attempt << "\n" << finished.out << finished.err);
    const Json pairs = ab.read("ab.json")["pairs"];
    REQUIRE(pairs.size() == 1);
    const Json& pair = pairs[0];
    // Beside other programs rounds are left out, until too few are left.
    if (finished.exit_code == 4 && pair["verdict"] == "UNCLEAR") continue;
    REQUIRE(finished.exit_code == 1);
    CHECK(pair["verdict"] == "SLOW");
    CHECK(pair["name"] == "kernel twice");
    CHECK(pair["ratio_low"].get<double>() > 1.2);
    CHECK(pair["confirmation"]["ratio_low"].get<double>() > 1);
    const std::string id = pair["id"];
    CHECK_THAT(finished.out, Contains("slow    kernel twice, ") && Contains("; alone: ") &&
                                 Contains("--base-set percent=0 --new-set percent=100") &&
                                 Contains("--only " + id.substr(0, id.rfind('-'))));
    std::string line = finished.out.substr(finished.out.find("slow    kernel twice, "));
    line = line.substr(0, line.find('\n'));
    CHECK_THAT(line, Catch::Matches("slow    kernel twice, [0-9.]+ \\[[0-9.]+, [0-9.]+\\]; .*"));
    CHECK_THAT(read_file(markdown), Contains("What moved") && Contains("SLOW"));
    CHECK_THAT(read_file(junit), Contains("<failure message=\"SLOW "));
    return;
  }
  WARN("no verdict in " << attempts << " attempts: this machine is too disturbed for one");
}
