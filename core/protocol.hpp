// The protocol between supervisor and worker: versioned JSON lines on a socketpair, never stdout.
//
// A message is an object whose "type" is its name. Each request gets one answer: of its own name
// (record for run), error, or cancelled. Heartbeats and progress come in between.
//
// Supervisor to worker    the structs below, and catalogue, cancel, bye without fields
// Worker to supervisor
//   hello      {protocol, pid, stamp, plugins: [{path, status: ok | refused | crashed, reason}]}
//   catalogue  {mechanisms, tasks, plugins, stamp}           see harness/suite/catalogue.hpp
//   plan       {cells: [Forecast…]}                          in the request's order
//   probe      {ceilings, machine} or {product, machine}     product: {flops_per_second}
//   heartbeat  {cell, elapsed_seconds}                       once a second while a child works
//   progress   {cell, done, total, what}
//   record     {cell, round, status, reason, detail, started_at, wall_seconds, measured}
//              measured: {timing, memory, check, metrics, chosen, calibration_seconds}
//   check      {mechanism, implementation, pattern, status, reason,
//               properties: [{name, status: held | broken | not_applicable, reason, error,
//               tolerance}]}
//   apply      {status, reason?, refused?, implementation, implementation_reason, options, problem,
//              roles, parameters, check, files, stamp}       refused: the request made no sense
//   data       {status, reason?, files: [{file, examples}], …}
//   cancelled  {cell}                                        the child was ended
//   error      {message}                                     the request was not understood, or
//                                                            could not be done
//   bye        {}
//
// Children of the worker speak with it alone, over sockets of their own: progress, done or failed,
// each with the seal that it was given (Channel::seal). The worker holds answers to their schema
// (core/schema/result_check.hpp); the supervisor does the same before it appends a record.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/cell.hpp"
#include "core/forecast.hpp"
#include "core/process_rank.hpp"

namespace attnbench::run {

/// A plugin as the command line names it: PATH, or WORD=PATH for one whose mechanism NAME is to be
/// called NAME_WORD, so that two builds of a plugin can be loaded side by side. A WORD is
/// lower-case letters, digits and _.
struct PluginName {
  std::string path;
  std::string as;  ///< the WORD; empty = its mechanisms keep their names

  explicit PluginName(const std::string& text);
};

void to_json(nlohmann::json& json, const ProcessRank& rank);
void from_json(const nlohmann::json& json, ProcessRank& rank);

}  // namespace attnbench::run

namespace attnbench::protocol {

constexpr int version = 1;

/// Of one child; 0 = no limit.
struct Limits {
  double seconds = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t device_bytes = 0;  ///< on a device with memory of its own
};

struct Hello {
  int protocol = version;
  std::vector<std::string> plugins;  ///< as run::PluginName reads them
  int threads = 1;
  std::string device = "cpu";  ///< loaded before the first child
};

struct Plan {
  std::vector<run::Cell> cells;
};

/// The part that all requests share which a child works on.
struct ChildRequest {
  Limits limits;
  int threads = 0;  ///< 0 = as many as hello said
  std::string log;  ///< of the child's standard outputs; empty = the worker's
};

/// Asks for the ceilings of a device and the torch part of the machine card.
struct Probe : ChildRequest {
  std::string device = "cpu";
  bool product = false;  ///< one matrix product in place of the ceilings
};

/// Asks for one round of one cell.
struct Run : ChildRequest {
  run::Cell cell;
  int round = 0;
  std::uint64_t seed = 0;
  bool pinned = true;                                 ///< to as many CPUs as threads
  nlohmann::json measure = nlohmann::json::object();  ///< the sampling rule
  std::string checkpoint;                             ///< folder for a training's checkpoints
  std::string binary;                                 ///< fingerprint of what computes
  std::optional<run::ProcessRank> process_rank;       ///< absent where one process trains alone
};

/// Asks for the conformance kit.
struct Check : ChildRequest {
  std::string mechanism;       ///< a name or an alias
  std::string implementation;  ///< empty = the alias's own
  std::string pattern;
  std::vector<std::string> dtypes;
  std::string device = "cpu";
};

/// Asks for one call on arrays that travel as .npy files.
struct Apply : ChildRequest {
  std::string mechanism;
  std::string implementation = "auto";
  std::string pattern;
  OptionValues options;
  /// The whole message. Of it harness/apply/input_arrays.hpp reads roles: {ROLE: FILE}, parameters:
  /// {NAME: FILE}, mask?: FILE and gradient?: FILE | ones.
  nlohmann::json arrays;
  bool gradient = false;
  std::uint64_t seed = 0;
  std::int64_t check_rows = 64;
  bool allow_nan = false;
  std::string out;  ///< folder
};

/// Asks for the examples that a task learns from, as files.
struct Data : ChildRequest {
  std::string task;
  OptionValues settings;
  std::uint64_t seed = 0;
  std::string out;  ///< folder
};

struct Heartbeat {
  std::string cell;
  double elapsed_seconds = 0;
};

struct Progress {
  std::string cell;
  double done = 0;
  double total = 0;
  std::string what;
};

// to_json writes the message with its type; from_json throws UsageError, naming the place, for a
// key that is missing, of another type or unknown.
void to_json(nlohmann::json& json, const Hello& hello);
void from_json(const nlohmann::json& json, Hello& hello);
void to_json(nlohmann::json& json, const Plan& plan);
void from_json(const nlohmann::json& json, Plan& plan);
void to_json(nlohmann::json& json, const Probe& probe);
void from_json(const nlohmann::json& json, Probe& probe);
void to_json(nlohmann::json& json, const Run& request);
void from_json(const nlohmann::json& json, Run& request);
void to_json(nlohmann::json& json, const Check& check);
void from_json(const nlohmann::json& json, Check& check);
void from_json(const nlohmann::json& json, Apply& apply);
void from_json(const nlohmann::json& json, Data& data);
void to_json(nlohmann::json& json, const Heartbeat& heartbeat);
void to_json(nlohmann::json& json, const Progress& progress);

}  // namespace attnbench::protocol
