// The part of result.json that Google Benchmark's tools read.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace attnbench::result {

using Json = nlohmann::json;

/// `context` from the machine card and the run: date, host_name, executable, num_cpus, mhz_per_cpu,
/// cpu_scaling_enabled, caches, load_avg, library_build_type, json_schema_version.
Json benchmark_context(const Json& machine, const Json& run, const std::string& executable);

/// One row per cell, timing and round, the rounds as repetitions; cells without a time have none.
/// In microseconds: real_time is the round's median, cpu_time the mean CPU time of all threads of a
/// sample. A disturbed row says so: a counter `disturbed` of 1.
Json benchmark_rows(const std::vector<Json>& cells, int threads);

/// "kernel/latte, scan/batch:1/…": the same for the same cell in every result.
std::string benchmark_name(const Json& cell, const std::string& what);

}  // namespace attnbench::result
