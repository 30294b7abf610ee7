#include "reports/trend/history.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <sstream>

#include "core/failure.hpp"
#include "core/hash.hpp"
#include "core/json_file.hpp"
#include "core/statistics.hpp"
#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "reports/tables/layout.hpp"

namespace attnbench::reports::trend {
namespace {

namespace fs = std::filesystem;

std::string machine_fingerprint(const result::Result& result) {
  Json cards = Json::object();
  for (const auto& [word, card] : result.machine.devices) cards[word] = card.name;
  const Json facts = {result.machine.host, result.machine.cpu_model, result.run.threads.value_or(0),
                      cards};
  return hash_text(facts.dump(-1, ' ', false, Json::error_handler_t::replace)).substr(0, 16);
}

std::string machine_name(const result::Result& result) {
  std::string name = result.machine.host.empty() ? "a machine" : result.machine.host;
  if (!result.machine.cpu_model.empty()) name += ", " + result.machine.cpu_model;
  if (result.run.threads) {
    name += ", " + std::to_string(*result.run.threads) +
            (*result.run.threads == 1 ? " thread" : " threads");
  }
  return name;
}

std::string name_of(const Panel& panel, const Placed& placed) {
  std::string name = panel.task_label + " " + placed.series;
  if (placed.x) name += ", " + panel.axis + " " + text::human_value(*placed.x);
  if (!panel.facet.empty()) name += ", " + panel.facet_text();
  return name;
}

bool is_time(double number) { return std::isfinite(number) && number > 0; }

std::optional<double> calibrated_median(const result::Timing& timing) {
  std::vector<double> values;
  for (const result::TimingRound& round : timing.rounds) {
    if (round.disturbed) continue;
    const double probe = round.calibration_seconds.value_or(0);
    if (probe <= 0) return std::nullopt;
    values.push_back(round.median_seconds / probe);
  }
  return values.empty() ? std::nullopt : std::optional(median(values));
}

/// Why a line is not one of a history; empty where it is.
std::string fault_of(const HistoryLine& line) {
  if (line.version != history_version) {
    return "/version: expected " + std::to_string(history_version) + ", found " +
           std::to_string(line.version);
  }
  if (!is_time(line.median_seconds)) return "/median_seconds: expected a number above 0";
  if (!is_time(line.calibrated_median.value_or(1))) {
    return "/calibrated_median: expected a number above 0";
  }
  if (line.id.empty() || line.machine.empty() || line.date.empty()) {
    return "expected id, machine and date";
  }
  return "";
}

/// An open file that is locked against other writers.
class LockedFile {
 public:
  explicit LockedFile(const fs::path& file) : file_(file) {
    descriptor_ = open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (descriptor_ < 0 || flock(descriptor_, LOCK_EX) != 0) fail(errno);
  }
  ~LockedFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  /// Returns when the text is on the disk; a write that fails is taken back.
  void append(std::string text) {
    const off_t size = lseek(descriptor_, 0, SEEK_END);
    char last = '\n';
    // A line that was cut off stays the bad line that it is.
    if (size > 0 && pread(descriptor_, &last, 1, size - 1) == 1 && last != '\n')
      text.insert(0, "\n");
    std::size_t done = 0;
    int reason = 0;
    while (done < text.size() && reason == 0) {
      const ssize_t count = write(descriptor_, text.data() + done, text.size() - done);
      if (count < 0 && errno != EINTR) reason = errno;
      if (count > 0) done += static_cast<std::size_t>(count);
    }
    if (reason == 0 && fdatasync(descriptor_) != 0) reason = errno;
    if (reason == 0) return;
    if (ftruncate(descriptor_, size) != 0) reason = errno;
    fail(reason);
  }

