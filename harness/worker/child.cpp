#include "harness/worker/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "attention/plugin/floating_point.hpp"
#include "attention/torch/torch.hpp"
#include "core/json_file.hpp"
#include "core/process/descendants.hpp"
#include "core/process/limits.hpp"
#include "core/protocol.hpp"
#include "core/text/format.hpp"

namespace attnbench::worker {
namespace {

constexpr std::size_t log_tail_bytes = 2000;
/// How often to poll for a child's end where the system has no pidfd.
constexpr double look_seconds = 0.05;

std::vector<int>& private_descriptors() {
  static std::vector<int> descriptors;
  return descriptors;
}

/// Running children. All other children of this process are orphans that those left behind.
std::set<pid_t>& running() {
  static std::set<pid_t> pids;
  return pids;
}

void end_orphans_of_children() {
  process::end_orphans(
      [](const process::Process& child) { return running().count(child.pid) != 0; });
}

/// Processes that the kernel's OOM killer has ended since boot.
long oom_kills() {
  std::ifstream stream("/proc/vmstat");
  std::string name;
  long count = 0;
  while (stream >> name >> count) {
    if (name == "oom_kill") return count;
  }
  return 0;
}

/// 128 random bits that only the child and its worker know.
std::string random_seal() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw std::system_error(errno, std::generic_category(), "no random numbers");
  }
  std::string text;
  for (const unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte / 16];
    text += "0123456789abcdef"[byte % 16];
  }
  return text;
}

void redirect(const std::filesystem::path& log) {
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, 0);
  if (log.empty()) return;
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (file < 0) return;
  dup2(file, 1);
  dup2(file, 2);
}

/// Private writable memory of this process, which RLIMIT_DATA limits. A limit of the address space
/// would be wrong: libraries reserve far more of it than they use.
std::int64_t data_bytes() {
  std::ifstream stream("/proc/self/statm");
  std::int64_t size = 0, resident = 0, shared = 0, text = 0, library = 0, data = 0;
  stream >> size >> resident >> shared >> text >> library >> data;
  return data * sysconf(_SC_PAGESIZE);
}

void limit_memory(std::int64_t bytes) {
  // If the kernel still runs out of memory it ends this process first.
  std::ofstream("/proc/self/oom_score_adj") << "1000";
  const auto limit = static_cast<rlim_t>(data_bytes() + bytes);
  const rlimit both{limit, limit};
  setrlimit(RLIMIT_DATA, &both);
}

void become_child(const ChildSetup& setup, pid_t worker, std::int64_t limit_bytes) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != worker) _exit(0);  // the worker died before the line above
  for (const int number : {SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGXFSZ, SIGCHLD}) {
    signal(number, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int descriptor : private_descriptors()) close(descriptor);
  private_descriptors().clear();  // the numbers are another's from now on
  redirect(setup.log);
  if (setup.limits_memory) limit_memory(limit_bytes);
  reset_floating_point();  // before the first thread is started, which inherits it
  at::set_num_threads(setup.threads);
}

[[noreturn]] void run_body(const ChildSetup& setup, pid_t worker, std::int64_t limit_bytes,
                           process::Channel& channel, const Child::Body& body) {
  try {
    become_child(setup, worker, limit_bytes);
    try {
      body(channel);
    } catch (...) {
      channel.send(to_json(outcome_of(std::current_exception())));
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::fflush(nullptr);
    _exit(1);
  }
  std::fflush(nullptr);
  _exit(0);  // LibTorch's destructors take 50 ms and belong to the worker
}

}  // namespace

void keep_from_children(int descriptor) { private_descriptors().push_back(descriptor); }

std::int64_t memory_beside_tensors(std::int64_t tensor_bytes, int threads) {
  return std::max(std::int64_t{2} << 30, tensor_bytes / 4) + threads * (std::int64_t{128} << 20);
}

Child::Child(ChildSetup setup, const Body& body)
    : setup_(std::move(setup)),
      begin_(std::chrono::steady_clock::now()),
      oom_kills_before_(oom_kills()) {
  const std::int64_t tensors = setup_.memory_bytes;
  limit_bytes_ = tensors > 0 ? tensors + memory_beside_tensors(tensors, setup_.threads)
                             : process::available_memory_bytes();
  auto [ours, theirs] = process::Channel::pair();
  const std::string seal = random_seal();
  ours.seal(seal);
  theirs.seal(seal);
  std::fflush(nullptr);
  const pid_t worker = getpid();
  pid_ = fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "cannot fork");
  if (pid_ == 0) {
    ours.close();
    run_body(setup_, worker, limit_bytes_, theirs, body);
  }
  setpgid(pid_, pid_);
  running().insert(pid_);
  channel_ = std::move(ours);
  end_descriptor_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
}

