// Signals: their names for messages, and a counter of interrupts that the supervisor polls.
#pragma once

#include <string>
#include <vector>

namespace attnbench::process {

/// The signal's number and name: "signal 11 (SIGSEGV)".
std::string signal_text(int number);

/// While one exists, SIGINT, SIGTERM, SIGHUP (a closed terminal) and others that ask a program to
/// end (SIGUSR1, SIGALRM, SIGXCPU, …) are counted instead of ending it, and blocking calls end with
/// EINTR. But SIGINT and SIGTERM, one that was ignored before (nohup) stays so; after the first
/// SIGHUP it is ignored for good, since shells send another. SIGXFSZ and SIGPIPE become errors of
/// the write that caused them, also afterwards, when result and page are written.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// How many came so far.
  int count() const;

 private:
  std::vector<int> taken_;
};

}  // namespace attnbench::process
