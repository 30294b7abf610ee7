#include "harness/run/supervise/signals.hpp"

#include <signal.h>
#include <string.h>

namespace attnbench::run {
namespace {

volatile sig_atomic_t interrupts = 0;
volatile sig_atomic_t hangups = 0;

void count_one(int number) {
  if (number == SIGHUP && hangups == 1) return;
  if (number == SIGHUP) hangups = 1;
  interrupts = interrupts + 1;
}

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
  struct sigaction before {};
  sigaction(SIGHUP, nullptr, &before);
  takes_hangups_ = before.sa_handler != SIG_IGN;
  if (takes_hangups_) handle(SIGHUP, count_one);
  handle(SIGINT, count_one);
  handle(SIGTERM, count_one);
  handle(SIGXFSZ, SIG_IGN);
  handle(SIGPIPE, SIG_IGN);
}

Interrupts::~Interrupts() {
  for (const int number : {SIGINT, SIGTERM}) handle(number, SIG_DFL);
  if (takes_hangups_) handle(SIGHUP, hangups == 0 ? SIG_DFL : SIG_IGN);
}

int Interrupts::count() const { return interrupts; }

}  // namespace attnbench::run
