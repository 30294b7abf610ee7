#include "core/process/signals.hpp"

#include <signal.h>

#include "tests/support/catch.hpp"

using attnbench::process::Interrupts;

TEST_CASE("what asks a program to end is counted, and ignored where it was before", "[signals]") {
  ::signal(SIGUSR2, SIG_IGN);
  {
    const Interrupts interrupts;
    CHECK(interrupts.count() == 0);
    int sent = 0;
    for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGXCPU, SIGPROF}) {
      raise(number);
      CHECK(interrupts.count() == ++sent);
    }
    raise(SIGUSR2);
    CHECK(interrupts.count() == sent);
  }
  for (const int number : {SIGINT, SIGUSR1, SIGALRM, SIGUSR2}) {
    struct sigaction after {};
    sigaction(number, nullptr, &after);
    CHECK(after.sa_handler == (number == SIGUSR2 ? SIG_IGN : SIG_DFL));
  }
  ::signal(SIGUSR2, SIG_DFL);
}
