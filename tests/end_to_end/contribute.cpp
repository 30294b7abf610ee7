// attnbench contribute, as somebody calls it who sends a result.
#include <filesystem>

#include "tests/end_to_end/runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/process.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

TEST_CASE("contribute writes a result for reports/machines, without names", "[program]") {
  const TemporaryFolder here;
  for (const char* folder : {"suites", "reports", "elsewhere"}) fs::create_directory(here / folder);
  fs::copy(source_folder() + "/suites/quickstart.json", here / "suites");
  fs::copy(source_folder() + "/suites/form", here / "suites/form");
  const std::string stored = source_folder() + "/reports/gallery/quickstart.json";
  const auto contribute = [&](const std::string& words, const std::string& user = "ann") {
    return call("contribute " + words, {{"USER", user}}, here.path());
  };
  const Finished done = contribute(stored);
  INFO(done.out << done.err);
  REQUIRE(done.exit_code == 0);
  const fs::path file = here / "reports/machines/quickstart-intel-xeon-processor-2.json";
  CHECK_THAT(done.out, Contains(file.string()) && Contains("taken out") && Contains("Apache 2.0") &&
                           Contains("attnbench report "));
  CHECK_THAT(read_file(file), Contains("\"license\":\"Apache-2.0\"") && !Contains("/usr/lib"));
  CHECK(call("report " + file.string() + " --json").exit_code == 0);
  // Once more, and from the file itself.
  CHECK(contribute(file.string() + " --out elsewhere").exit_code == 0);
  CHECK(read_file(here / ("elsewhere/" + file.filename().string())) == read_file(file));

  const Finished named = contribute(stored + " --out elsewhere", "Xeon");
  CHECK(named.exit_code == 2);
  CHECK_THAT(named.err, Contains("/attnbench/machine/cpu_model: holds \"Xeon\""));
  fs::remove(here / "suites/quickstart.json");
  const Finished foreign = contribute(stored);
  CHECK(foreign.exit_code == 2);
  CHECK_THAT(foreign.err, Contains("quickstart: is no suite of"));
  CHECK(contribute("nothing").exit_code == 2);
}
