// Signals: their names for messages, and Ctrl-C as a question that the supervisor asks.
#pragma once

#include <string>

namespace attnbench::run {

/// "signal 11 (SIGSEGV)".
std::string signal_text(int number);

/// While one lives, SIGINT and SIGTERM are counted instead of ending the program, SIGXFSZ and
/// SIGPIPE become errors of the write that caused them. Blocking calls end with EINTR.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// How many came so far.
  int count() const;
};

}  // namespace attnbench::run
