#include "core/process/descendants.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

namespace attnbench::process {
namespace {

namespace fs = std::filesystem;

/// From "PID (NAME) STATE PARENT GROUP …", where the name may hold anything.
Process process_from(const std::string& stat) {
  const std::size_t end = stat.rfind(')');
  if (end == std::string::npos) return {};
  Process process;
  process.pid = std::atoi(stat.c_str());
  std::istringstream rest(stat.substr(end + 1));
  char state = 0;
  return rest >> state >> process.parent >> process.group ? process : Process{};
}

/// Whether this process has any child, exited ones included; reading /proc takes milliseconds.
bool has_children() {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/// Children from before exec, which are not orphans.
std::set<pid_t>& earlier_children() {
  static std::set<pid_t> pids;
  return pids;
}

}  // namespace

void adopt_orphans() {
  if (adopts_orphans()) return;
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (const Process& process : all_processes()) {
    if (process.parent == getpid()) earlier_children().insert(process.pid);
  }
}

bool adopts_orphans() {
  int adopts = 0;
  return prctl(PR_GET_CHILD_SUBREAPER, &adopts) == 0 && adopts != 0;
}

std::vector<Process> all_processes() {
  std::vector<Process> processes;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator("/proc", gone)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream stream(entry.path() / "stat");
    std::stringstream text;
    text << stream.rdbuf();
    const Process process = process_from(text.str());
    if (process.pid > 0) processes.push_back(process);
  }
  return processes;
}

std::vector<pid_t> descendants_of(pid_t ancestor) {
  const std::vector<Process> all = all_processes();
  std::vector<pid_t> found{ancestor};
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const Process& process : all) {
      const bool known = std::find(found.begin(), found.end(), process.pid) != found.end();
      if (process.parent == found[i] && !known) found.push_back(process.pid);
    }
  }
  found.erase(found.begin());
  return found;
}

void end_orphans(const std::function<bool(const Process& child)>& ours) {
  using Clock = std::chrono::steady_clock;
  if (!has_children() || !adopts_orphans()) return;
  const auto end = Clock::now() + std::chrono::seconds(2);
  const pid_t self = getpid();
  while (Clock::now() < end) {
    bool any = false;
    for (const Process& process : all_processes()) {
      if (process.parent != self || earlier_children().count(process.pid) != 0) continue;
      if (ours(process)) continue;
      any = true;
      kill(process.pid, SIGKILL);
      waitpid(process.pid, nullptr, WNOHANG);
    }
    if (!any) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

bool has_ended(pid_t pid) {
  siginfo_t info{};
  const int asked = waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT);
  return asked != 0 || info.si_pid == pid;
}

}  // namespace attnbench::process
