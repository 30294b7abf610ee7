// Signals: their names for messages, and Ctrl-C as a question that the supervisor asks.
#pragma once

#include <string>

namespace attnbench::run {

/// "signal 11 (SIGSEGV)".
std::string signal_text(int number);

/// While one lives, SIGINT, SIGTERM and SIGHUP (a terminal that was closed) are counted instead of
/// ending the program, and blocking calls end with EINTR. A SIGHUP that was ignored before (nohup)
/// stays ignored; one that came is ignored from then on, since shells send another. SIGXFSZ and
/// SIGPIPE become errors of the write that caused them, for good: result and page are written after
/// it.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// How many came so far.
  int count() const;

 private:
  bool takes_hangups_ = false;
};

}  // namespace attnbench::run
