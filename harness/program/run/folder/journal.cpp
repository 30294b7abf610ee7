#include "harness/program/run/folder/journal.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <chrono>
#include <thread>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "core/json_file.hpp"
#include "core/result/result_check.hpp"
#include "core/text/printable.hpp"

namespace attnbench::run {
namespace {

constexpr std::size_t max_bytes = 512 * mebibyte;

/// Replaces an earlier record of the same round, or adds one.
void take_round(std::vector<result::RoundRecord>& rounds, result::RoundRecord record) {
  for (result::RoundRecord& known : rounds) {
    if (known.round != record.round) continue;
    known = std::move(record);
    return;
  }
  rounds.push_back(std::move(record));
}

/// The record of a line; empty if it is invalid, with the reason in `fault`.
std::optional<result::RoundRecord> record_from(const Json& line, std::string& fault) {
  fault = result::round_fault(line);
  if (!fault.empty()) return std::nullopt;
  try {
    return line.get<result::RoundRecord>();
  } catch (const SchemaError& error) {
    fault = error.what();
    return std::nullopt;
  }
}

/// A text of a line; empty where it has none.
std::string text_of(const Json& line, const char* key) {
  const auto text = line.find(key);
  return text != line.end() && text->is_string() ? text->get<std::string>() : std::string();
}

struct HeaderFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Checks a header of this schema version; nothing is known of other versions'.
void expect_header(const Json& line) {
  const auto schema = line.find("schema");
  if (schema != line.end() && schema->is_number_integer() && *schema != journal_schema) return;
  try {
    static_cast<void>(line.get<JournalHeader>());
  } catch (const SchemaError& error) {
    throw HeaderFault(error.what());
  }
}

void take(JournalContents& contents, Json line, const std::string& place) {
  const std::string type = text_of(line, "type");
  const std::string cell = text_of(line, "cell");
  if (cell.empty() && (type == "repeat" || type == "record")) {
    contents.skipped.push_back(place + ": the " + type + " names no cell");
    return;
  }
  if (type == "header") {
    expect_header(line);
    contents.header = std::move(line);
  } else if (type == "probe") {
    if (!result::answer_fault("probe", line).empty()) return;  // the device is probed again
    const auto probe = line.get<DeviceProbe>();
    contents.probes[probe.device] = probe;
  } else if (type == "repeat") {
    contents.rounds.erase(cell);
    contents.faults.erase(cell);
  } else if (type == "record") {
    contents.identities[cell] = contents.header.at("identity");
    std::string fault;
    auto record = record_from(line, fault);
    if (!record) contents.faults.emplace(cell, place + ": " + fault);
    if (contents.faults.count(cell) == 0) {
      take_round(contents.rounds[cell], std::move(*record));
    } else {
      contents.rounds.erase(cell);
    }
  }
}

const char* remedy(int number) {
  return number == 1 ? "it says what the run is, so start a new one"
                     : "take the line out, or start a new run";
}

[[noreturn]] void refuse_line(const std::filesystem::path& file, int number,
                              const std::string& why) {
  throw EnvironmentFailure(text::quotable(file.string()) + ":" + std::to_string(number) +
                           ": not a line of a journal (" + why + "); " + remedy(number));
}

/// Where the last whole line of an open file ends.
off_t end_of_lines(int descriptor, off_t size) {
  char byte = 0;
  while (size > 0 && pread(descriptor, &byte, 1, size - 1) == 1 && byte != '\n') --size;
  return size;
}

}  // namespace

ATTNBENCH_JSON_READER(DeviceProbe) { JSON_MAYBE(device, ceilings, machine); }

ATTNBENCH_JSON_READER(JournalHeader) {
  JSON_MAYBE(schema);
  JSON_AT(suite, cells, measure, identity);
  JSON_MAYBE(rounds, budget_seconds, plugins, seed, threads, jobs, blas, reproduce);
}

void to_json(Json& json, const DeviceProbe& answer) {
  json = {{"type", "probe"},
          {"device", answer.device},
          {"ceilings", answer.ceilings},
          {"machine", answer.machine}};
}

JournalContents read_journal(const std::filesystem::path& file) {
  expect_regular_file(file, "the journal of a run", max_bytes);
  std::ifstream stream(file, std::ios::binary);
  if (!stream)
    throw EnvironmentFailure("cannot read " + file.string() + ": is it the folder of a run?");
  JournalContents contents;
  std::string text;
  for (int number = 1; std::getline(stream, text); ++number) {
    if (stream.eof()) break;  // no line end: the write was cut off
    const std::string place = text::quotable(file.string()) + ":" + std::to_string(number);
    try {
      Json line = parse_json(text, file.string(), "a line of a journal", {},
                             static_cast<std::size_t>(number));
      if (!line.is_object()) throw std::runtime_error("not a JSON object");
      take(contents, std::move(line), place);
    } catch (const HeaderFault& fault) {
      throw UsageFailure(place + ": not the header of a run (" + fault.what() +
                         "); start a new run");
    } catch (const UsageFailure& failure) {
      throw EnvironmentFailure(std::string(failure.what()) + "; " + remedy(number));
    } catch (const Json::exception& error) {
      refuse_line(file, number, json_complaint(error));
    } catch (const std::exception& error) {
      refuse_line(file, number, error.what());
    }
    contents.whole_bytes += text.size() + 1;
  }
  const int schema = contents.header.is_object() ? contents.header.value("schema", 0) : 0;
  if (schema != journal_schema) {
    throw EnvironmentFailure(file.string() + " has no header of schema " +
                             std::to_string(journal_schema) + ": start a new run");
  }
  return contents;
}

bool is_being_written(const std::filesystem::path& file) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool locked = flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(descriptor);
  return locked;
}

