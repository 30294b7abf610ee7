// Signals: their names for messages, and a counter of interrupts that the supervisor polls.
#pragma once

#include <string>

namespace attnbench::run {

/// "signal 11 (SIGSEGV)".
std::string signal_text(int number);

/// While one exists, SIGINT, SIGTERM and SIGHUP (a closed terminal) are counted instead of ending
/// the program, and blocking calls end with EINTR. SIGHUP stays ignored where it was before
/// (nohup); after the first it is ignored for good, since shells send another. SIGXFSZ and SIGPIPE
/// become errors of the write that caused them, also afterwards, when result and page are written.
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
