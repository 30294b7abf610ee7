#include "harness/program/run/supervise/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/failure.hpp"
#include "core/text/colour.hpp"
#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "harness/program/run/folder/disturbance.hpp"
#include "reports/tables/least.hpp"
#include "reports/tables/quality.hpp"

namespace attnbench::run {
namespace {

constexpr std::size_t bar_width = 16;

struct Window {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

Window window_of(std::FILE* stream) {
  winsize size{};
  Window window;
  if (ioctl(fileno(stream), TIOCGWINSZ, &size) != 0) return window;
  if (size.ws_col > 1) window.columns = size.ws_col;
  if (size.ws_row > 1) window.rows = size.ws_row;
  return window;
}

/// "0:42", "1:03:20".
std::string clock_text(double seconds) {
  const long whole = std::lround(std::max(0.0, seconds));
  std::array<char, 32> text{};
  if (whole >= 3600) {
    std::snprintf(text.data(), text.size(), "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60,
                  whole % 60);
  } else {
    std::snprintf(text.data(), text.size(), "%ld:%02ld", whole / 60, whole % 60);
  }
  return text.data();
}

/// "accuracy 0.987 (validation 0.991) after 12 epochs, converged"; of language models "2.31 bits
/// per byte (validation 2.30) after 2000 steps, still falling".
std::string training_text(const result::Measured& measured) {
  const auto share = [&](const char* name) {
    return attnbench::number_of(measured.metrics, name).value_or(0);
  };
  std::array<char, 120> text{};
  const reports::Quality& quality = reports::quality_of(*measured.training);
  const result::Ending ending = result::ending_of(*measured.training);
  if (quality.less_is_better) {
    std::snprintf(text.data(), text.size(), "%.3f %s (validation %.3f) after %lld steps, %s",
                  share(quality.metric), quality.words, share(quality.validation_metric),
                  static_cast<long long>(measured.training->steps.value_or(0)),
                  ending == result::Ending::converged ? "converged" : "still falling");
    return text.data();
  }
  std::snprintf(text.data(), text.size(), "accuracy %.3f (validation %.3f) after %.3g epochs, %s",
                share("accuracy"), share("validation_accuracy"),
                measured.training->epochs.value_or(0),
                ending == result::Ending::converged   ? "converged"
                : ending == result::Ending::at_chance ? "at chance"
                                                      : "not converged");
  return text.data();
}

/// "12.3 ms", "crossover 300 (290 to 310)" or an accuracy of an ok round, else the status and its
/// reason.
std::string finding(const result::RoundRecord& record) {
  if (!record.ok()) return std::string(to_string(record.status)) + ": " + record.reason;
  const result::Measured& measured = record.measured;
  if (measured.crossover) {
    return "crossover " + result::crossover_text(result::crossover_over({*measured.crossover}));
  }
  if (measured.training) return training_text(measured);
  std::string text;
  for (const auto& [what, one] : measured.timing) {
    text += (text.empty() ? "" : ", ") + what + " " +
            (one.disturbed ? "least " + text::human_seconds(reports::least_seconds(one))
                           : text::human_seconds(one.median_seconds));
  }
  return text.empty() ? "ok" : text;
}

/// A heartbeat or a progress message.
struct Event {
  std::string type;
  std::string cell;
  std::string what;
  double done = 0;
  double total = 0;
  double elapsed_seconds = 0;
};

ATTNBENCH_JSON_READER(Event) { JSON_MAYBE(type, cell, what, done, total, elapsed_seconds); }

}  // namespace

ProgressStyle progress_style_from(const std::string& word) {
  if (word == "auto") return ProgressStyle::automatic;
  if (word == "plain") return ProgressStyle::plain;
  if (word == "json") return ProgressStyle::json;
  throw UsageFailure("--progress " + word + ": expected auto, plain or json");
}

std::string rate_text(double seconds_each) {
  const bool a_second = seconds_each <= 1;
  const bool a_minute = !a_second && seconds_each <= 60;
  const double unit = a_second ? 1 : a_minute ? 60 : 3600;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f/%s", unit / seconds_each,
                a_second   ? "s"
                : a_minute ? "min"
                           : "h");
  return text.data();
}

std::string in_red(const std::string& text, std::FILE* stream) {
  return text::shows_colour(stream) ? text::coloured(text, text::Colour::red) : text;
}

Progress::Progress(ProgressStyle style, std::size_t steps, std::FILE* stream,
                   double most_silent_seconds)
    : stream_(stream),
      style_(style),
      terminal_(style == ProgressStyle::automatic && isatty(fileno(stream)) != 0),
      steps_(steps),
      begin_(std::chrono::steady_clock::now()),
      max_silent_seconds_(most_silent_seconds),
      said_(begin_) {}

Progress::~Progress() { clear(); }

void Progress::begin(const std::string& cell, const std::string& what, int round) {
  cell_ = cell;
  begun_[cell] = {what, round};
  if (const std::string task = table_.task_of(cell); !task.empty()) task_ = task;
  if (done_ == 0) begin_ = std::chrono::steady_clock::now();  // starting up does not count
  if (terminal_) draw();
  if (style_ != ProgressStyle::json) return;
  print({{"type", "begin"},
         {"cell", cell},
         {"what", what},
         {"round", round},
         {"done", done_},
         {"total", steps_}});
}

void Progress::print(const Json& line) {
  std::fprintf(stream_, "%s\n", line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
}

/// A message without a cell belongs to the last one.
void Progress::note_cell(const std::string& cell) {
  if (begun_.count(cell) != 0) cell_ = cell;
}

void Progress::event(const Json& message) {
  const auto event = message.get<Event>();
  note_cell(event.cell);
  if (style_ == ProgressStyle::json) {
    print(message);
  } else if (event.type == "progress") {
    const int percent = event.total > 0 ? static_cast<int>(100 * event.done / event.total) : 0;
    const std::string share = event.what + " " + std::to_string(percent) + " %";
    terminal_ ? draw(share) : break_silence(share);
  } else {
    const std::string elapsed = clock_text(event.elapsed_seconds);
    terminal_ ? draw(elapsed) : break_silence(elapsed);
  }
}

void Progress::end(const result::RoundRecord& record, std::size_t dropped) {
  note_cell(record.cell);
  const Begun ended = begun_[cell_];
  begun_.erase(cell_);
  ++done_;
  table_.add(record);
  steps_ -= std::min(steps_ - std::min(done_, steps_), dropped);
  const bool disturbed = record.ok() && is_disturbed(record.measured);
  if (style_ == ProgressStyle::json) {
    Json line = {{"type", "end"},           {"cell", cell_}, {"round", ended.round},
                 {"status", record.status}, {"done", done_}, {"total", steps_}};
    if (!record.reason.empty()) line.update({{"reason", record.reason}});
    if (disturbed) line.update({{"disturbed", true}});
    return print(line);
  }
  // Later rounds of an ok cell say nothing new, nor do further disturbed ones.
  const bool news = !record.ok() || (disturbed && disturbed_.insert(cell_).second);
  if (news || (!terminal_ && ended.round == 0)) {
    say(place(done_) + ended.what + "  " + finding(record) +
        (disturbed ? ", disturbed: other processes took the CPU" : ""));
  } else if (!terminal_) {
    break_silence("round " + std::to_string(ended.round + 1) + " done");
  }
}

void Progress::say(const std::string& sentence) { note(sentence, false); }

void Progress::warn(const std::string& sentence) { note(sentence, true); }

void Progress::note(const std::string& sentence, bool red) {
  clear();
  if (style_ == ProgressStyle::json) {
    print({{"type", "note"}, {"text", sentence}});
  } else {
    const std::string text = text::printable(text::bounded_message(sentence), text::Breaks::kept);
    std::fprintf(stream_, "%s\n", (red ? in_red(text, stream_) : text).c_str());
  }
  std::fflush(stream_);
  said_ = std::chrono::steady_clock::now();
}

/// Prints what is being done where nothing was printed for long.
void Progress::break_silence(const std::string& extra) {
  const std::chrono::duration<double> silent = std::chrono::steady_clock::now() - said_;
  if (style_ == ProgressStyle::json || silent.count() < max_silent_seconds_) return;
  const auto found = begun_.find(cell_);
  const std::string what = found == begun_.end() ? "" : found->second.what + "  ";
  say(place(std::min(done_ + 1, steps_)) + what + extra + rate());
}

void Progress::show(const std::string& line) {
  if (!terminal_) return break_silence(line);
  clear();
  std::fprintf(stream_, "%s", text::shorten(line, window_of(stream_).columns - 1).c_str());
  std::fflush(stream_);
  drawn_lines_ = 1;
}

std::string Progress::place(std::size_t step) const {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "[%zu/%zu] ", step, steps_);
  return text.data();
}

std::string Progress::bar(std::size_t width) const {
  const std::size_t full = steps_ == 0 ? width : width * std::min(done_, steps_) / steps_;
  std::string text;
  for (std::size_t i = 0; i < width; ++i) text += i < full ? "█" : "░";
  return text;
}

std::string Progress::rate() const {
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  if (done_ == 0 || seconds <= 0) return "";
  const double each = seconds / static_cast<double>(done_);
  const double left = each * static_cast<double>(steps_ - std::min(done_, steps_));
  return " " + rate_text(each) + "  " + clock_text(left) + " left";
}

void Progress::draw(const std::string& extra) {
  std::string line = place(std::min(done_ + 1, steps_)) + bar(bar_width) + rate();
  const auto found = begun_.find(cell_);
  if (found != begun_.end()) line += "  " + found->second.what;
  if (!extra.empty()) line += "  " + extra;
  const Window window = window_of(stream_);
  clear();
  const auto table = table_.lines(task_, window.columns - 1, window.rows - 2);
  for (const std::string& row : table) std::fprintf(stream_, "%s\n", row.c_str());
  line = text::shorten(text::printable(line), window.columns - 1);
  std::fprintf(stream_, "%s", line.c_str());
  std::fflush(stream_);
  drawn_lines_ = table.size() + 1;
}

/// Takes away what was drawn: up to its first line, and from there to the end of the screen.
void Progress::clear() {
  if (drawn_lines_ > 1) std::fprintf(stream_, "\x1b[%zuA", drawn_lines_ - 1);
  if (drawn_lines_ > 0) std::fprintf(stream_, "\r\x1b[J");
  std::fflush(stream_);
  drawn_lines_ = 0;
}

}  // namespace attnbench::run
