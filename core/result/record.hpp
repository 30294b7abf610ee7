// The record: what a run knows of one cell, and result.json around it. The only thing reports/
// knows.
//
// Records are JSON from the child that measures to the file on disk, so this header is their
// definition. Units are part of key names; what is not known is absent, never null or NaN.
//
// result.json
//   context      as Google Benchmark writes it, so that its compare.py reads our results
//   benchmarks   one row per cell, timing and round (rounds are its repetitions)
//   attnbench
//     schema     1
//     suite      {name, title, source, published, profile, hash, tasks: {TASK_LABEL: {task, axis,
//                figures: [NAME…]}}, labels: [LABEL…] in the suite's order, differs_from?: {NAME:
//                [{what, how}]} of mechanisms and tasks that are not what was published}
//     run        {command, started_at, finished_at, wall_seconds, seed, threads, jobs, rounds,
//                state: complete | interrupted | stopped, reason, calibration_seconds (the lower
//                quartile over the rounds on the CPU: what "slow" is held to)}
//     machine    the machine card (harness/measure/machine.hpp)
//     ceilings   {DEVICE: {fma_float32_flops_per_second, gemm_DTYPE_flops_per_second,
//                bandwidth_LEVEL_bytes_per_second, exp_float32_per_second, …}}
//     provenance {commit, dirty, compiler, flags, torch, libraries, binary}
//     cells      [cell…], in the plan's order; every cell of the plan is here
//
// cell
//   id, label, task, task_label, mechanism, device
//   implementation          as asked for: a name or "auto"
//   options, settings       every value, derived ones such as latents_per_head included
//   problem                 {batch, heads, kv_heads, length, key_length, head_dim, value_dim,
//   pattern, dtype} status, reason, detail  a Status; one sentence; the log's tail or more numbers
//   side_by_side            {jobs, threads}: trained while others were, with so many threads
//   reproduce               the command line that does this cell alone
//   chosen                  {implementation, reason}
//   cost                    {model_flops, executed_flops, minimal_bytes, exponentials,
//                           workspace_bytes, saved_bytes, state_bytes}   of one timed body
//   growth                  {time_in_length, workspace_in_length, time_in_latents,
//                           workspace_in_latents, time_in_head_dim, workspace_in_head_dim?,
//                           from_length?}
//   timing                  {WHAT: {median_seconds, low_seconds, high_seconds, minimum_seconds,
//                           calibrated_median_seconds, disturbed, rounds: [timing of one round…]}}
//                           WHAT is the pass for kernel; prefill, step, generation for decode.
//                           low and high bound the median over rounds at 95 %, where rounds allow
//                           it. Rounds that are disturbed are listed but do not count, unless all
//                           of it is disturbed: then all count. See "disturbed" below
//   crossover               {verdict, length, low, high, interval: order | range | search,
//   verdicts:
//                           {VERDICT: rounds}, implementation, against: MECHANISM/IMPLEMENTATION,
//                           length_minimum, length_maximum (searched by every round), stopped,
//                           crossings, efficiency: {length, low, high, r2_exact, r2_mechanism},
//                           rounds: [crossover of one round…]}   of the task crossover, lengths in
//                           tokens; crossover.hpp says how rounds are joined
//   training                {steps, epochs, examples_unique, examples_seen, train: [{segment,
//   examples}],
//                           validation: likewise, test: [{segment, length, examples, questions,
//                           accuracy, loss, wrong_from_context, wrong_from_elsewhere}], stopped:
//                           epochs | accuracy, converged, curve: [{epoch, step, learning_rate,
//                           loss, train_accuracy, validation_loss, validation_accuracy}],
//                           look_back: {distances: [tokens…], questions: [count…], right:
//                           [count…]}, parameters: {total, mechanism}, state_bytes: {mechanism,
//                           convolution}, chance, guess, reach (of one look-up into the window,
//                           computed), reach_line: {keys: [count…], state_bytes: […], reach: […]}
//                           (of windows of so many keys), stacked (blocks that hold the window),
//                           rules (sizes that a task derived), weights_hash, resumed_from_step,
//                           checkpoint_notes, processes}   of tasks that train,
//                           whose metrics are accuracy (on the test), label_accuracy (mean over
//                           labels), validation_accuracy, train_accuracy, test_loss, parameters,
//                           state_bytes, train_seconds, examples_per_second
//   primary                 the WHAT that figures and tables show first
//   memory                  {input_bytes, output_bytes, saved_bytes, workspace_bytes, peak_bytes}
//   check                   {verdict: ok | wrong, rows, error, tolerance, naive_error, reference,
//                           dtype (of what the mix was given, of tasks that train), …}
//   device_memory           {tensor_peak_bytes, reserved_peak_bytes, used_bytes}   of a device with
//                           memory of its own, in the first round: by its allocator, with what that
//                           keeps, and of all processes
//   metrics                 {state_bytes, tokens_per_second, …}   of the task
//   roofline                {floor_seconds, bound: compute | memory | exponentials, share}
//
// timing of one round       {samples_seconds, samples_cpu_share, samples_switches, preempted,
//                           disturbed, disturbed_by, median_seconds, low_seconds, high_seconds,
//                           stop: interval | time | samples, calibration_seconds, round,
//                           lost_share, stolen_share, others_share, own_threads_waited,
//                           clock_ratio, graph, graph_reason}   the last three on a device only:
//                           its clock over its greatest, just after; whether a recorded graph was
//                           timed, and why not where one was wanted. On the CPU only, and not in
//                           older results, beside each sample: CPU time of all threads over wall
//                           time times threads, and involuntary context switches. preempted:
//                           indices of samples whose threads waited for a CPU for more than 2 % of
//                           it; median, low and high are of the others, or of all where the round
//                           is disturbed. lost_share: time that threads waited, over that of the
//                           samples; stolen_share, others_share: of the time of the CPUs that it
//                           ran on, what the hypervisor and other processes took.
//                           own_threads_waited: true where threads waited for a CPU although nobody
//                           else was at work there: more threads than CPUs, which is no disturbance
//
// disturbed                 A round is, by (disturbed_by)
//                             preempted: fewer than a quarter of its samples were not preempted, or
//                               fewer than half and than min_samples, though it went on for up to
//                               twice max_seconds (measure::enough_clean);
//                             stolen: the hypervisor took more than 5 % of its CPUs' time;
//                             neighbours: others used more than 10 % of the CPUs that share a core
//                               with its own, where cores run several threads;
//                             crowded: others used more than 45 % of its CPUs' time, and its
//                               threads waited for more than half of the samples' time;
//                             slow: its calibration took over 1.25 times the run's lower quartile.
//                           A WHAT is where fewer than half of its rounds count, or where its
//                           interval is wider than twice the median above (high > 2 median) or half
//                           of it below (low < median / 2). A cell is where any WHAT is, or most
//                           rounds of its crossover (a round of that is where most lengths that it
//                           tried stopped as disturbed). Trainings are not: what they learn is the
//                           same bit for bit. training.disturbed: true says that its threads
//                           waited for a CPU for more than 5 % of the time, so that train_seconds
//                           and examples_per_second are not its own
//
// crossover of one round    {verdict: found | below | above | none | reverse | several | undecided,
//                           low, high, crossings: [{low, high, faster_from_high}], implementation,
//                           against, length_minimum, length_maximum, stopped, efficiency,
//                           lengths: [{length, faster: exact | mechanism | undecided | untried,
//                           seconds, exact_seconds, ratio, ratio_low, ratio_high, pairs, stop:
//                           decided | equal | time | samples | disturbed (too few pairs of which
//                           no side was preempted: undecided),
//                           implementation, against, reason}]}; ratio is the mechanism's time over
//                           the exact one's, its interval at 99 %
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace attnbench::result {

using Json = nlohmann::json;

/// What became of a cell. None vanishes silently. A disturbed cell keeps its timing, but other
/// processes took the CPU from most of its rounds: it is never ranked and enters no verdict.
enum class Status {
  ok,
  wrong,
  disturbed,
  unsupported,
  skipped,
  out_of_memory,
  timeout,
  crashed,
  error
};

const char* to_string(Status status);
std::optional<Status> status_from(const std::string& word);
/// All words, in the order above.
const std::vector<std::string>& status_words();

/// Joins what the plan and the rounds say of one cell into its record.
/// `cell` as the suite's expansion makes it; `forecast` the worker's plan of it; `rounds` its round
/// records from the journal, any status; `ceilings` those of the cell's device (may be empty);
/// `usual_calibration` as usual_calibration of the run's rounds, 0 = not known.
Json combine(const Json& cell, const Json& forecast, const std::vector<Json>& rounds,
             const Json& ceilings, double usual_calibration = 0);

}  // namespace attnbench::result
