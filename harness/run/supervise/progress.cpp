#include "harness/run/supervise/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/failure.hpp"
#include "core/result/crossover.hpp"
#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "harness/run/folder/disturbance.hpp"

namespace attnbench::run {
namespace {

constexpr std::size_t bar_width = 16;

std::size_t columns_of(std::FILE* stream) {
  winsize size{};
  if (ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 20) return size.ws_col;
  return 80;
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

/// "accuracy 0.987 (validation 0.991) after 12 epochs, converged".
std::string training_text(const Json& measured) {
  const Json& training = measured["training"];
  const Json metrics = measured.value("metrics", Json::object());
  std::array<char, 120> text{};
  std::snprintf(text.data(), text.size(), "accuracy %.3f (validation %.3f) after %.3g epochs, %s",
                metrics.value("accuracy", 0.0), metrics.value("validation_accuracy", 0.0),
                training.value("epochs", 0.0),
                training.value("converged", false) ? "converged" : "not converged");
  return text.data();
}

/// Whether other processes took too much of an ok round.
bool is_disturbed(const Json& record) {
  const Json measured = record.value("measured", Json::object());
  const Json timing = measured.value("timing", Json::object());
  const bool timed = std::any_of(timing.begin(), timing.end(), [](const Json& one) {
    return !result::disturbed_by(one, 0).empty();
  });
  return timed ||
         (measured.contains("crossover") && result::disturbed_search(measured["crossover"]));
}

/// "12.3 ms", "crossover 300 (290 to 310)" or an accuracy of an ok round, else the status and its
/// reason.
std::string finding(const Json& record) {
  const std::string status = record.value("status", "error");
  if (status != "ok") return status + ": " + record.value("reason", std::string());
  const Json measured = record.value("measured", Json::object());
  if (measured.contains("crossover")) {
    return "crossover " + result::crossover_text(result::crossover_from(
                              result::crossover_over({measured["crossover"]})));
  }
  if (measured.contains("training")) return training_text(measured);
  const Json timing = measured.value("timing", Json::object());
  std::string text;
  for (const auto& [what, one] : timing.items()) {
    if (!one.contains("median_seconds")) continue;
    if (!text.empty()) text += ", ";
    text += what + " " + result::human_seconds(one.at("median_seconds").get<double>());
  }
  return text.empty() ? "ok" : text;
}

}  // namespace

ProgressStyle progress_style_from(const std::string& word) {
  if (word == "auto") return ProgressStyle::automatic;
  if (word == "plain") return ProgressStyle::plain;
  if (word == "json") return ProgressStyle::json;
  throw UsageFailure("--progress " + word + ": expected auto, plain or json");
}

std::string in_red(const std::string& text, std::FILE* stream) {
  const char* no_color = std::getenv("NO_COLOR");
  if (isatty(fileno(stream)) == 0 || (no_color != nullptr && *no_color != '\0')) return text;
  return "\x1b[31m" + text + "\x1b[0m";
}

Progress::Progress(ProgressStyle style, std::size_t steps, std::FILE* stream)
    : stream_(stream),
      style_(style),
      terminal_(style == ProgressStyle::automatic && isatty(fileno(stream)) != 0),
      steps_(steps),
      begin_(std::chrono::steady_clock::now()) {}

Progress::~Progress() { clear(); }

void Progress::begin(const std::string& cell, const std::string& what, int round) {
  cell_ = cell;
  begun_[cell] = {what, round};
  if (done_ == 0) begin_ = std::chrono::steady_clock::now();  // starting up does not count
  if (terminal_) draw();
  if (style_ != ProgressStyle::json) return;
  const Json line = {{"type", "begin"}, {"cell", cell},  {"what", what},
                     {"round", round},  {"done", done_}, {"total", steps_}};
  std::fprintf(stream_, "%s\n", line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
}

/// A message without a cell belongs to the last one.
void Progress::note_cell(const Json& message) {
  const std::string cell = message.value("cell", cell_);
  if (begun_.count(cell) != 0) cell_ = cell;
}

void Progress::event(const Json& message) {
  note_cell(message);
  if (style_ == ProgressStyle::json) {
    std::fprintf(stream_, "%s\n",
                 message.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  } else if (terminal_ && message.value("type", "") == "progress") {
    const double total = message.value("total", 0.0);
    const int percent = total > 0 ? static_cast<int>(100 * message.value("done", 0.0) / total) : 0;
    draw(message.value("what", "") + " " + std::to_string(percent) + " %");
  } else if (terminal_) {
    draw(clock_text(message.value("elapsed_seconds", 0.0)));
  }
}

void Progress::end(const Json& record, std::size_t dropped) {
  note_cell(record);
  const Begun ended = begun_[cell_];
  begun_.erase(cell_);
  ++done_;
  steps_ -= std::min(steps_ - std::min(done_, steps_), dropped);
  const std::string status = record.value("status", "error");
  const bool disturbed = status == "ok" && is_disturbed(record);
  if (style_ == ProgressStyle::json) {
    Json line = {{"type", "end"},    {"cell", cell_}, {"round", ended.round},
                 {"status", status}, {"done", done_}, {"total", steps_}};
    if (record.contains("reason")) line["reason"] = record["reason"];
    if (disturbed) line["disturbed"] = true;
    std::fprintf(stream_, "%s\n",
                 line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
    return;
  }
  // Later rounds of an ok cell say nothing new, nor do further disturbed ones.
  const bool news = status != "ok" || (disturbed && disturbed_.insert(cell_).second);
  if (news || (!terminal_ && ended.round == 0)) {
    say(place(done_) + ended.what + "  " + finding(record) +
        (disturbed ? ", disturbed: other processes took the CPU" : ""));
  }
}

void Progress::say(const std::string& sentence) { note(sentence, false); }

void Progress::warn(const std::string& sentence) { note(sentence, true); }

void Progress::note(const std::string& sentence, bool red) {
  clear();
  if (style_ == ProgressStyle::json) {
    const Json line = {{"type", "note"}, {"text", sentence}};
    std::fprintf(stream_, "%s\n",
                 line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    const std::string text =
        result::printable(result::bounded_message(sentence), result::Breaks::kept);
    std::fprintf(stream_, "%s\n", (red ? in_red(text, stream_) : text).c_str());
  }
  std::fflush(stream_);
}

void Progress::show(const std::string& line) {
  if (!terminal_) return;
  std::fprintf(stream_, "\r\x1b[K%s", result::shorten(line, columns_of(stream_) - 1).c_str());
  std::fflush(stream_);
  drawn_ = true;
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
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), " %.1f/s  %s left", 1 / each, clock_text(left).c_str());
  return text.data();
}

void Progress::draw(const std::string& extra) {
  std::string line = place(std::min(done_ + 1, steps_)) + bar(bar_width) + rate();
  const auto found = begun_.find(cell_);
  if (found != begun_.end()) line += "  " + found->second.what;
  if (!extra.empty()) line += "  " + extra;
  line = result::shorten(result::printable(line), columns_of(stream_) - 1);
  std::fprintf(stream_, "\r\x1b[K%s", line.c_str());
  std::fflush(stream_);
  drawn_ = true;
}

void Progress::clear() {
  if (drawn_) std::fprintf(stream_, "\r\x1b[K");
  std::fflush(stream_);
  drawn_ = false;
}

}  // namespace attnbench::run
