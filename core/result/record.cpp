#include "core/result/record.hpp"

#include <algorithm>

#include "core/claims_json.hpp"

namespace attnbench::result {

namespace {

constexpr const char* samples_rule =
    R"({"minItems": 1, "items": {"exclusiveMinimum": 0}, "title": "a list of positive numbers"})";
constexpr const char* indices_rule = R"({"title": "indices of samples_seconds"})";
constexpr const char* verdict_rule = R"({"enum": ["ok", "wrong", "unchecked"]})";
constexpr const char* with_verdict_rule = R"({"required": ["verdict"]})";
constexpr const char* unread_rule = R"({"properties": null, "required": null})";
constexpr const char* settings_rule = R"({"properties": {
    "pattern": {"type": "string"}, "dtype": {"type": "string"},
    "scope": {"type": "string"}, "pass": {"type": "string"}}})";
constexpr const char* problem_rule = R"({"properties": {
    "batch": {"type": "number"}, "heads": {"type": "number"}, "kv_heads": {"type": "number"},
    "length": {"type": "number"}, "key_length": {"type": "number"},
    "head_dim": {"type": "number"}, "value_dim": {"type": "number"},
    "model_width": {"type": "number",
      "description": "of the tokens, where it is not heads * head_dim: key_dim was said"},
    "pattern": {"type": "string"}, "dtype": {"type": "string"}}})";
constexpr const char* cell_id_rule = R"({"minLength": 1, "title": "the id of a cell"})";
constexpr const char* round_rule = R"({"minimum": 0, "maximum": 1000000})";
constexpr const char* python_rule = R"({"type": ["object", "null"], "properties": {
    "word": {"type": "string",
      "description": "as a suite names it, with the absolute path of its file"},
    "python": {"type": "string", "description": "version"},
    "torch": {"type": "string", "description": "version"},
    "packages": {"type": "object", "description": "versions of what it imports"},
    "file_hash": {"type": "string",
      "description": "of its file and all that it imported beside libraries"},
    "call_seconds": {"type": "number", "minimum": 1e-12, "maximum": 1e9, "description":
      "of an empty Python function that is called in the same way; subtracted nowhere"},
    "call_share": {"type": "number",
      "description": "of that in the shortest timing's median"},
    "compile_seconds": {"type": "number", "minimum": 0,
      "description": "what the first call took beyond the median of later ones"},
    "notes": {"type": "array", "items": {"type": "string"}}}})";

}  // namespace

ATTNBENCH_DESCRIBED_CODEC(TimingRound) {
  JSON_KEY(at, median_seconds,
           "of the samples that were not preempted; of all where the round is disturbed",
           Rule::seconds);
  JSON_KEY(maybe, low_seconds, "", Rule::positive);
  JSON_KEY(maybe, high_seconds, "", Rule::positive);
  JSON_MAYBE(round);
  JSON_KEY(maybe, samples_seconds, "", samples_rule);
  JSON_KEY(maybe, samples_cpu_share,
           "CPU only: CPU time of all threads over wall time times threads, of each sample",
           Rule::sizes_listed);
  JSON_KEY(maybe, samples_switches, "CPU only: involuntary context switches, of each sample",
           Rule::sizes_listed);
  JSON_KEY(maybe, preempted, "samples whose threads waited for a CPU for more than 2 % of the time",
           indices_rule);
  JSON_MAYBE(disturbed);
  JSON_KEY(maybe, disturbed_by,
           "preempted: fewer than a quarter of the samples were not preempted, or fewer than half "
           "and than min_samples after up to twice max_seconds; stolen: the hypervisor took more "
           "than 5 % of the CPUs' time; neighbours: others used more than 10 % of the CPUs that "
           "share its cores; crowded: others used more than 45 % of the CPUs' time and its threads "
           "waited for more than half of the samples' time; slow: the calibration took over 1.25 "
           "times the run's lower quartile");
  JSON_KEY(maybe, stop, "why sampling ended: interval, time or samples");
  JSON_KEY(maybe, calibration_seconds, "", Rule::size);
  JSON_KEY(maybe, lost_share, "time that threads waited for a CPU, over that of the samples");
  JSON_KEY(maybe, stolen_share, "share of its CPUs' time that the hypervisor took");
  JSON_KEY(maybe, others_share, "share of its CPUs' time that other processes took");
  JSON_KEY(maybe, own_threads_waited,
           "threads waited for a CPU although nobody else ran: more threads than CPUs, which is no "
           "disturbance");
  JSON_KEY(maybe, clock_ratio, "device only: its clock over its greatest, just after");
  JSON_KEY(maybe, graph, "device only: a recorded graph was timed");
  JSON_KEY(maybe, graph_reason, "device only: why no graph was timed where one was wanted");
  JSON_REST;
}

