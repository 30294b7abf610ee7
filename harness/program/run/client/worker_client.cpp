#include "harness/program/run/client/worker_client.hpp"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>

#include "core/json_file.hpp"
#include "core/process/descendants.hpp"
#include "core/process/fingerprint.hpp"
#include "core/process/limits.hpp"
#include "core/process/signals.hpp"
#include "core/protocol.hpp"
#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "harness/program/run/client/worker_environment.hpp"

extern char** environ;

namespace attnbench::run {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double start_limit_seconds = 120;
constexpr double tick_seconds = 0.1;
/// A worker takes less to load OpenBLAS's buffers, the last that it loads.
constexpr double stuck_seconds = 3;
constexpr std::int64_t least_free_bytes = std::int64_t{128} << 20;

double since(Clock::time_point moment) {
  return std::chrono::duration<double>(Clock::now() - moment).count();
}

/// Why the worker `pid` will never answer hello; empty where it may. OpenBLAS, which cannot
/// allocate its buffers under `ulimit -v`, tries for ever.
std::string lack_of_memory(pid_t pid) {
  rlimit limit{};
  std::ifstream stream("/proc/" + std::to_string(pid) + "/statm");
  std::int64_t pages = 0;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || !(stream >> pages)) {
    return {};
  }
  const auto bytes = static_cast<std::int64_t>(limit.rlim_cur);
  if (bytes - pages * sysconf(_SC_PAGESIZE) > least_free_bytes) return {};
  return "its address space is limited to " + text::human_bytes(static_cast<double>(bytes)) +
         " (ulimit -v), in which LibTorch and OpenBLAS have no room: raise the limit";
}

std::vector<std::string> environment_of(const WorkerOptions& options) {
  std::vector<std::string> ours;
  for (char** entry = environ; *entry != nullptr; ++entry) ours.emplace_back(*entry);
  return worker_environment(
      ours, {options.keep_blas_core, options.blas_core, shared_blas_folder(), options.waiting});
}

/// The workers of this process, of which several may run at once.
class Workers {
 public:
  /// Forks one and notes it before end_orphans can take it for an orphan.
  pid_t fork_one() {
    const std::lock_guard<std::mutex> lock(mutex_);
    const pid_t pid = fork();
    if (pid > 0) pids_.insert(pid);
    return pid;
  }
  void remove(pid_t pid) {
    const std::lock_guard<std::mutex> lock(mutex_);
    pids_.erase(pid);
  }
  /// Ends what a killed worker left behind: children of this process that it did not start.
  void end_orphans() {
    const std::lock_guard<std::mutex> lock(mutex_);
    const pid_t group = getpgrp();
    process::end_orphans([&](const process::Process& child) {
      return child.group == group || pids_.count(child.pid) != 0;
    });
  }

 private:
  std::mutex mutex_;
  std::set<pid_t> pids_;
};

/// Never destroyed: a client may be ended after main().
Workers& workers() {
  static Workers& all = *new Workers;
  return all;
}

bool is_event(const std::string& type) {
  return type == "heartbeat" || type == "progress" || type == "loading";
}

std::filesystem::path temporary_folder() {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (!error) return folder;
  const char* said = getenv("TMPDIR");
  throw EnvironmentFailure(
      "no folder for temporary files: " +
      (said == nullptr ? std::string("/tmp") : "TMPDIR=" + text::quotable(said)) + ": " +
      error.message() + "; set TMPDIR to a folder that is there");
}

}  // namespace

WorkerClient::WorkerClient(WorkerOptions options) : options_(std::move(options)) {
  if (options_.program.empty()) options_.program = process::program_folder() / "attnbench-worker";
  if (options_.threads <= 0) options_.threads = process::usable_cores();
  if (options_.log.empty()) {
    // Without a name, so that nothing stays of it whatever ends this process.
    std::string name = (temporary_folder() / "attnbench-worker-XXXXXX").string();
    own_log_ = mkostemp(name.data(), O_CLOEXEC);
    if (own_log_ >= 0) unlink(name.c_str());
    options_.log = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(own_log_);
  }
}

