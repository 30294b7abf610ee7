// attnbench: the program. Command line in, exit code out; links no LibTorch and loads no plugin.
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "harness/commands/command.hpp"
#include "core/failure.hpp"
#include "core/text/printable.hpp"
#include "core/json_file.hpp"
#include "core/text/spelling.hpp"

namespace {

using attnbench::ExitCode;

int exit_code(ExitCode code) { return static_cast<int>(code); }

constexpr const char* examples =
    "Examples:\n"
    "  attnbench run suites/quickstart.json\n"
    "  attnbench run latte flash --length 256..8192\n"
    "  attnbench plan suites/latte_v1_figure_2.json --profile quick\n"
    "  attnbench ab latte/chunked latte/fused --length 1024..4096\n"
    "  attnbench report runs/quickstart-latest\n"
    "\n";

/// The first word is a command: CLI11 says of another only that one is required.
void expect_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2) {
    throw attnbench::UsageFailure("expected a command, such as run; `attnbench --help` lists them");
  }
  const std::string word = argv[1];
  if (word.empty() || word.front() == '-') return;
  std::vector<std::string> known;
  for (const CLI::App* command : app.get_subcommands({})) known.push_back(command->get_name());
  if (std::find(known.begin(), known.end(), word) != known.end()) return;
  throw attnbench::UsageFailure("there is no command \"" + attnbench::result::quotable(word) +
                                "\"; " + attnbench::suite::suggestion(word, known));
}

/// JSON, which all that is written is, holds UTF-8 alone.
void expect_utf8(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (attnbench::result::is_utf8_text(argv[i])) continue;
    throw attnbench::UsageFailure("argument " + std::to_string(i) + ", \"" +
                                  attnbench::result::quotable(argv[i]) +
                                  "\", is not UTF-8; rename what it names, or type it again");
  }
}

int fail(const std::string& message, ExitCode code) {
  std::cerr << "attnbench: " << attnbench::result::bounded_message(message) << "\n";
  return exit_code(code);
}

/// What CLI11 says of a wrong command line quotes it whole.
int refuse(const CLI::App& app, const CLI::ParseError& error) {
  std::ostringstream out, complaint;
  // CLI11 has codes of its own, from 100 up; ours are the design's.
  const int code = app.exit(error, out, complaint) == 0 ? 0 : exit_code(ExitCode::usage);
  std::cout << out.str();
  if (!complaint.str().empty()) {
    std::cerr << attnbench::result::bounded_message(complaint.str()) << std::flush;
  }
  return code;
}

/// Whoever reads our output has seen enough of it (head), which is no failure.
bool reader_left() {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  return poll(&output, 1, 0) > 0 && (output.revents & POLLERR) != 0;
}

/// A table or a list that did not reach its file is not done.
int with_whole_output(int code) {
  std::cout.flush();
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  const int reason = errno;
  if (flushed && std::cout.good() && std::ferror(stdout) == 0) return code;
  if (code != 0 || reader_left()) return code;
  std::cerr << "attnbench: cannot write all of the output"
            << (reason == 0 ? "" : std::string(": ") + std::strerror(reason))
            << "; is the disk full?\n";
  return exit_code(ExitCode::environment);
}

int run_program(int argc, char** argv) {
  using namespace attnbench::commands;
  const attnbench::result::PrintableOutput out(std::cout);
  const attnbench::result::PrintableOutput complaints(std::cerr);
  CLI::App app{"Attention mechanisms measured for speed, memory and learning quality.",
               "attnbench"};
  app.require_subcommand(1);
  app.set_version_flag("--version", ATTNBENCH_VERSION_TEXT);
  app.footer(exit_codes);
  Chosen chosen;
  for (auto add : {add_run, add_report, add_check, add_apply, add_data, add_plan, add_validate,
                   add_list, add_describe, add_compare, add_ab, add_import, add_schema, add_doctor,
                   add_new}) {
    add(app, chosen);
  }
  app.footer(std::string(examples) + exit_codes);
  try {
    expect_utf8(argc, argv);
    expect_command(app, argc, argv);
    app.parse(argc, argv);
  } catch (const attnbench::Failure& failure) {
    return fail(failure.what(), failure.code());
  } catch (const CLI::ParseError& error) {
    return refuse(app, error);
  }
  try {
    return chosen();
  } catch (const attnbench::Failure& failure) {
    return fail(failure.what(), failure.code());
  } catch (const nlohmann::json::exception& error) {
    return fail("an answer or a file is not of the form that attnbench writes: " +
                    attnbench::result::json_complaint(error) + "; this is a defect of attnbench",
                ExitCode::environment);
  } catch (const std::bad_alloc&) {
    return fail("the memory is used up", ExitCode::environment);
  } catch (const std::exception& error) {
    return fail(error.what(), ExitCode::environment);
  }
}

}  // namespace

int main(int argc, char** argv) {
  // A file that may not grow is an error of what writes it, not the end of the program.
  std::signal(SIGXFSZ, SIG_IGN);
  return with_whole_output(run_program(argc, argv));
}