ATTNBENCH_DESCRIBED_CODEC(Timing) {
  JSON_KEY(at, median_seconds, "", Rule::seconds);
  JSON_KEY(at, low_seconds, "bounds the median over rounds, at 95 % where rounds allow it",
           Rule::seconds);
  JSON_KEY(at, high_seconds, "", Rule::seconds);
  JSON_KEY(at, rounds,
           "disturbed ones are listed but do not count, unless fewer than half count: then all do");
  JSON_KEY(maybe, interval, "order, range or samples");
  JSON_MAYBE(minimum_seconds, calibrated_median_seconds, calibrated_low_seconds,
             calibrated_high_seconds);
  JSON_KEY(maybe, disturbed,
           "fewer than half of the rounds count, high is over twice the median, or low under half "
           "of it");
  JSON_REST;
}

ATTNBENCH_DESCRIBED_CODEC(Chosen) {
  JSON_USUAL(implementation);
  JSON_MAYBE(reason);
  JSON_IGNORE_REST;
}

ATTNBENCH_DESCRIBED_CODEC(Check) {
  JSON_KEY(maybe, verdict, "", verdict_rule);
  JSON_MAYBE(reason);
  json.further("reference", "", Rule::text);
  json.further("dtype", "", Rule::text);
  JSON_REST;
}

ATTNBENCH_DESCRIBED_CODEC(Roofline) {
  JSON_AT(floor_seconds);
  JSON_KEY(at, share, "the floor over the median of the primary timing");
  JSON_KEY(at, bound, "compute, memory or exponentials");
  JSON_IGNORE_REST;
}

ATTNBENCH_DESCRIBED_CODEC(CellRecord) {
  JSON_AT(id, label, task, mechanism);
  json.further("machine", "the name of the one of \"machines\" that measured it", Rule::text);
  JSON_MAYBE(task_label);
  JSON_KEY(maybe, implementation, "as asked for: a name or \"auto\"");
  JSON_MAYBE(device);
  JSON_KEY(at, options,
           "of the mechanism, all values, derived ones such as latents_per_head included");
  JSON_KEY(at, settings, "of the task, all values", settings_rule);
  JSON_KEY(maybe, problem, "its sizes; absent where there was no forecast", problem_rule);
  JSON_KEY(maybe, varies, "settings and options that differ between the suite's cells");
  JSON_AT(status);
  JSON_KEY(maybe, reason, "one sentence");
  JSON_KEY(maybe, detail, "the log's tail, or more numbers");
  JSON_KEY(maybe, waiting, "how its threads waited for each other: active or passive");
  JSON_KEY(maybe, reused_from, "the run that rounds were copied from");
  JSON_KEY(maybe, side_by_side, "jobs and threads, of a training beside which others ran");
  JSON_KEY(maybe, reproduce, "the command that runs this cell alone");
  JSON_KEY(maybe, chosen, "the implementation that ran");
  JSON_KEY(maybe, cost,
           "model_flops, executed_flops, minimal_bytes, exponentials, workspace_bytes, "
           "saved_bytes, state_bytes of one timed body",
           Rule::numbers);
  JSON_KEY(maybe, growth,
           "claimed exponents: time_in_length, workspace_in_length, time_in_latents, "
           "workspace_in_latents, time_in_head_dim, workspace_in_head_dim; from_length: where they "
           "begin to hold",
           Rule::numbers);
  JSON_KEY(maybe, timing,
           "by what was timed: the pass of kernel; prefill, step, generation of decode");
  JSON_KEY(maybe, primary, "the timing that figures and tables show first");
  JSON_KEY(maybe, crossover, "over rounds, lengths in tokens");
  JSON_KEY(maybe, training,
           "of tasks that train. metrics: accuracy (on the test), label_accuracy (mean over "
           "labels), validation_accuracy, train_accuracy, test_loss, parameters, state_bytes, "
           "train_seconds, examples_per_second; of language models bits_per_byte and perplexity "
           "(per byte) of the test at the length of training, validation_bits_per_byte, "
           "train_bits_per_byte, bytes_per_second; of those whose tokens are no bytes perplexity "
           "(per token), validation_perplexity, train_perplexity, tokens_per_second.");
  JSON_KEY(maybe, memory, "input_bytes, output_bytes, saved_bytes, workspace_bytes, peak_bytes",
           Rule::sizes);
  JSON_KEY(maybe, device_memory,
           "of a device with memory of its own, in the first round: tensor_peak_bytes and "
           "reserved_peak_bytes of its allocator, used_bytes of all processes",
           Rule::sizes);
  JSON_KEY(maybe, check,
           "verdict, rows, error, tolerance, naive_error, reference, dtype: against the definition "
           "in double");
  JSON_KEY(maybe, metrics, "of the task: state_bytes, tokens_per_second, accuracy, …",
           Rule::numbers);
  JSON_MAYBE(roofline);
  json.further("python", "of a mechanism in Python, in the first round that ended well",
               python_rule);
  JSON_REST;
}

