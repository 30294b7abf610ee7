#include "reports/render.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include "core/process/fingerprint.hpp"

extern char** environ;

namespace attnbench::reports {
namespace {

namespace fs = std::filesystem;

/// Exit status of render.py where vl-convert is missing; 127 is the shell's for a missing program.
constexpr int module_missing = 3;
constexpr int program_missing = 127;

fs::path folder_of_binary() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path();
}

bool in_sources() {
  const std::string sources = std::string(ATTNBENCH_SOURCE_DIR) + "/";
  return folder_of_binary().string().rfind(sources, 0) == 0;
}

/// The script in the sources, or beside an installed binary: each its own first.
std::optional<fs::path> script() {
  const fs::path ours = fs::path(ATTNBENCH_SOURCE_DIR) / "reports/render.py";
  const fs::path installed = folder_of_binary() / "../share/attnbench/render.py";
  std::error_code ignored;
  for (const fs::path& path :
       in_sources() ? std::array{ours, installed} : std::array{installed, ours}) {
    if (fs::exists(path, ignored)) return path;
  }
  return std::nullopt;
}

/// Where an installed program looks for Python before it takes the system's.
fs::path installed_environment() { return folder_of_binary() / "../share/attnbench/venv"; }

std::string how_to_get_it(const std::string& python) {
  if (in_sources()) {
    return "run `./attnbench --yes report …`, or `pip install vl-convert-python` and set "
           "ATTNBENCH_PYTHON";
  }
  // The Python of a wheel.
  if (const char* host = std::getenv("ATTNBENCH_HOST_PYTHON"); host && *host) {
    return python + " has no module vl_convert; get it with `" + python +
           " -m pip install vl-convert-python`";
  }
  const std::string environment = installed_environment().lexically_normal().string();
  return python + " has no module vl_convert; make it with `python3 -m venv " + environment +
         " && " + environment +
         "/bin/pip install vl-convert-python`, or name a Python that has it with ATTNBENCH_PYTHON";
}

std::string interpreter() {
  if (const char* chosen = std::getenv("ATTNBENCH_PYTHON"); chosen && *chosen) return chosen;
  std::error_code ignored;
  const fs::path binary = folder_of_binary();
  for (const fs::path& root : {fs::path(ATTNBENCH_SOURCE_DIR), binary / "..", binary / "../.."}) {
    const fs::path python = root / ".venv/bin/python";
    if (fs::exists(python, ignored)) return python.string();
  }
  const fs::path installed = installed_environment() / "bin/python";
  if (fs::exists(installed, ignored)) return installed.string();
  // The launcher's; its last step there is this mark.
  const fs::path launchers = fs::path(ATTNBENCH_SOURCE_DIR) / "build/venv";
  if (fs::exists(launchers / ".ready", ignored)) return (launchers / "bin/python").string();
  return "python3";
}

std::string file_content(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// The last line that says something: of a Python traceback, the error.
std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \n");
  if (end == std::string::npos) return "";
  const std::size_t begin = text.find_last_of('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1, end - begin);
}

/// Exit status of `arguments` with both outputs in `log`; nothing if it was ended by the limit.
std::optional<int> finish(std::vector<std::string> arguments, const fs::path& log,
                          double limit_seconds) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = -1;
  const int failure =
      posix_spawnp(&child, pointers[0], &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) return program_missing;
  const auto begin = std::chrono::steady_clock::now();
  int status = 0;
  while (true) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) break;
    if (ended < 0 && errno != EINTR) return program_missing;
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    if (passed.count() > limit_seconds) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return std::nullopt;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Rendered render(const fs::path& figures, const std::vector<std::string>& formats,
                double limit_seconds) {
  Rendered rendered;
  const auto python_script = script();
  if (!python_script) {
    rendered.message = "no pictures: share/attnbench/render.py is missing from this installation";
    return rendered;
  }
  std::string list;
  for (const std::string& format : formats) list += (list.empty() ? "" : ",") + format;
  const fs::path bundle = figures / ".bundle.js";
  const fs::path log = figures / ".render.log";
  std::vector<std::string> call{interpreter(),
                                python_script->string(),
                                figures.string(),
                                "--formats",
                                list,
                                "--bundle",
                                bundle.string(),
                                "--tables",
                                (figures / "../tables").lexically_normal().string()};
  if (const fs::path kept = process::cache_file("vega"); !kept.empty()) {
    call.insert(call.end(), {"--kept", kept.parent_path().string()});
  }
  const auto status = finish(std::move(call), log, limit_seconds);
  const std::string said = last_line(file_content(log));
  rendered.bundle = file_content(bundle);
  std::error_code ignored;
  fs::remove(bundle, ignored);
  fs::remove(log, ignored);
  rendered.done = status == 0;
  if (rendered.done) return rendered;
  if (!status) {
    rendered.message = "no pictures: " + interpreter() + " took longer than " +
                       std::to_string(static_cast<int>(limit_seconds)) + " s";
  } else if (*status == module_missing || *status == program_missing) {
    rendered.message = "no pictures, only their specifications: ";
    rendered.message.append(how_to_get_it(interpreter()));
  } else {
    rendered.message = "not all pictures were made: " + said;
  }
  return rendered;
}

}  // namespace attnbench::reports
