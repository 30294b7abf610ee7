#include "harness/program/run/folder/foreign.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "core/failure.hpp"
#include "core/hash.hpp"
#include "core/statistics.hpp"
#include "core/text/printable.hpp"
#include "harness/program/run/folder/combine.hpp"

namespace attnbench::run {
namespace {

/// What another program says of itself.
struct Program {
  std::string name;
  std::string version;
  Values all;  ///< with whatever else is known of it
};

/// A record of a foreign file.
struct ForeignRecord {
  std::string beside;
  std::string label;
  std::optional<std::string> implementation;
  std::optional<Status> status;
  std::optional<std::string> reason;
  std::optional<std::map<std::string, std::vector<std::vector<double>>>> seconds;
  std::optional<std::map<std::string, Json>> memory;
  Values unknown;
};

struct ForeignFile {
  int schema = 0;
  Program program;
  int threads = 0;
  std::string command;
  std::vector<ForeignRecord> records;
  Values unknown;
};

void from_json(const Json& json, Program& program) {
  JsonReader io(json);
  io.at("name", program.name);
  io.at("version", program.version);
  program.all = json.get<Values>();
}

ATTNBENCH_JSON_READER(ForeignRecord) {
  JSON_AT(beside, label);
  JSON_MAYBE(implementation, status, reason, seconds, memory);
  json.rest(value.unknown);
}

ATTNBENCH_JSON_READER(ForeignFile) {
  JSON_AT(schema, program, threads, command, records);
  json.rest(value.unknown);
}

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
  throw UsageFailure(text::quotable(file) + ": " + text::quotable(what, 400));
}

ForeignFile read_foreign(const Json& json, const std::string& file) {
  const auto expect_known = [&](const Values& unknown, const std::string& pointer,
                                const char* names) {
    if (unknown.empty()) return;
    refuse(file, pointer + "/" + unknown.begin()->first + ": expected one of " + names);
  };
  try {
    auto foreign = json.get<ForeignFile>();
    if (foreign.schema != 1) {
      refuse(file, "/schema: expected 1, found " + std::to_string(foreign.schema));
    }
    expect_known(foreign.unknown, "", "command, program, records, schema, threads");
    for (std::size_t i = 0; i < foreign.records.size(); ++i) {
      expect_known(foreign.records[i].unknown, "/records/" + std::to_string(i),
                   "beside, implementation, label, memory, reason, seconds, status");
    }
    return foreign;
  } catch (const SchemaError& error) {
    refuse(file, error.what());
  }
}

/// The records of one foreign file beside ours.
class Foreign {
 public:
  Foreign(const result::Result& ours, const ForeignFile& foreign, const std::string& file)
      : ours_(ours), foreign_(foreign), file_(file) {}

  std::vector<result::CellRecord> records() const {
    std::vector<result::CellRecord> out;
    for (std::size_t i = 0; i < foreign_.records.size(); ++i) {
      out.push_back(record(foreign_.records[i], "/records/" + std::to_string(i)));
    }
    return out;
  }
  /// "PyTorch 2.11.0".
  std::string program() const { return foreign_.program.name + " " + foreign_.program.version; }
  Json about() const {
    Json about = foreign_.program.all;
    about.update({{"threads", foreign_.threads}, {"command", foreign_.command}});
    return about;
  }

 private:
  [[noreturn]] void fail(const std::string& pointer, const std::string& expected) const {
    refuse(file_, pointer + ": expected " + expected);
  }
  const result::CellRecord& cell_beside(const ForeignRecord& given,
                                        const std::string& pointer) const;
  result::CellRecord record(const ForeignRecord& given, const std::string& pointer) const;
  std::vector<result::RoundRecord> rounds(const ForeignRecord& given,
                                          const result::CellRecord& beside,
                                          const std::string& pointer) const;