WorkerClient::~WorkerClient() {
  if (running()) {
    tell({{"type", "bye"}});
    channel_.close();
    const auto begin = Clock::now();
    while (since(begin) < 2 && !process::has_ended(pid_)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    kill();
  }
  if (own_log_ >= 0) ::close(own_log_);
}

void WorkerClient::start() {
  if (running()) return;
  if (access(options_.program.c_str(), X_OK) != 0) {
    throw EnvironmentFailure(
        "no worker at " + options_.program.string() +
        ": build attnbench with LibTorch (./attnbench build), or install a wheel "
        "where there is PyTorch (python3 -m pip install attnbench)");
  }
  for (int tries = 1;; ++tries) {
    try {
      auto [ours, theirs] = process::Channel::pair();
      channel_ = std::move(ours);
      spawn(std::move(theirs));
      handshake();
      return;
    } catch (const std::runtime_error& error) {
      const bool killed = killed_;
      const std::string tail = log_tail();
      kill();
      // It was killed, perhaps because memory ran out: a second start may succeed.
      if (killed && tries == 1) continue;
      if (const auto* failure = dynamic_cast<const EnvironmentFailure*>(&error)) throw *failure;
      throw EnvironmentFailure("the worker " + options_.program.string() + " did not start: " +
                               error.what() + (tail.empty() ? "" : "\n" + tail));
    }
  }
}

void WorkerClient::spawn(process::Channel theirs) {
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
  killed_ = false;
  process::adopt_orphans();
  pid_ = workers().fork_one();
  if (pid_ == 0) {
    // A group of its own: Ctrl-C is for the supervisor.
    setpgid(0, 0);
    // Kept across execve: a worker that hangs before its main() ends with the supervisor as well.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
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
  greeted_ = false;
  loading_.clear();
  steps_ = 0;
  const Json answer = request(
      protocol::Hello{protocol::version, options_.plugins, options_.threads, options_.device}, {},
      start_limit_seconds);
  greeted_ = true;
  const int spoken = answer.value("protocol", 0);
  if (spoken != protocol::version) {
    throw EnvironmentFailure("the worker " + options_.program.string() + " speaks protocol " +
                             std::to_string(spoken) + " and this attnbench " +
                             std::to_string(protocol::version) +
                             ": build both again (attnbench build)");
  }
  hello_ = answer.get<protocol::HelloAnswer>();
}

Json WorkerClient::request(const Json& message, const OnEvent& on_event, double seconds) {
  start();
  const std::string wanted = protocol::type_of(message);
  const auto begin = Clock::now();
  try {
    channel_.send(message);
    while (true) {
      if (tick_) tick_();
      const auto answer = channel_.receive(tick_seconds);
      const std::string type = answer ? protocol::type_of(*answer) : "";
      if (answer && !is_event(type)) {
        loading_line_.end();
        if (type != "error") return *answer;
        throw WorkerRefused(answer->value("message", "the worker could not do \"" + wanted + "\""));
      }
      if (!greeted_) note_start(answer);
      if (answer && on_event) on_event(*answer);
      // Another process may hold its end of the connection open: the worker's own end counts.
      if (!answer && process::has_ended(pid_) && !channel_.pending()) {
        throw WorkerDied(bury() + while_loading());
      }
      if (!greeted_ && since(begin) > stuck_seconds) {
        if (const std::string why = lack_of_memory(pid_); !why.empty()) throw WorkerSilent(why);
      }
      const bool at_plugins = !greeted_ && steps_ > 0;  // each has a limit of its own
      if (seconds > 0 && !at_plugins && since(begin) > seconds) {
        throw WorkerSilent("the worker gave no answer to \"" + wanted + "\" within " +
                           std::to_string(static_cast<int>(seconds)) + " s");
      }
    }
  } catch (const process::ChannelError&) {
    throw WorkerDied(bury() + while_loading());
  }
}

void WorkerClient::note_start(const std::optional<Json>& message) {
  if (message) {
    const bool at_plugin = protocol::type_of(*message) == "loading";
    if (!at_plugin || ++steps_ > 2 * options_.plugins.size()) {
      throw WorkerSilent("it sends one message after another and no answer to \"hello\"");
    }
    loading_ = message->value("plugin", "");
    step_begin_ = Clock::now();
    loading_line_.end();
  }
  if (!loading_.empty()) loading_line_.show(loading_, since(step_begin_));
  if (steps_ > 0 && since(step_begin_) > options_.step_limit_seconds) {
    throw WorkerSilent("no answer within " +
                       std::to_string(static_cast<int>(options_.step_limit_seconds)) + " s" +
                       while_loading());
  }
}

std::string WorkerClient::while_loading() const {
  if (greeted_ || loading_.empty()) return {};
  return ", while it loaded the plugin " + text::quotable(loading_, 300);
}

void WorkerClient::tell(const Json& message) {
  try {
    if (running()) channel_.send(message);
  } catch (const process::ChannelError&) {
    // The next request notices that it is gone.
  }
}

void WorkerClient::kill() {
  if (!running()) return;
  // Its children lead groups of their own, and what they started may have left those.
  const std::vector<pid_t> below = process::descendants_of(pid_);
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
  for (const pid_t each : below) ::kill(each, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  forget();
}

void WorkerClient::forget() {
  loading_line_.end();
  workers().remove(pid_);
  pid_ = -1;
  channel_.close();
  workers().end_orphans();
}

std::string WorkerClient::bury() {
  // A worker that sent nonsense still runs; one that is dying needs time to leave its status.
  int status = 0;
  const auto begin = Clock::now();
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (since(begin) > 2) {
      kill();
      return "the worker broke off the conversation";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  forget();
  killed_ = WIFSIGNALED(status);
  if (killed_) return "the worker was killed by " + process::signal_text(WTERMSIG(status));
  return "the worker ended with exit code " + std::to_string(WEXITSTATUS(status));
}

std::string WorkerClient::log_tail() const { return file_tail(options_.log, 2000); }

}  // namespace attnbench::run
