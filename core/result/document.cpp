#include "core/result/document.hpp"
#include "core/output_file.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

#include "core/failure.hpp"
#include "core/json_file.hpp"
#include "core/result/benchmarks.hpp"
#include "core/result/machines.hpp"
#include "core/result/result_check.hpp"
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

namespace {

constexpr const char* differences_rule = R"({"type": "object", "additionalProperties": {
    "type": "array", "items": {"type": "object", "properties": {
      "what": {"type": "string"}, "how": {"type": "string"}}}}})";
constexpr const char* shapes_rule = R"({"type": "array", "items": {"type": "object", "properties": {
    "name": {"type": "string"}, "title": {"type": "string"},
    "source": {"type": "string", "description": "of the figures"},
    "notes": {"type": "string", "description": "what the sizes do not say"},
    "sizes": {"type": "object", "description": "that cells take, by name"},
    "replaced": {"type": "array", "description": "sizes that are said otherwise",
      "items": {"type": "string"}},
    "not_taken": {"type": "array", "description": "sizes that no cell, or not each, has",
      "items": {"type": "string"}}}}})";
constexpr const char* version_rule = R"({"const": 1})";

}  // namespace

ATTNBENCH_DESCRIBED_CODEC(TaskInfo) {
  JSON_MAYBE(task, title);
  JSON_KEY(maybe, axis, "the setting that is the x axis");
  JSON_MAYBE(figures);
  JSON_REST;
}

ATTNBENCH_DESCRIBED_CODEC(SuiteInfo) {
  JSON_MAYBE(name, title);
  JSON_KEY(maybe, source, "paper, figure or table");
  JSON_KEY(maybe, notes, "what a reader should know before or beside the numbers");
  json.further("figure", "of the papers: `attnbench figures` lists them", Rule::text);
  JSON_KEY(maybe, published, "file of published numbers beside the suite");
  JSON_MAYBE(profile);
  JSON_KEY(maybe, hash, "of the file's bytes");
  JSON_KEY(maybe, settings_hash,
           "of the suite without title, notes, source and figure: where it is equal, the same is "
           "measured");
  JSON_KEY(maybe, labels, "in the suite's order");
  JSON_KEY(maybe, tasks, "by label");
  json.further("shapes", "the known models whose sizes cells have", shapes_rule);
  json.further("differs_from", "mechanisms and tasks that are not what was published",
               differences_rule);
  JSON_REST;
}

ATTNBENCH_DESCRIBED_CODEC(ShardInfo) { JSON_USUAL(index, count); }

ATTNBENCH_DESCRIBED_CODEC(MergedRun) {
  JSON_KEY(usual, source, "its folder or file, as the user named it");
  JSON_USUAL(binary, seed);
  JSON_MAYBE(shard);
  JSON_KEY(maybe, state, "that of the run, or \"no result\"");
  JSON_MAYBE(host, started_at, finished_at, cells);
  JSON_REST;
}

ATTNBENCH_DESCRIBED_CODEC(RunInfo) {
  JSON_MAYBE(command, started_at, finished_at, wall_seconds, seed, threads);
  JSON_KEY(maybe, jobs, "trainings at a time");
  JSON_MAYBE(rounds);
  JSON_KEY(maybe, budget_seconds,
           "of `run --budget`, which left further rounds to cells of undecided statements");
  JSON_KEY(maybe, state, "complete, interrupted or stopped");
  JSON_MAYBE(reason);
  JSON_KEY(maybe, waiting, "passive where the threads of any cell waited so");
  JSON_KEY(maybe, calibration_seconds,
           "lower quartile over the rounds on the CPU, which \"slow\" is held against");
  JSON_MAYBE(waited_for_quiet_seconds);
  JSON_KEY(maybe, samples,
           "the file beside the result that has the samples of each round; absent where the rounds "
           "have them");
  JSON_KEY(maybe, plugins, "as the command line named them");
  JSON_KEY(maybe, shard, "the share of the suite's cells that the run has");
  JSON_KEY(maybe, merged, "of a merged result: the runs that it was made of");
  JSON_KEY(maybe, forced, "what differs between those runs");
  JSON_KEY(maybe, submission, "the submission that started them");
  JSON_REST;
}

ATTNBENCH_DESCRIBED_CODEC(Provenance) {
  JSON_MAYBE(commit, dirty, compiler, flags);
  JSON_KEY(maybe, binary, "fingerprint");
  JSON_REST;
}

/// The object "attnbench" of a result, which is our part of it.
static void own_fields(auto& json, auto& value) {
  int schema = document_schema;
  json.usual("schema", schema, "version of this form", version_rule);
  JSON_USUAL(suite, run);
  JSON_KEY(usual, machine, "the machine card");
  JSON_KEY(usual, ceilings,
           "measured rates of each device, such as gemm_float32_flops_per_second, "
           "bandwidth_dram_bytes_per_second, exp_float32_per_second",
           Rule::rates);
  JSON_KEY(usual, provenance, "of what computed: commit, compiler, torch, libraries, binary");
  JSON_KEY(usual, cells, "every cell of the plan, in the plan's order");
  JSON_REST;
}

Json schema_of(const Result*) {
  Json own;
  JsonSchema schema(own);
  const Result none{};
  own_fields(schema, none);
  own["required"] = {"schema", "suite", "run", "machine", "ceilings", "provenance", "cells"};
  own["properties"]["machines"] = {
      {"type", "array"},
      {"description", "of a merged result, where its cells were measured on several machines"},
      {"items", schema_of(static_cast<const MachinePart*>(nullptr))}};
  return {{"$schema", "http://json-schema.org/draft-07/schema#"},
          {"title", "an object: a result of attnbench"},
          {"description",
           "result.json: what a run measured. Units are part of key names; what is not known is "
           "absent, never null. Keys that are not listed are allowed."},
          {"type", "object"},
          {"required", {"context", "benchmarks", "attnbench"}},
          {"properties",
           {{"context",
             {{"type", "object"},
              {"description", "as Google Benchmark writes it, so that its compare.py reads it"}}},
            {"benchmarks",
             {{"type", "array"},
              {"description",
               "one row per timing and undisturbed round of each cell that is ok, in Google "
               "Benchmark's form; rounds are its repetitions"}}},
            {"attnbench", std::move(own)}}}};
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
  result::check_form(json, file.string());
  try {
    return json.get<Result>();
  } catch (const SchemaError& error) {
    result::refuse_form(error.what(), file.string());
  }
}

}  // namespace attnbench::result
