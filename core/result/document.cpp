#include "core/result/document.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <set>
#include <stdexcept>
#include <string>

#include "core/failure.hpp"
#include "core/json_file.hpp"
#include "core/schema/result_check.hpp"
#include "core/text/format.hpp"

namespace attnbench::result {
namespace {

constexpr int document_schema = 1;

/// JSON has no NaN: the library would write null.
void refuse_non_finite(const Json& value, const std::string& pointer) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    throw std::logic_error("result.json: " + pointer + " is not a finite number");
  }
  if (value.is_object()) {
    for (const auto& [key, part] : value.items()) refuse_non_finite(part, pointer + "/" + key);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      refuse_non_finite(value[i], pointer + "/" + std::to_string(i));
    }
  }
}

/// An open file descriptor whose file goes away unless it was finished.
class Temporary {
 public:
  explicit Temporary(std::filesystem::path path) : path_(std::move(path)) {
    descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  }
  ~Temporary() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!finished_) unlink(path_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  bool write_all(std::string_view content) {
    while (descriptor_ >= 0 && !content.empty()) {
      const ssize_t count = write(descriptor_, content.data(), content.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return false;
      content.remove_prefix(static_cast<std::size_t>(count));
    }
    return descriptor_ >= 0;
  }

  bool rename_to(const std::filesystem::path& file) {
    if (fsync(descriptor_) != 0) return false;
    finished_ = rename(path_.c_str(), file.c_str()) == 0;
    return finished_;
  }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  bool finished_ = false;
};

}  // namespace

ATTNBENCH_JSON_CODEC(TaskInfo) {
  JSON_MAYBE(task, title, axis, figures);
  JSON_REST;
}

ATTNBENCH_JSON_CODEC(SuiteInfo) {
  JSON_MAYBE(name, title, source, notes, published, profile, labels, tasks);
  JSON_REST;
}

ATTNBENCH_JSON_CODEC(RunInfo) {
  JSON_MAYBE(command, started_at, finished_at, wall_seconds, seed, threads, jobs, rounds, state,
             reason, waiting, calibration_seconds, waited_for_quiet_seconds, plugins);
  JSON_REST;
}

ATTNBENCH_JSON_CODEC(Provenance) {
  JSON_MAYBE(commit, dirty, compiler, flags, binary);
  JSON_REST;
}

/// The object "attnbench" of a result, which is our part of it.
static void own_fields(auto& json, auto& value) {
  int schema = document_schema;
  json.usual("schema", schema);
  JSON_USUAL(suite, run, machine, ceilings, provenance, cells);
  JSON_REST;
}

void to_json(Json& json, const Result& result) {
  Json own = Json::object();
  JsonWriter writer(own);
  own_fields(writer, result);
  json = {{"context", result.context},
          {"benchmarks", result.benchmarks},
          {"attnbench", std::move(own)}};
}

void from_json(const Json& json, Result& result) {
  result = {};
  JsonReader whole(json);
  whole.maybe("context", result.context);
  whole.maybe("benchmarks", result.benchmarks);
  const auto found = json.find("attnbench");
  if (found == json.end()) return;
  try {
    JsonReader reader(*found);
    own_fields(reader, result);
  } catch (const FormError& error) {
    throw error.inside("attnbench");
  }
}

const Values& Result::ceilings_of(const std::string& device) const {
  static const Values none;
  const auto found = ceilings.find(device);
  return found == ceilings.end() ? none : found->second;
}

Result assemble(Result result, const std::string& executable) {
  result.context = benchmark_context(result.machine, result.run, executable);
  result.benchmarks = benchmark_rows(result.cells, result.run.threads.value_or(1));
  return result;
}

