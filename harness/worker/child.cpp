#include "harness/worker/child.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "attention/torch.hpp"
#include "harness/run/files.hpp"

namespace attnbench::worker {
namespace {

constexpr std::size_t log_tail_bytes = 2000;

/// How many processes the kernel ended for want of memory since it started.
long oom_kills() {
  std::ifstream stream("/proc/vmstat");
  std::string name;
  long count = 0;
  while (stream >> name >> count) {
    if (name == "oom_kill") return count;
  }
  return 0;
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

void become_child(const ChildSetup& setup, pid_t worker) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != worker) _exit(0);  // the worker died before the line above
  for (const int number : {SIGINT, SIGTERM, SIGPIPE, SIGXFSZ, SIGCHLD}) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (setup.private_descriptor >= 0) close(setup.private_descriptor);
  redirect(setup.log);
  at::set_num_threads(setup.threads);
}

[[noreturn]] void live(const ChildSetup& setup, pid_t worker, run::Channel& channel,
                       const Child::Body& body) {
  try {
    become_child(setup, worker);
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

Child::Child(ChildSetup setup, const Body& body)
    : setup_(std::move(setup)),
      begin_(std::chrono::steady_clock::now()),
      oom_kills_before_(oom_kills()) {
  auto [ours, theirs] = run::Channel::pair();
  std::fflush(nullptr);
  const pid_t worker = getpid();
  pid_ = fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "cannot fork");
  if (pid_ == 0) {
    ours.close();
    live(setup_, worker, theirs, body);
  }
  setpgid(pid_, pid_);
  channel_ = std::move(ours);
}

double Child::elapsed_seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

bool Child::over_limit() const {
  return setup_.limit_seconds > 0 && elapsed_seconds() > setup_.limit_seconds;
}

void Child::end() {
  if (pid_ < 0) return;
  kill(-pid_, SIGKILL);
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

Outcome Child::outcome() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  kill(-pid_, SIGKILL);  // whatever it started itself
  pid_ = -1;
  const bool out_of_memory = oom_kills() > oom_kills_before_;
  return outcome_of_death(status, out_of_memory, run::file_tail(setup_.log, log_tail_bytes));
}

Outcome run_child(const ChildSetup& setup, const Child::Body& body,
                  const std::function<void(const Json&)>& on_message) {
  const Child::Body and_done = [&](run::Channel& channel) {
    body(channel);
    channel.send({{"type", "done"}});
  };
  Child child(setup, and_done);
  try {
    while (true) {
      const auto message = child.channel().receive(setup.limit_seconds);
      if (!message) {
        child.end();
        return {result::Status::timeout,
                "no answer within " + std::to_string(static_cast<int>(setup.limit_seconds)) + " s",
                ""};
      }
      const std::string type = message->value("type", "");
      if (type == "done") return {};
      if (type == "failed") return outcome_from(*message);
      on_message(*message);
    }
  } catch (const run::ChannelError&) {
    return child.outcome();
  }
}

Json to_json(const Outcome& outcome) {
  return {{"type", "failed"},
          {"status", result::to_string(outcome.status)},
          {"reason", outcome.reason},
          {"detail", outcome.detail}};
}

Outcome outcome_from(const Json& message) {
  const auto status = result::status_from(message.value("status", ""));
  return {status.value_or(result::Status::error), message.value("reason", ""),
          message.value("detail", "")};
}

}  // namespace attnbench::worker