std::size_t Timing::disturbed_rounds() const {
  return static_cast<std::size_t>(std::count_if(
      rounds.begin(), rounds.end(), [](const TimingRound& round) { return round.disturbed; }));
}

bool is_ok(const CellRecord& cell) { return cell.status == Status::ok; }

bool is_disturbed(const CellRecord& cell) { return cell.status == Status::disturbed; }

bool is_unchecked(const CellRecord& cell) {
  return cell.status == Status::error && cell.check && cell.check->verdict == "unchecked";
}

const Timing* timing_of(const CellRecord& cell, const std::string& what) {
  const auto found = cell.timing.find(what.empty() ? cell.primary : what);
  return found == cell.timing.end() ? nullptr : &found->second;
}

std::string preempted_words(std::size_t disturbed, std::size_t rounds) {
  return std::to_string(disturbed) + " of " + std::to_string(rounds) +
         (rounds == 1 ? " round was" : " rounds were") + " preempted: repeat on a quiet machine";
}

const char* const disturbed_note =
    "disturbed: other programs had the CPU, of such a time the least sample is shown and nothing "
    "is ranked; `--retry disturbed` measures it again";

ATTNBENCH_DESCRIBED_CODEC(Measured) {
  JSON_MAYBE(timing, crossover);
  JSON_KEY(maybe, training, "checked whole once it is joined with the plan", unread_rule);
  JSON_KEY(maybe, check, "", with_verdict_rule);
  JSON_MAYBE(chosen);
  JSON_KEY(maybe, memory, "", Rule::sizes);
  JSON_KEY(maybe, device_memory, "", Rule::sizes);
  JSON_KEY(maybe, metrics, "", Rule::numbers);
  JSON_KEY(maybe, calibration_seconds, "", Rule::size);
  JSON_KEY(maybe, lost_share, "time that threads waited for a CPU, over all");
  json.further("python", "", python_rule);
  json.further("parts", "seconds of the round by part, see `attnbench run --timings`",
               R"({"type": "object", "additionalProperties": {"type": "number"}})");
  JSON_REST;
}

ATTNBENCH_DESCRIBED_CODEC(RoundRecord) {
  json.type("record");
  JSON_KEY(at, cell, "", cell_id_rule);
  JSON_KEY(at, round, "", round_rule);
  JSON_AT(status);
  JSON_USUAL(measured);
  JSON_MAYBE(reason);
  JSON_KEY(maybe, detail, "the log's tail", Rule::text);
  JSON_MAYBE(started_at);
  JSON_KEY(maybe, wall_seconds, "", Rule::size);
  JSON_MAYBE(reused_from, side_by_side, waiting);
  JSON_REST;
}

}  // namespace attnbench::result