  const result::Result& ours_;
  const ForeignFile& foreign_;
  const std::string& file_;
};

const result::CellRecord& Foreign::cell_beside(const ForeignRecord& given,
                                               const std::string& pointer) const {
  const auto found =
      std::find_if(ours_.cells.begin(), ours_.cells.end(),
                   [&](const result::CellRecord& cell) { return cell.id == given.beside; });
  if (found == ours_.cells.end()) {
    fail(pointer + "/beside", "the id of a cell in the result beside it");
  }
  return *found;
}

std::vector<result::RoundRecord> Foreign::rounds(const ForeignRecord& given,
                                                 const result::CellRecord& beside,
                                                 const std::string& pointer) const {
  if (!given.seconds) fail(pointer, "an object, found nothing");
  std::vector<result::RoundRecord> rounds;
  for (const auto& [what, processes] : *given.seconds) {
    const std::string place = pointer + "/" + what;
    if (!beside.timing.contains(what)) fail(place, "a timing that the cell beside it has");
    if (processes.empty()) fail(place, "an array of arrays of seconds");
    for (std::size_t i = 0; i < processes.size(); ++i) {
      const std::vector<double>& samples = processes[i];
      const std::string one = place + "/" + std::to_string(i);
      if (samples.empty()) fail(one, "an array of seconds");
      const bool good = std::all_of(samples.begin(), samples.end(),
                                    [](double sample) { return sample >= 1e-12 && sample <= 1e9; });
      if (!good) fail(one, "seconds above zero, from 1e-12 to 1e9");
      if (rounds.size() <= i) {
        rounds.emplace_back();
        rounds[i].round = static_cast<int>(i);
        rounds[i].status = Status::ok;
      }
      const Spread spread = spread_of(samples);
      result::TimingRound& timing = rounds[i].measured.timing[what];
      timing.samples_seconds = samples;
      timing.median_seconds = spread.median;
      timing.low_seconds = spread.low;
      timing.high_seconds = spread.high;
    }
  }
  if (rounds.empty()) fail(pointer, "at least one timing");
  if (given.memory) {
    for (const auto& [name, bytes] : *given.memory) rounds[0].measured.memory[name] = bytes;
  }
  return rounds;
}

/// The part of a cost that holds whoever computes it: what another program executes and keeps is
/// not known.
Cost work_alone(const Cost& cost) {
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  Cost work = cost;
  for (double Cost::*own :
       {&Cost::executed_flops, &Cost::workspace_bytes, &Cost::saved_bytes, &Cost::state_bytes}) {
    work.*own = unknown;
  }
  return work;
}

result::CellRecord Foreign::record(const ForeignRecord& given, const std::string& pointer) const {
  const result::CellRecord& beside = cell_beside(given, pointer);
  result::CellRecord cell;
  cell.label = given.label + " (" + program() + ")";
  const bool taken =
      std::any_of(ours_.cells.begin(), ours_.cells.end(),
                  [&](const result::CellRecord& other) { return other.label == cell.label; });
  if (taken) fail(pointer + "/label", "a label that no cell of ours has");
  cell.id = hash_text(beside.id + cell.label).substr(0, 12);
  cell.further["foreign"] = about();
  cell.task = beside.task;
  cell.task_label = beside.task_label;
  cell.mechanism = beside.mechanism;
  cell.device = beside.device;
  cell.options = beside.options;
  cell.settings = beside.settings;
  cell.problem = beside.problem;
  if (beside.cost) cell.cost = work_alone(*beside.cost);
  cell.implementation = given.implementation.value_or("");
  if (!cell.implementation.empty()) cell.chosen = result::Chosen{cell.implementation, ""};
  const Status status = given.status.value_or(Status::ok);
  std::vector<result::RoundRecord> all(1);
  all[0].status = status;
  all[0].reason = given.reason.value_or("");
  const bool disturbed = status == Status::disturbed;
  if (disturbed || status == Status::ok) all = rounds(given, beside, pointer + "/seconds");
  if (given.memory) {
    for (const auto& [name, bytes] : *given.memory) {
      if (!bytes.is_number()) fail(pointer + "/memory/" + name, "a number of bytes");
    }
  }
  result::CellRecord made = combine(cell, all, ours_.ceilings_of(cell.device));
  if (disturbed) {
    made.status = status;
    made.reason = given.reason.value_or("its program says so");
  }
  return made;
}

}  // namespace

result::Result with_foreign(result::Result ours, const Json& json, const std::string& file) {
  const ForeignFile foreign = read_foreign(json, file);
  const Foreign read(ours, foreign, file);
  std::vector<result::CellRecord> records = read.records();
  Json& programs = ours.provenance.further["foreign"];
  programs[read.program()] = read.about();
  if (!ours.suite.labels) ours.suite.labels.emplace();
  std::vector<std::string>& labels = *ours.suite.labels;
  for (result::CellRecord& cell : records) {
    if (std::find(labels.begin(), labels.end(), cell.label) == labels.end()) {
      labels.push_back(cell.label);
    }
    ours.cells.push_back(std::move(cell));
  }
  const Json* const said = find_value(ours.context, "executable");
  const std::string executable =
      said != nullptr && said->is_string() ? said->get<std::string>() : "attnbench";
  return result::assemble(std::move(ours), executable);
}

int threads_of_foreign(const Json& foreign, const std::string& file) {
  return read_foreign(foreign, file).threads;
}

}  // namespace attnbench::run