void if_not_written(const std::filesystem::path& file, const std::function<void()>& action) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  if (flock(descriptor, LOCK_SH | LOCK_NB) == 0) action();
  close(descriptor);
}

Journal::Journal(std::filesystem::path file) : file_(std::move(file)) {
  descriptor_ = open(file_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_ < 0) {
    throw JournalFailure("cannot write " + file_.string() + ": " + std::strerror(errno));
  }
  // `watch`, `report` and `merge` hold the lock for the moment of a look.
  bool locked = flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
  for (int tries = 0; !locked && tries < 20; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    locked = flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
  }
  if (!locked) {
    close(std::exchange(descriptor_, -1));
    throw UsageFailure("another attnbench is writing to " + file_.parent_path().string() +
                       ": wait for it, or choose another folder with --out");
  }
  const off_t size = lseek(descriptor_, 0, SEEK_END);
  size_ = end_of_lines(descriptor_, size);
  if (size_ != size && ftruncate(descriptor_, size_) != 0) {
    const int reason = errno;
    close(std::exchange(descriptor_, -1));
    throw JournalFailure("cannot cut the broken last line of " + file_.string() + ": " +
                         std::strerror(reason));
  }
}

Journal::~Journal() {
  if (descriptor_ >= 0) close(descriptor_);
}

void Journal::require_there() const {
  struct stat ours {};
  struct stat there {};
  const bool same = fstat(descriptor_, &ours) == 0 && stat(file_.c_str(), &there) == 0 &&
                    ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
  if (same) return;
  throw JournalGone(
      file_.string() +
      " is gone: its folder was deleted or moved while the run was at work, which "
      "ends here; start a new run, or continue in the folder's new place if it has one");
}

void Journal::append(const Json& line) {
  const std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  int reason = 0;
  std::size_t done = 0;
  while (done < text.size() && reason == 0) {
    const ssize_t count = write(descriptor_, text.data() + done, text.size() - done);
    if (count < 0 && errno != EINTR) reason = errno;
    if (count > 0) done += static_cast<std::size_t>(count);
  }
  if (reason == 0 && fdatasync(descriptor_) != 0) reason = errno;
  if (reason == 0) {
    size_ += static_cast<off_t>(text.size());
    return;
  }
  if (ftruncate(descriptor_, size_) != 0) reason = errno;
  throw JournalFailure("cannot write " + file_.string() + ": " + std::strerror(reason));
}

}  // namespace attnbench::run
