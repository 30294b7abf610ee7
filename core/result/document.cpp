#include "core/result/document.hpp"
#include "core/output_file.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

#include "core/failure.hpp"
#include "core/json_file.hpp"
#include "core/result/benchmarks.hpp"
#include "core/schema/result_check.hpp"
#include "core/text/printable.hpp"

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

}  // namespace

ATTNBENCH_JSON_CODEC(TaskInfo) {
  JSON_MAYBE(task, title, axis, figures);
  JSON_REST;
}

ATTNBENCH_JSON_CODEC(SuiteInfo) {
  JSON_MAYBE(name, title, source, notes, published, hash, settings_hash, profile, labels, tasks);
  JSON_REST;
}

ATTNBENCH_JSON_CODEC(ShardInfo) { JSON_USUAL(index, count); }

ATTNBENCH_JSON_CODEC(MergedRun) {
  JSON_USUAL(source, binary, seed);
  JSON_MAYBE(shard, state, host, started_at, finished_at, cells);
  JSON_REST;
}

ATTNBENCH_JSON_CODEC(RunInfo) {
  JSON_MAYBE(command, started_at, finished_at, wall_seconds, seed, threads, jobs, rounds, state,
             reason, waiting, calibration_seconds, waited_for_quiet_seconds, samples, plugins,
             shard, merged, forced, submission);
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
  } catch (const SchemaError& error) {
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
  if (folder && !std::filesystem::exists(file, ignored) &&
      std::filesystem::exists(file_or_folder / "journal.jsonl", ignored)) {
    throw UsageFailure(text::quotable(file.string()) +
                       ": is not there: the run was ended before it could write it; continue with: "
                       "attnbench run --resume " +
                       text::quotable(file_or_folder.string()));
  }
  const Json json = parse_json_file(file, "a result.json that attnbench wrote, or a run's folder");
  schema::check_form(json, file.string());
  try {
    return json.get<Result>();
  } catch (const SchemaError& error) {
    schema::refuse_form(error.what(), file.string());
  }
}

}  // namespace attnbench::result
