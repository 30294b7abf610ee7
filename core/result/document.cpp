#include "core/result/document.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>

#include "core/failure.hpp"
#include "core/json_file.hpp"
#include "core/schema/result_check.hpp"
#include "core/text/format.hpp"

namespace attnbench::result {
namespace {

constexpr int schema = 1;

Json object_or_empty(const Json& part) { return part.is_object() ? part : Json::object(); }

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

/// The first of `names` that `object` has, or `fallback`.
Json known_as(const Json& object, std::initializer_list<const char*> names, Json fallback) {
  for (const char* name : names) {
    if (object.is_object() && object.contains(name)) return object[name];
  }
  return fallback;
}

/// Google Benchmark's {type, level, size, num_sharing}, from the card's {l1_bytes, l2_bytes, …}.
Json caches(const Json& machine) {
  Json list = Json::array();
  const Json known = known_as(machine, {"caches"}, Json::object());
  for (const int level : {1, 2, 3}) {
    const std::string key = "l" + std::to_string(level) + "_bytes";
    if (!known.is_object() || !known.contains(key)) continue;
    list.push_back({{"type", level == 1 ? "Data" : "Unified"},
                    {"level", level},
                    {"size", known[key]},
                    {"num_sharing", 1}});
  }
  return list;
}

Json load_average(const Json& machine) {
  Json list = Json::array();
  const Json load = known_as(machine, {"load"}, Json::object());
  for (const char* key : {"average_1_minute", "average_5_minutes", "average_15_minutes"}) {
    if (load.is_object() && load.contains(key)) list.push_back(load[key]);
  }
  return list;
}

void add_counter(Json& row, const char* name, const Json& object, const char* key) {
  if (object.is_object() && object.contains(key)) row[name] = object[key];
}

/// Mean CPU time of all threads over the samples that count, in seconds; the wall time where it is
/// not known (another device, an older result).
double cpu_seconds(const Json& round, int threads) {
  const Json samples = round.value("samples_seconds", Json::array());
  const Json shares = round.value("samples_cpu_share", Json::array());
  std::set<std::size_t> left_out;
  if (!round.value("disturbed", false)) {
    for (const Json& index : round.value("preempted", Json::array()))
      left_out.insert(index.get<std::size_t>());
  }
  if (shares.empty() || shares.size() != samples.size() || left_out.size() >= samples.size()) {
    return round["median_seconds"];
  }
  double sum = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (left_out.count(i) != 0) continue;
    sum += samples[i].get<double>() * shares[i].get<double>() * threads;
  }
  return sum / static_cast<double>(samples.size() - left_out.size());
}

Json row_of(const Json& cell, const std::string& name, const Json& round, int threads) {
  const double microseconds = round["median_seconds"].get<double>() * 1e6;
  Json row = {{"name", name},
              {"run_name", name},
              {"run_type", "iteration"},
              {"iterations", round.value("samples_seconds", Json::array()).size()},
              {"real_time", microseconds},
              {"cpu_time", cpu_seconds(round, threads) * 1e6},
              {"time_unit", "us"}};
  const Json memory = cell.value("memory", Json::object());
  add_counter(row, "workspace_bytes", memory, "workspace_bytes");
  add_counter(row, "peak_bytes", memory, "peak_bytes");
  add_counter(row, "model_flops", cell.value("cost", Json::object()), "model_flops");
  if (round.value("disturbed", false)) row["disturbed"] = 1;
  return row;
}

}  // namespace

Json assemble(const Parts& parts) {
  const Json run = object_or_empty(parts.run);
  const Json machine = object_or_empty(parts.machine);
  Json ours = {{"schema", schema},
               {"suite", object_or_empty(parts.suite)},
               {"run", run},
               {"machine", machine},
               {"ceilings", object_or_empty(parts.ceilings)},
               {"provenance", object_or_empty(parts.provenance)},
               {"cells", parts.cells}};
  return {{"context", benchmark_context(machine, run, parts.executable)},
          {"benchmarks", benchmark_rows(parts.cells, run.value("threads", 1))},
          {"attnbench", std::move(ours)}};
}

void write_result(const std::filesystem::path& file, const Json& result) {
  refuse_non_finite(result, "");
  // A log's tail may not be UTF-8.
  write_atomically(file, result.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

Json read_result(const std::filesystem::path& file_or_folder) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(file_or_folder, ignored);
  const std::filesystem::path file = folder ? file_or_folder / "result.json" : file_or_folder;
  const Json result =
      parse_json_file(file, "a result.json that attnbench wrote, or a run's folder");
  check_form(result, file.string());
  return result;
}

void write_atomically(const std::filesystem::path& file, std::string_view content) {
  const std::filesystem::path temporary = file.string() + ".tmp" + std::to_string(getpid());
  Temporary stream(temporary);
  if (stream.write_all(content) && stream.rename_to(file)) return;
  const std::string reason = std::strerror(errno);
  throw EnvironmentFailure("cannot write " + file.string() + ": " + reason +
                           "; free space there or choose another folder with --out");
}

Json benchmark_context(const Json& machine, const Json& run, const std::string& executable) {
  const double hertz = known_as(machine, {"clock_hz"}, 0.0).get<double>();
  const Json governor = known_as(machine, {"governor"}, "");
  return Json{
      {"date", known_as(run, {"started_at"}, "")},
      {"host_name", known_as(machine, {"host"}, "")},
      {"executable", executable},
      {"num_cpus", known_as(machine, {"cores", "threads"}, 0)},
      {"mhz_per_cpu", std::lround(hertz / 1e6)},
      {"cpu_scaling_enabled", governor.is_string() && !governor.get<std::string>().empty() &&
                                  governor != "performance" && governor != "unknown"},
      {"caches", caches(machine)},
      {"load_avg", load_average(machine)},
      {"library_build_type", "release"},
      {"json_schema_version", 1}};
}

std::string benchmark_name(const Json& cell, const std::string& what) {
  std::string name = cell.value("task_label", cell.value("task", std::string())) + "/" +
                     cell.value("label", std::string());
  const Json settings = cell.value("settings", Json::object());
  for (const Json& values : {settings, cell.value("options", Json::object())}) {
    for (const auto& [key, value] : values.items()) name += "/" + key + ":" + human_value(value);
  }
  if (settings.value("pass", "") != what) name += "/" + what;
  return name;
}

Json benchmark_rows(const std::vector<Json>& cells, int threads) {
  Json rows = Json::array();
  int family = 0;
  for (const Json& cell : cells) {
    int instance = 0;
    const Json timings = cell.value("timing", Json::object());
    for (const auto& [what, timing] : timings.items()) {
      const std::string name = benchmark_name(cell, what);
      int repetition = 0;
      for (const Json& round : timing["rounds"]) {
        Json row = row_of(cell, name, round, threads);
        row["family_index"] = family;
        row["per_family_instance_index"] = instance;
        row["repetitions"] = timing["rounds"].size();
        row["repetition_index"] = repetition++;
        row["threads"] = threads;
        rows.push_back(std::move(row));
      }
      ++instance;
    }
    family += instance > 0;
  }
  return rows;
}

}  // namespace attnbench::result
