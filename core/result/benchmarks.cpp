#include "core/result/benchmarks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>

#include "core/text/format.hpp"

namespace attnbench::result {
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
  if (round.preempted) {
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
  for (const char* key : {"workspace_bytes", "peak_bytes"}) {
    if (const Json* const value = find_value(cell.memory, key)) row[key] = *value;
  }
  if (cell.cost && std::isfinite(cell.cost->model_flops)) {
    row["model_flops"] = cell.cost->model_flops;
  }
  return row;
}

/// "kernel/latte, scan".
std::string family_of(const CellRecord& cell) { return cell.task_name() + "/" + cell.label; }

/// Keys whose value is not the same in all of `all`, of which there is one.
std::set<std::string> varying_in(const std::vector<const Values*>& all) {
  std::set<std::string> keys;
  const Values& first = *all.front();
  for (const Values* values : all) {
    for (const auto& [key, value] : *values) {
      const Json* const found = find_value(first, key);
      if (found == nullptr || *found != value) keys.insert(key);
    }
    for (const auto& [key, value] : first) {
      if (find_value(*values, key) == nullptr) keys.insert(key);
    }
  }
  return keys;
}

/// Leaves `follower` out where it has the value of `leader` in all cells.
void drop_follower(std::set<std::string>& keys, const std::vector<const Values*>& all,
                   const std::string& follower, const std::string& leader) {
  const bool follows = std::all_of(all.begin(), all.end(), [&](const Values* values) {
    const Json* const value = find_value(*values, follower);
    const Json* const other = find_value(*values, leader);
    return value != nullptr && other != nullptr && *value == *other;
  });
  if (follows) keys.erase(follower);
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

BenchmarkNames::BenchmarkNames(const std::vector<CellRecord>& cells) {
  std::map<std::string, std::vector<const Values*>> settings;
  std::map<std::string, std::vector<const Values*>> options;
  for (const CellRecord& cell : cells) {
    if (cell.timing.empty()) continue;
    settings[cell.task_name()].push_back(&cell.settings);
    options[family_of(cell)].push_back(&cell.options);
  }
  for (const auto& [task, all] : settings) {
    std::set<std::string>& keys = settings_[task] = varying_in(all);
    drop_follower(keys, all, "key_length", "length");
    drop_follower(keys, all, "kv_heads", "heads");
    drop_follower(keys, all, "value_dim", "head_dim");
    drop_follower(keys, all, "key_dim", "head_dim");
  }
  for (const auto& [family, all] : options) options_[family] = varying_in(all);
}

std::string BenchmarkNames::of(const CellRecord& cell, const std::string& what) const {
  std::string name = family_of(cell);
  const auto add = [&name](const Values& values, const KeysByName& varying,
                           const std::string& group) {
    const auto keys = varying.find(group);
    if (keys == varying.end()) return;
    for (const std::string& key : keys->second) {
      const Json* const value = find_value(values, key);
      if (value != nullptr) name += "/" + key + ":" + text::human_value(*value);
    }
  };
  add(cell.settings, settings_, cell.task_name());
  add(cell.options, options_, family_of(cell));
  const Json* const pass = find_value(cell.settings, "pass");
  const auto keys = settings_.find(cell.task_name());
  const bool said =
      pass != nullptr && *pass == what && keys != settings_.end() && keys->second.count("pass") > 0;
  return said ? name : name + "/" + what;
}

Json benchmark_rows(const std::vector<CellRecord>& cells, int threads) {
  const BenchmarkNames names(cells);
  Json rows = Json::array();
  int family = 0;
  for (const CellRecord& cell : cells) {
    if (!is_ok(cell)) continue;
    int instance = 0;
    for (const auto& [what, timing] : cell.timing) {
      const std::string name = names.of(cell, what);
      const auto counted = std::count_if(timing.rounds.begin(), timing.rounds.end(),
                                         [](const TimingRound& one) { return !one.disturbed; });
      int repetition = 0;
      for (const TimingRound& round : timing.rounds) {
        if (round.disturbed) continue;
        Json row = row_of(cell, name, round, threads);
        row.update({{"family_index", family},
                    {"per_family_instance_index", instance},
                    {"repetitions", counted},
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
