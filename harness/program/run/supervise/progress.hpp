// Progress: what a user sees while a run measures, on standard error.
#pragma once

#include <chrono>
#include <cstdio>
#include <map>
#include <set>
#include <string>

#include "core/result/record.hpp"
#include "harness/program/run/supervise/live_table.hpp"

namespace attnbench::run {

using Json = nlohmann::json;

enum class ProgressStyle { automatic, plain, json };

/// The style of a word: "auto", "plain" or "json"; throws UsageFailure.
ProgressStyle progress_style_from(const std::string& word);

/// The rate at which things are done, in the unit that leaves a digit before the point where one
/// does: "2.5/s", "4.0/min", "1.2/h".
std::string rate_text(double seconds_each);

/// `text` in red where `stream` shows colour; else as it is.
std::string in_red(const std::string& text, std::FILE* stream);

class Progress {
 public:
  /// `steps`: rounds of cells to come. `automatic` is one line, rewritten, where `stream` is a
  /// terminal, and plain lines elsewhere, where no more than `most_silent_seconds` go by without
  /// one while messages of the worker arrive.
  Progress(ProgressStyle style, std::size_t steps, std::FILE* stream = stderr,
           double most_silent_seconds = 20);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Shows the table of the task that is measured above the line that is rewritten, where the
  /// terminal has room for it.
  void follow(LiveTable table) { table_ = std::move(table); }
  /// Begins a cell, which `what` describes for people. Several may be measured at once.
  void begin(const std::string& cell, const std::string& what, int round);
  /// A heartbeat or a progress message of the worker.
  void event(const Json& message);
  /// The round is done; `dropped` steps will not come because of it.
  void end(const result::RoundRecord& record, std::size_t dropped = 0);
  /// Adds further steps.
  void add_steps(std::size_t steps) { steps_ += steps; }
  /// A sentence between the others.
  void say(const std::string& sentence);
  /// A sentence in red between the others.
  void warn(const std::string& sentence);
  /// A line that the next one replaces; where lines cannot be rewritten, it only ends a silence.
  void show(const std::string& line);

 private:
  void note(const std::string& sentence, bool red);
  void note_cell(const std::string& cell);
  void print(const Json& line);
  void draw(const std::string& extra = {});
  void clear();
  void break_silence(const std::string& extra);
  std::string place(std::size_t step) const;
  std::string bar(std::size_t width) const;
  std::string rate() const;

  std::FILE* stream_;
  ProgressStyle style_;
  bool terminal_ = false;
  std::size_t steps_;
  std::size_t done_ = 0;
  struct Begun {
    std::string what;
    int round = 0;
  };
  std::map<std::string, Begun> begun_;  ///< by cell
  std::set<std::string> disturbed_;     ///< cells reported as disturbed
  std::string cell_;                    ///< of the last message
  LiveTable table_;
  std::string task_;             ///< whose table is shown
  std::size_t drawn_lines_ = 0;  ///< that stand where the next drawing will
  std::chrono::steady_clock::time_point begin_;
  double max_silent_seconds_;
  std::chrono::steady_clock::time_point said_;  ///< when the last line was written
};

}  // namespace attnbench::run
