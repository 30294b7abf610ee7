#include "harness/run/signals.hpp"

#include <signal.h>
#include <string.h>

namespace attnbench::run {
namespace {

volatile sig_atomic_t interrupts = 0;

void count_one(int) { interrupts = interrupts + 1; }

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
  handle(SIGINT, count_one);
  handle(SIGTERM, count_one);
  handle(SIGXFSZ, SIG_IGN);
  handle(SIGPIPE, SIG_IGN);
}

Interrupts::~Interrupts() {
  for (const int number : {SIGINT, SIGTERM}) handle(number, SIG_DFL);
}

int Interrupts::count() const { return interrupts; }

}  // namespace attnbench::run