 private:
  [[noreturn]] void fail(int reason) const {
    throw EnvironmentFailure("cannot write " + text::quotable(file_.string()) + ": " +
                             std::strerror(reason));
  }
  fs::path file_;
  int descriptor_ = -1;
};

struct NumberedLine {
  HistoryLine line;
  std::size_t number = 0;
};

std::vector<NumberedLine> numbered_lines(const fs::path& file, std::vector<std::string>& faults) {
  std::vector<NumberedLine> lines;
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return lines;
  std::istringstream stream(read_file(file, "a history: JSON Lines"));
  std::size_t number = 0;
  std::map<std::string, std::size_t> known;
  for (std::string text; std::getline(stream, text);) {
    ++number;
    if (text.empty()) continue;
    const std::string place = text::quotable(file.string()) + ":" + std::to_string(number) + ": ";
    try {
      const Json json = parse_json(text, file.string(), "a line of a history", {}, number);
      const auto line = json.get<HistoryLine>();
      const std::string fault = fault_of(line);
      const auto [first, is_new] = known.try_emplace(line.key(), number);
      if (!fault.empty()) {
        faults.push_back(place + fault);
      } else if (!is_new) {
        faults.push_back(place + "the same measurement as in line " +
                         std::to_string(first->second));
      } else {
        lines.push_back({line, number});
      }
    } catch (const Failure& failure) {
      faults.emplace_back(failure.what());
    } catch (const SchemaError& error) {
      faults.push_back(place + error.what());
    }
  }
  if (lines.empty() && !faults.empty()) {
    throw UsageFailure(text::quotable(file.string()) +
                       ": no line is of a history; the first: " + faults.front());
  }
  return lines;
}

}  // namespace

ATTNBENCH_JSON_CODEC(HistoryLine) {
  JSON_AT(version);
  JSON_MAYBE(commit);
  JSON_AT(date, machine);
  JSON_MAYBE(machine_name);
  JSON_AT(id, what, label);
  JSON_MAYBE(name);
  JSON_AT(median_seconds);
  JSON_MAYBE(calibrated_median);
  JSON_AT(rounds);
  JSON_IGNORE_REST;
}

std::string HistoryLine::key() const {
  return Json({machine, id, what, commit, date})
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<HistoryLine> lines_of(const result::Result& result) {
  std::vector<HistoryLine> lines;
  const std::string machine = machine_fingerprint(result);
  const std::string shown = machine_name(result);
  for (const Panel& panel : panels(result)) {
    for (const Placed& placed : panel.cells) {
      const result::CellRecord& cell = *placed.cell;
      if (!result::is_ok(cell)) continue;
      for (const auto& [what, timing] : cell.timing) {
        HistoryLine line;
        line.commit = result.provenance.commit;
        line.date = result.run.started_at;
        line.machine = machine;
        line.machine_name = shown;
        line.id = cell.id;
        line.what = what;
        line.label = cell.label;
        line.name = name_of(panel, placed);
        line.median_seconds = timing.median_seconds;
        line.calibrated_median = calibrated_median(timing);
        line.rounds = static_cast<int>(timing.rounds.size() - timing.disturbed_rounds());
        lines.push_back(std::move(line));
      }
    }
  }
  return lines;
}

History read_history(const fs::path& file) {
  History history;
  for (NumberedLine& one : numbered_lines(file, history.faults)) {
    history.lines.push_back(std::move(one.line));
  }
  return history;
}

void append_history(const fs::path& file, const std::vector<HistoryLine>& lines) {
  std::error_code error;
  if (file.has_parent_path()) fs::create_directories(file.parent_path(), error);
  LockedFile locked(file);
  std::vector<std::string> faults;
  std::map<std::string, std::string> known;
  for (const NumberedLine& one : numbered_lines(file, faults)) {
    known[one.line.key()] = "line " + std::to_string(one.number) + " has it already";
  }
  std::string text;
  for (const HistoryLine& line : lines) {
    const std::string fault = fault_of(line);
    if (!fault.empty()) throw UsageFailure(text::quotable(line.name) + ": " + fault);
    const auto [first, is_new] = known.try_emplace(line.key(), "it comes twice in what is added");
    if (!is_new) {
      throw UsageFailure(text::quotable(file.string()) + ": " + text::quotable(line.name) + " (" +
                         line.what + ") of " + line.date + ": " + first->second +
                         "; nothing was added");
    }
    text += Json(line).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  if (!text.empty()) locked.append(text);
}

}  // namespace attnbench::reports::trend
