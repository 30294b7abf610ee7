#include "core/result/rows.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/text/format.hpp"

namespace attnbench::result {
namespace {

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
