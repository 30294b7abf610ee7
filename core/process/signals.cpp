#include "core/process/signals.hpp"

#include <signal.h>
#include <string.h>

namespace attnbench::process {
namespace {

volatile sig_atomic_t interrupts = 0;
volatile sig_atomic_t hangups = 0;

void count_one(int number) {
  if (number == SIGHUP && hangups == 1) return;
  if (number == SIGHUP) hangups = 1;
  interrupts = interrupts + 1;
}

/// What ends a process by default and is sent on purpose: by people, timers and batch systems,
/// which say with one that the time is up.
constexpr int ending[] = {SIGHUP,    SIGINT,  SIGTERM, SIGUSR1, SIGUSR2, SIGALRM,
                          SIGVTALRM, SIGPROF, SIGXCPU, SIGPWR,  SIGPOLL};

void handle(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

}  // namespace

std::string signal_text(int number) {
  const char* name = sigabbrev_np(number);
  const std::string text = "signal " + std::to_string(number);
  return name == nullptr ? text : text + " (SIG" + name + ")";
}

Interrupts::Interrupts() {
  interrupts = 0;
  hangups = 0;
  for (const int number : ending) {
    struct sigaction before {};
    sigaction(number, nullptr, &before);
    // A shell without job control has background programs ignore SIGINT.
    const bool ignored = before.sa_handler == SIG_IGN && number != SIGINT && number != SIGTERM;
    if (ignored) continue;
    taken_.push_back(number);
    handle(number, count_one);
  }
  handle(SIGXFSZ, SIG_IGN);
  handle(SIGPIPE, SIG_IGN);
}

Interrupts::~Interrupts() {
  for (const int number : taken_) {
    handle(number, number == SIGHUP && hangups != 0 ? SIG_IGN : SIG_DFL);
  }
}

int Interrupts::count() const { return interrupts; }

}  // namespace attnbench::process
