// attnbench: the program. Links no LibTorch and loads no plugin.
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/failure.hpp"
#include "core/json_file.hpp"
#include "core/text/printable.hpp"
#include "harness/program/commands/shared/command.hpp"

namespace {

using attnbench::ExitCode;

int exit_code(ExitCode code) { return static_cast<int>(code); }

constexpr const char* examples =
    "Examples:\n"
    "  attnbench run quickstart\n"
    "  attnbench run latte flash --length 256..8192\n"
    "  attnbench plan latte_v1_figure_2 --profile quick\n"
    "  attnbench ab latte/chunked latte/fused --length 1024..4096\n"
    "  attnbench report runs/quickstart-latest\n"
    "\n";

/// Arguments are written to JSON files, which hold only UTF-8.
void expect_utf8(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (attnbench::text::is_utf8_text(argv[i])) continue;
    throw attnbench::UsageFailure("argument " + std::to_string(i) + ", \"" +
                                  attnbench::text::quotable(argv[i]) +
                                  "\", is not UTF-8; rename what it names, or type it again");
  }
}

int fail(const std::string& message, ExitCode code) {
  std::cerr << "attnbench: " << attnbench::text::bounded_message(message) << "\n";
  return exit_code(code);
}

/// Whether the reader of our output (such as head) has closed it, which is not a failure.
bool reader_left() {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  return poll(&output, 1, 0) > 0 && (output.revents & POLLERR) != 0;
}

/// The exit code, or that of an incomplete output where not all of it could be written.
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
  const attnbench::text::PrintableOutput out(std::cout);
  const attnbench::text::PrintableOutput complaints(std::cerr);
  CommandLine line("Attention mechanisms measured for speed, memory and learning quality.",
                   version_text, exit_codes());
  declare_all(line);
  line.footer(examples + exit_codes());
  try {
    expect_utf8(argc, argv);
    return line.run(argc, argv);
  } catch (const attnbench::Failure& failure) {
    return fail(failure.what(), failure.code());
  } catch (const nlohmann::json::exception& error) {
    return fail("an answer or a file is not of the form that attnbench writes: " +
                    attnbench::json_complaint(error) + "; this is a defect of attnbench",
                ExitCode::environment);
  } catch (const std::bad_alloc&) {
    return fail("the memory is used up", ExitCode::environment);
  } catch (const std::exception& error) {
    return fail(error.what(), ExitCode::environment);
  }
}

}  // namespace

int main(int argc, char** argv) {
  // Where a file may not grow, the write fails; the program continues.
  std::signal(SIGXFSZ, SIG_IGN);
  return with_whole_output(run_program(argc, argv));
}
