#include "harness/program/run/client/loading_line.hpp"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>

#include "core/process/python_word.hpp"
#include "core/text/printable.hpp"

namespace attnbench::run {
namespace {

constexpr double first_seconds = 2;

}  // namespace

std::string loading_text(const std::string& plugin, double seconds) {
  const bool python = process::is_python(plugin);
  const std::filesystem::path home =
      python ? process::home_of(plugin) : plugin.substr(plugin.find('=') + 1);
  return std::string(python ? "importing " : "loading ") +
         text::quotable(home.filename().string(), 60) + ": " +
         std::to_string(std::lround(std::floor(seconds))) + " s";
}

LoadingLine::LoadingLine() : terminal_(::isatty(STDERR_FILENO) == 1), next_(first_seconds) {}

void LoadingLine::show(const std::string& plugin, double seconds) {
  if (seconds < next_) return;
  if (!terminal_) {
    std::fprintf(stderr, "  %s\n", loading_text(plugin, seconds).c_str());
    next_ = next_ < 10 ? 10 : 3 * next_;
    return;
  }
  std::fprintf(stderr, "\r\033[K%s", loading_text(plugin, seconds).c_str());
  std::fflush(stderr);
  next_ = std::floor(seconds) + 1;
  drawn_ = true;
}

void LoadingLine::end() {
  if (drawn_) std::fputs("\r\033[K", stderr);
  drawn_ = false;
  next_ = first_seconds;
}

}  // namespace attnbench::run
