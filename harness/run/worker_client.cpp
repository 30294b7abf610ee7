#include "harness/run/worker_client.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

#include "harness/run/files.hpp"
#include "harness/run/protocol.hpp"
#include "harness/run/signals.hpp"
#include "harness/run/worker_environment.hpp"

extern char** environ;

namespace attnbench::run {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double start_limit_seconds = 120;
constexpr double tick_seconds = 0.1;

double since(Clock::time_point moment) {
  return std::chrono::duration<double>(Clock::now() - moment).count();
}

std::vector<std::string> environment_of(const WorkerOptions& options) {
  std::vector<std::string> ours;
  for (char** entry = environ; *entry != nullptr; ++entry) ours.emplace_back(*entry);
  return worker_environment(
      ours, {options.keep_blas_core, options.blas_core, shared_blas_folder(), options.waiting});
}

bool is_event(const std::string& type) { return type == "heartbeat" || type == "progress"; }

}  // namespace

std::filesystem::path program_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

int usable_cores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return std::max(1, CPU_COUNT(&cores));
  return std::max(1u, std::thread::hardware_concurrency());
}

WorkerClient::WorkerClient(WorkerOptions options) : options_(std::move(options)) {
  if (options_.program.empty()) options_.program = program_folder() / "attnbench-worker";
  if (options_.threads <= 0) options_.threads = usable_cores();
  if (options_.log.empty()) {
    own_log_ = true;
    options_.log = std::filesystem::temp_directory_path() /
                   ("attnbench-worker-" + std::to_string(getpid()) + "-" +
                    std::to_string(reinterpret_cast<std::uintptr_t>(this)) + ".log");
  }
}

WorkerClient::~WorkerClient() {
  if (running()) {
    tell({{"type", "bye"}});
    channel_.close();
    const auto begin = Clock::now();
    while (since(begin) < 2) {
      if (waitpid(pid_, nullptr, WNOHANG) == pid_) {
        pid_ = -1;
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    kill();
  }
  std::error_code ignored;
  if (own_log_) std::filesystem::remove(options_.log, ignored);
}

void WorkerClient::start() {
  if (running()) return;
  if (access(options_.program.c_str(), X_OK) != 0) {
    throw EnvironmentFailure("no worker at " + options_.program.string() +
                             ": build attnbench with LibTorch (./attnbench build)");
  }
  auto [ours, theirs] = Channel::pair();
  channel_ = std::move(ours);
  spawn(std::move(theirs));
  handshake();
}

void WorkerClient::spawn(Channel theirs) {
  std::vector<std::string> entries = environment_of(options_);
  std::vector<char*> environment;
  for (std::string& entry : entries) environment.push_back(entry.data());
  environment.push_back(nullptr);
  const std::string program = options_.program.string();
  const std::string number = std::to_string(theirs.descriptor());
  const int log = ::open(options_.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  char* arguments[] = {const_cast<char*>(program.c_str()), const_cast<char*>("--socket"),
                       const_cast<char*>(number.c_str()), nullptr};
  pid_ = fork();
  if (pid_ == 0) {
    // A group of its own: Ctrl-C is ours to act on.
    setpgid(0, 0);
    dup2(nothing, 0);
    dup2(log >= 0 ? log : nothing, 1);
    dup2(log >= 0 ? log : nothing, 2);
    fcntl(theirs.descriptor(), F_SETFD, 0);
    execve(program.c_str(), arguments, environment.data());
    _exit(127);
  }
  if (log >= 0) ::close(log);
  if (nothing >= 0) ::close(nothing);
  if (pid_ < 0)
    throw EnvironmentFailure(std::string("cannot start the worker: ") + strerror(errno));
}

void WorkerClient::handshake() {
  try {
    hello_ = request({{"type", "hello"},
                      {"protocol", protocol_version},
                      {"plugins", options_.plugins},
                      {"threads", options_.threads},
                      {"device", options_.device}},
                     {}, start_limit_seconds);
  } catch (const std::runtime_error& error) {
    const std::string tail = log_tail();
    kill();
    throw EnvironmentFailure("the worker " + options_.program.string() +
                             " did not start: " + error.what() + (tail.empty() ? "" : "\n" + tail));
  }
  const int spoken = hello_.value("protocol", 0);
  if (spoken != protocol_version) {
    kill();
    throw EnvironmentFailure("the worker " + options_.program.string() + " speaks protocol " +
                             std::to_string(spoken) + " and this attnbench " +
                             std::to_string(protocol_version) +
                             ": build both again (attnbench build)");
  }
}

Json WorkerClient::request(const Json& message, const OnEvent& on_event, double seconds) {
  start();
  const std::string wanted = message.at("type");
  const auto begin = Clock::now();
  try {
    channel_.send(message);
    while (true) {
      if (tick_) tick_();
      const auto answer = channel_.receive(tick_seconds);
      const std::string type = answer ? answer->value("type", "") : "";
      if (answer && !is_event(type)) {
        if (type != "error") return *answer;
        throw WorkerRefused(answer->value("message", "the worker could not do \"" + wanted + "\""));
      }
      if (answer && on_event) on_event(*answer);
      if (seconds > 0 && since(begin) > seconds) {
        throw WorkerSilent("the worker gave no answer to \"" + wanted + "\" within " +
                           std::to_string(static_cast<int>(seconds)) + " s");
      }
    }
  } catch (const ChannelError&) {
    throw WorkerDied(bury());
  }
}

void WorkerClient::tell(const Json& message) {
  try {
    if (running()) channel_.send(message);
  } catch (const ChannelError&) {
    // Its death is noticed by whoever waits for an answer.
  }
}

void WorkerClient::kill() {
  if (!running()) return;
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  channel_.close();
}

std::string WorkerClient::bury() {
  // A worker that talks nonsense still lives; give one that is dying the time to leave its status.
  int status = 0;
  const auto begin = Clock::now();
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (since(begin) > 2) {
      kill();
      return "the worker broke off the conversation";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  pid_ = -1;
  channel_.close();
  if (WIFSIGNALED(status)) return "the worker was killed by " + signal_text(WTERMSIG(status));
  return "the worker ended with exit code " + std::to_string(WEXITSTATUS(status));
}

std::string WorkerClient::log_tail() const { return file_tail(options_.log, 2000); }

}  // namespace attnbench::run
