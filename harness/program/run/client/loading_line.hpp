// A line on standard error about a plugin, or a file in Python, that takes long to load.
#pragma once

#include <string>

namespace attnbench::run {

/// "importing near.py: 12 s" of a word in Python, "loading mine.so: 12 s" of a plugin.
std::string loading_text(const std::string& plugin, double seconds);

/// On a terminal it is rewritten from two seconds on, and goes; elsewhere there is one at 2, 10,
/// 30, 90, … seconds, behind two blanks, so that who reads them tells them from messages.
class LoadingLine {
 public:
  LoadingLine();
  ~LoadingLine() { end(); }
  LoadingLine(const LoadingLine&) = delete;
  LoadingLine& operator=(const LoadingLine&) = delete;

  /// `seconds` since the plugin was begun.
  void show(const std::string& plugin, double seconds);
  /// Removes the line, where it is rewritten; the next one may come at once.
  void end();

 private:
  bool terminal_;
  bool drawn_ = false;
  double next_;  ///< seconds at which to say it
};

}  // namespace attnbench::run
