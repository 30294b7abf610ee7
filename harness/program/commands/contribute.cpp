// attnbench contribute RUN: a result as reports/machines/ keeps those of many machines.
#include <pwd.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>

#include "core/text/format.hpp"
#include "core/text/shell.hpp"
#include "harness/program/commands/shared/command.hpp"
#include "harness/program/gallery/contribution.hpp"
#include "harness/program/suite/known_suites.hpp"

namespace attnbench::commands {
namespace {

namespace fs = std::filesystem;

struct ContributeArguments {
  std::string run;
  std::string out;
  bool force = false;
};

/// Names of the user, of this host and the one that measured, and their folders. Names that many
/// have say nothing.
std::vector<std::string> names_here(const fs::path& run, const result::Result& whole) {
  std::vector<std::string> found{whole.machine.host,
                                 whole.machine.host.substr(0, whole.machine.host.find('.'))};
  for (const char* variable : {"USER", "LOGNAME", "HOME"}) {
    if (const char* value = std::getenv(variable)) found.emplace_back(value);
  }
  if (const passwd* user = getpwuid(getuid())) found.emplace_back(user->pw_name);
  if (utsname host{}; uname(&host) == 0) found.emplace_back(host.nodename);
  std::error_code ignored;
  const fs::path place = fs::weakly_canonical(run, ignored);
  found.push_back((fs::is_directory(place, ignored) ? place : place.parent_path()).string());
  std::erase_if(found, [](const std::string& name) {
    return name.size() < 2 || name == "root" || name == "user" || name == "localhost";
  });
  return found;
}

/// reports/machines of the checkout that has the suites, else the current folder.
fs::path default_folder(const fs::path& suites) {
  const fs::path reports = suites.parent_path() / "reports";
  std::error_code ignored;
  return !suites.empty() && fs::is_directory(reports, ignored) ? reports / "machines" : ".";
}

int contribute(const ContributeArguments& arguments) {
  const fs::path found = suite::suites_folder();
  const fs::path suites = found.empty() ? found : fs::absolute(found).lexically_normal();
  const result::Result whole = result::read_result(arguments.run);
  const result::Result result = gallery::contributed(whole, suites);
  gallery::expect_contribution(result, names_here(arguments.run, whole));
  const fs::path folder = arguments.out.empty() ? default_folder(suites) : fs::path(arguments.out);
  const fs::path file = gallery::store_contribution(result, folder, arguments.force);
  const std::string quoted = text::shell_words({file.string()});
  std::cout << "written    " << file.string() << ", "
            << text::human_bytes(static_cast<double>(fs::file_size(file))) << "\n"
            << "taken out  names of host, folders and other programs; samples, logs, environment, "
               "plugins\n"
            << "left in    CPU and GPU, memory, kernel and libraries, load, dates, commit "
            << result.provenance.commit.substr(0, 8)
            << (result.provenance.dirty.value_or(false) ? " with changes" : "") << "\n"
            << "look       attnbench report " << quoted << "\n"
            << "send       a pull request that adds it to reports/machines/; who sends it puts it "
               "under the\n           project's licence, Apache 2.0\n";
  return 0;
}

}  // namespace

void declare_contribute(Command& command) {
  const auto arguments = std::make_shared<ContributeArguments>();
  command
      .option("RUN", arguments->run,
              "a complete run of a suite of the project: its folder or result.json")
      .required();
  command.option("--out", arguments->out,
                 "folder of the file (default: reports/machines of a checkout, else here)");
  command.flag("--force", arguments->force,
               "replace a file of another commit, profile, build or machine");
  command.footer(
      "Writes SUITE-CPUMODEL-THREADS.json without samples, logs, names of host, user and folders.\n"
      "Exit codes: 0 written, 1 a cell is wrong or cannot be right, 2 not a result to compare, or "
      "it\nholds a name, 4 more than half of the timed cells are disturbed.\n"
      "\n"
      "Example:\n"
      "  attnbench run quickstart\n"
      "  attnbench contribute runs/quickstart-latest");
  command.runs([arguments] { return contribute(*arguments); });
}

}  // namespace attnbench::commands
