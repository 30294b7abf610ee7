#include "tests/support/process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "tests/support/files.hpp"

namespace attnbench::test {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int exit_code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

pid_t start(const std::vector<std::string>& arguments, const std::string& out,
            const std::string& err, const std::map<std::string, std::string>& environment,
            const std::string& folder) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("fork failed");
  if (pid > 0) return pid;
  setpgid(0, 0);
  const int out_file = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const int err_file =
      err == out ? out_file : open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const int in_file = open("/dev/null", O_RDONLY);
  dup2(in_file, 0);
  dup2(out_file, 1);
  dup2(err_file, 2);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  if (!folder.empty() && chdir(folder.c_str()) != 0) _exit(127);
  execvp(argv[0], argv.data());
  _exit(127);
}

}  // namespace

std::vector<std::string> words(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> found;
  for (std::string word; stream >> word;) found.push_back(word == "\"\"" ? "" : word);
  return found;
}

Finished call(const std::string& line, const std::map<std::string, std::string>& environment,
              const std::string& folder) {
  return run(words(program() + " " + line), 580, environment, folder);
}

Finished run(const std::vector<std::string>& arguments, double limit_seconds,
             const std::map<std::string, std::string>& environment, const std::string& folder) {
  TemporaryFolder outputs;
  const std::string out = outputs / "out";
  const std::string err = outputs / "err";
  const auto begin = Clock::now();
  const pid_t pid = start(arguments, out, err, environment, folder);
  int status = 0;
  bool killed = false;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (since(begin) > limit_seconds && !killed) {
      kill(-pid, SIGKILL);
      killed = true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  Finished finished;
  finished.exit_code = exit_code_of(status);
  finished.out = read_file(out);
  finished.err = read_file(err);
  if (killed) finished.err += "\n[test] killed after its time limit\n";
  return finished;
}

Running::Running(const std::vector<std::string>& arguments, const std::string& output_file,
                 const std::map<std::string, std::string>& environment)
    : pid_(start(arguments, output_file, output_file, environment, {})) {}

Running::~Running() {
  if (exit_code_ < 0) {
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

void Running::signal(int number) const { kill(pid_, number); }

int Running::wait(double limit_seconds) {
  const auto begin = Clock::now();
  int status = 0;
  while (exit_code_ < 0 && since(begin) < limit_seconds) {
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      exit_code_ = exit_code_of(status);
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  return exit_code_;
}

std::vector<pid_t> Running::children(pid_t of) const {
  const pid_t parent = of == 0 ? pid_ : of;
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream stat(entry.path() / "stat");
    std::string text;
    std::getline(stat, text);
    const std::size_t end = text.rfind(')');  // the name in parentheses may hold anything
    if (end == std::string::npos || end + 4 > text.size()) continue;
    if (std::stoi(text.substr(end + 4)) == parent) found.push_back(std::stoi(name));
  }
  return found;
}

std::string program() { return build_folder() + "/bin/attnbench"; }
std::string worker_program() { return program() + "-worker"; }

}  // namespace attnbench::test