double Child::elapsed_seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

bool Child::over_limit() const {
  return setup_.limit_seconds > 0 && elapsed_seconds() > setup_.limit_seconds;
}

/// The child ends with its process, not with the connection: an orphan may hold that open, and a
/// child that closed it may keep working.
void Child::notice_end() {
  if (pid_ < 0 || !process::has_ended(pid_)) return;
  kill(-pid_, SIGKILL);
  rusage usage{};
  while (wait4(pid_, &wait_status_, 0, &usage) < 0 && errno == EINTR) {
  }
  peak_bytes_ = std::int64_t{usage.ru_maxrss} * 1024;
  running().erase(pid_);
  pid_ = -1;
  end_orphans_of_children();
}

std::optional<Json> Child::receive(double seconds) {
  const double until = elapsed_seconds() + seconds;
  while (!ended_) {
    if (auto message = channel_.next()) return message;
    const bool gone = pid_ < 0;
    double wait = gone ? 0 : std::clamp(until - elapsed_seconds(), 0.0, 1e6);
    if (end_descriptor_ < 0) wait = std::min(wait, look_seconds);
    std::array<pollfd, 2> waiting{
        {{channel_.descriptor(), POLLIN, 0}, {gone ? -1 : end_descriptor_, POLLIN, 0}}};
    poll(waiting.data(), waiting.size(), static_cast<int>(std::ceil(wait * 1e3)));
    const bool said = waiting[0].revents != 0;
    if (said && !channel_.fill()) channel_.close();
    if (gone && !said) ended_ = true;
    notice_end();
    if (!said && pid_ >= 0 && elapsed_seconds() >= until) return std::nullopt;
  }
  return channel_.next();
}

void Child::end() {
  if (end_descriptor_ >= 0) close(std::exchange(end_descriptor_, -1));
  if (pid_ < 0) return;
  kill(-pid_, SIGKILL);
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  running().erase(pid_);
  pid_ = -1;
  end_orphans_of_children();
}

Outcome Child::outcome() {
  const bool out_of_memory = oom_kills() > oom_kills_before_;
  Outcome outcome =
      outcome_of_death(wait_status_, out_of_memory, file_tail(setup_.log, log_tail_bytes));
  // A plugin that ignores malloc's failure crashes at the limit.
  const bool at_its_limit = setup_.limits_memory && peak_bytes_ > limit_bytes_ / 10 * 9;
  if (outcome.status == Status::crashed && at_its_limit) {
    outcome.status = Status::out_of_memory;
    outcome.reason += " with " + text::human_bytes(static_cast<double>(peak_bytes_)) +
                      " in use, where " + text::human_bytes(static_cast<double>(limit_bytes_)) +
                      " are its limit (--memory-limit, and what is allowed beside tensors)";
  }
  return outcome;
}

Outcome run_child(const ChildSetup& setup, const Child::Body& body,
                  const std::function<void(const Json&)>& on_message) {
  const Child::Body and_done = [&](process::Channel& channel) {
    body(channel);
    channel.send({{"type", "done"}});
  };
  Child child(setup, and_done);
  const double patience = setup.limit_seconds > 0 ? setup.limit_seconds : 1e6;
  while (true) {
    std::optional<Json> message;
    try {
      message = child.receive(patience);
    } catch (const process::ChannelError& error) {
      return {Status::crashed, std::string("the child sent ") + error.what(), ""};
    }
    if (message) {
      const std::string type = protocol::type_of(*message);
      if (type == "done") return {};
      if (type == "failed") return outcome_from(*message);
      on_message(*message);
      continue;
    }
    if (child.ended()) return child.outcome();
    child.end();
    return {Status::timeout,
            "no answer within " + std::to_string(static_cast<int>(setup.limit_seconds)) + " s", ""};
  }
}

Json to_json(const Outcome& outcome) {
  return {{"type", "failed"},
          {"status", to_string(outcome.status)},
          {"reason", outcome.reason},
          {"detail", outcome.detail}};
}

Outcome outcome_from(const Json& message) {
  const auto status = status_from(message.value("status", ""));
  return {status.value_or(Status::error), message.value("reason", ""), message.value("detail", "")};
}

}  // namespace attnbench::worker