void write_result(const std::filesystem::path& file, const Result& result) {
  const Json json = result;
  refuse_non_finite(json, "");
  // A log's tail may not be UTF-8.
  write_atomically(file, json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

Result read_result(const std::filesystem::path& file_or_folder) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(file_or_folder, ignored);
  const std::filesystem::path file = folder ? file_or_folder / "result.json" : file_or_folder;
  const Json json = parse_json_file(file, "a result.json that attnbench wrote, or a run's folder");
  check_form(json, file.string());
  try {
    return json.get<Result>();
  } catch (const FormError& error) {
    refuse_form(error.what(), file.string());
  }
}

void write_atomically(const std::filesystem::path& file, std::string_view content) {
  const std::filesystem::path temporary = file.string() + ".tmp" + std::to_string(getpid());
  Temporary stream(temporary);
  if (stream.write_all(content) && stream.rename_to(file)) return;
  const std::string reason = std::strerror(errno);
  throw EnvironmentFailure("cannot write " + file.string() + ": " + reason +
                           "; free space there or choose another folder with --out");
}

// ---- the part that Google Benchmark's tools read

namespace {

/// Google Benchmark's {type, level, size, num_sharing}.
Json caches_of(const MachineCard& machine) {
  Json list = Json::array();
  if (!machine.caches) return list;
  const Caches& known = *machine.caches;
  int level = 0;
  for (const std::optional<std::int64_t>& bytes :
       {known.l1_bytes, known.l2_bytes, known.l3_bytes}) {
    ++level;
    if (!bytes) continue;
    list.push_back({{"type", level == 1 ? "Data" : "Unified"},
                    {"level", level},
                    {"size", *bytes},
                    {"num_sharing", 1}});
  }
  return list;
}

Json load_averages(const MachineCard& machine) {
  Json list = Json::array();
  if (!machine.load) return list;
  for (const auto& average : {machine.load->average_1_minute, machine.load->average_5_minutes,
                              machine.load->average_15_minutes}) {
    if (average) list.push_back(*average);
  }
  return list;
}

/// Mean CPU time of all threads over the samples that count, in seconds; the wall time where it is
/// not known (another device, an older result).
double cpu_seconds(const TimingRound& round, int threads) {
  const std::vector<double>& samples = round.samples_seconds;
  std::set<std::size_t> left_out;
  if (!round.disturbed && round.preempted) {
    left_out.insert(round.preempted->begin(), round.preempted->end());
  }
  const bool known = round.samples_cpu_share && !samples.empty() &&
                     round.samples_cpu_share->size() == samples.size();
  if (!known || left_out.size() >= samples.size()) return round.median_seconds;
  double sum = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (left_out.count(i) == 0) sum += samples[i] * (*round.samples_cpu_share)[i] * threads;
  }
  return sum / static_cast<double>(samples.size() - left_out.size());
}

Json row_of(const CellRecord& cell, const std::string& name, const TimingRound& round,
            int threads) {
  Json row = {{"name", name},
              {"run_name", name},
              {"run_type", "iteration"},
              {"iterations", round.samples_seconds.size()},
              {"real_time", round.median_seconds * 1e6},
              {"cpu_time", cpu_seconds(round, threads) * 1e6},
              {"time_unit", "us"}};
  const auto add_counter = [&row](const Values& values, const char* key) {
    if (const Json* const value = find_value(values, key)) row[key] = *value;
  };
  add_counter(cell.memory, "workspace_bytes");
  add_counter(cell.memory, "peak_bytes");
  add_counter(cell.cost, "model_flops");
  if (round.disturbed) row["disturbed"] = 1;
  return row;
}

}  // namespace

Values benchmark_context(const MachineCard& machine, const RunInfo& run,
                         const std::string& executable) {
  const std::string& governor = machine.governor;
  return {{"date", run.started_at},
          {"host_name", machine.host},
          {"executable", executable},
          {"num_cpus", machine.cores.value_or(machine.threads.value_or(0))},
          {"mhz_per_cpu", std::lround(machine.clock_hz.value_or(0) / 1e6)},
          {"cpu_scaling_enabled",
           !governor.empty() && governor != "performance" && governor != "unknown"},
          {"caches", caches_of(machine)},
          {"load_avg", load_averages(machine)},
          {"library_build_type", "release"},
          {"json_schema_version", 1}};
}

std::string benchmark_name(const CellRecord& cell, const std::string& what) {
  std::string name = cell.task_name() + "/" + cell.label;
  for (const Values* values : {&cell.settings, &cell.options}) {
    for (const auto& [key, value] : *values) name += "/" + key + ":" + human_value(value);
  }
  const Json* const pass = find_value(cell.settings, "pass");
  if (pass == nullptr || *pass != what) name += "/" + what;
  return name;
}

Json benchmark_rows(const std::vector<CellRecord>& cells, int threads) {
  Json rows = Json::array();
  int family = 0;
  for (const CellRecord& cell : cells) {
    int instance = 0;
    for (const auto& [what, timing] : cell.timing) {
      const std::string name = benchmark_name(cell, what);
      int repetition = 0;
      for (const TimingRound& round : timing.rounds) {
        Json row = row_of(cell, name, round, threads);
        row.update({{"family_index", family},
                    {"per_family_instance_index", instance},
                    {"repetitions", timing.rounds.size()},
                    {"repetition_index", repetition++},
                    {"threads", threads}});
        rows.push_back(std::move(row));
      }
      ++instance;
    }
    family += instance > 0;
  }
  return rows;
}

}  // namespace attnbench::result
