// The protocol between supervisor and worker: versioned JSON lines on a socketpair, never stdout.
//
// A message is an object whose "type" is its name. Each request gets one answer: of its own name
// (record for run), error, or cancelled. Heartbeats and progress come in between, and before the
// answer to hello {loading, plugin} for each plugin.
//
// Supervisor to worker    Hello, Plan, Run, Check, Apply, Probe, Data, Generate, and catalogue,
//                         cancel and bye without members
// Worker to supervisor    HelloAnswer, suite::Catalogue, PlanAnswer, CheckAnswer, ApplyAnswer,
//                         ProbeAnswer, DataAnswer, GenerateAnswer, Heartbeat, Progress, and
//   record     {cell, round, status, reason, detail, started_at, wall_seconds, measured}
//              measured: {timing, memory, check, metrics, chosen, calibration_seconds}
//   cancelled  {cell}       the child was ended
//   error      {message}    the request was not understood, or could not be done
//   bye        {}
//
// Children of the worker speak with it alone, over sockets of their own: progress, done or failed,
// each with the seal that it was given (Channel::seal). The worker holds answers to their schema
// (core/result/result_check.hpp); the supervisor does the same before it appends a record.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/catalogue.hpp"
#include "core/cell.hpp"
#include "core/process_rank.hpp"

namespace attnbench {

/// A plugin as the command line names it: PATH, or WORD=PATH for one whose mechanism NAME is to be
/// called NAME_WORD, so that two builds of a plugin can be loaded side by side. A WORD is
/// lower-case letters, digits and _.
struct PluginName {
  std::string path;
  std::string as;  ///< the WORD; empty = its mechanisms keep their names

  explicit PluginName(const std::string& text);
};

ATTNBENCH_JSON(ProcessRank);

}  // namespace attnbench

namespace attnbench::protocol {

constexpr int version = 1;

/// The name of a message; empty where it has none. Throws nlohmann::json::exception where the
/// message is not an object or its type not a string.
std::string type_of(const nlohmann::json& message);

/// The limits of one child; 0 = no limit.
struct Limits {
  double seconds = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t device_bytes = 0;  ///< on a device with memory of its own
  bool operator==(const Limits&) const = default;
};

/// How often a body is timed, and when that is enough.
struct SamplingRule {
  double relative_interval = 0.01;  ///< stop when the median's interval is within ± this
  int min_samples = 10;
  int max_samples = 2000;
  double warmup_seconds = 0.05;  ///< at least two calls, or one that exceeds max_seconds
  int cold_calls = 8;            ///< most further calls while calls are cold, up to cold_seconds
  double cold_seconds = 30;
  double min_seconds = 0.05;
  double max_seconds = 2.0;  ///< sampling ends with the sample that exceeds this
};

struct Hello {
  int protocol = version;
  std::vector<std::string> plugins;  ///< as run::PluginName reads them
  int threads = 1;
  std::string device = "cpu";  ///< loaded before the first child
};

struct Plan {
  std::vector<Cell> cells;
};

/// The part shared by all requests that a child works on.
struct ChildRequest {
  Limits limits;
  int threads = 0;  ///< 0 = as many as hello said
  std::string log;  ///< file of the child's standard outputs; empty = the worker's
};

/// Asks for the ceilings of a device and the torch part of the machine card.
struct Probe : ChildRequest {
  std::string device = "cpu";
  bool product = false;  ///< one matrix product in place of the ceilings
};

/// Asks for one round of one cell.
struct Run : ChildRequest {
  Cell cell;
  int round = 0;
  std::uint64_t seed = 0;
  bool pinned = true;  ///< whether the child is pinned, to as many CPUs as threads
  SamplingRule measure;
  std::string checkpoint;  ///< folder for a training's checkpoints
  std::string binary;      ///< fingerprint of the worker, its library and the plugins
  std::optional<ProcessRank> process_rank;  ///< absent where one process trains alone
};

/// Asks for the conformance kit.
struct Check : ChildRequest {
  std::string mechanism;       ///< a name or an alias
  std::string implementation;  ///< empty = the alias's own
  std::string pattern;
  std::vector<std::string> dtypes;
  std::string device = "cpu";
  OptionValues options;  ///< over an alias's own and the kit's choices
};

/// Asks for one call on arrays that travel as .npy files.
struct Apply : ChildRequest {
  std::string mechanism;
  std::string implementation = "auto";
  std::string pattern;
  OptionValues options;
  std::map<std::string, std::string> roles;       ///< files
  std::map<std::string, std::string> parameters;  ///< files
  std::string mask;                               ///< file; empty = none
  std::string gradient;  ///< of the output: file, or "ones"; empty = no gradients
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

/// Asks a trained model for bytes after a prompt, or for its cross-entropy on a text, in bits.
struct Generate : ChildRequest {
  Cell cell;
  std::string checkpoint;      ///< the folder of the cell's checkpoints
  std::string binary;          ///< fingerprint of the worker, its library and the plugins
  std::uint64_t run_seed = 0;  ///< seed of the run that trained the model
  std::string prompt;
  std::int64_t bytes = 0;  ///< to generate
  double temperature = 0;  ///< 0 = the likeliest byte each time
  std::uint64_t seed = 0;
  std::string score;          ///< file of the text that is scored, in place of a prompt
  std::int64_t capacity = 0;  ///< tokens that caches of keys have room for; 0 = all there will be
  std::string out;            ///< file to which every generated byte is appended at once
};

struct HelloAnswer {
  int protocol = version;
  int pid = 0;
  Stamp stamp;
  std::vector<PluginSpec> plugins;
};

struct PlanAnswer {
  std::vector<Forecast> cells;  ///< in the request's order
};

/// A float32 product on one thread.
struct Product {
  double flops_per_second = 0;
};

/// The answer to a probe: either ceilings or the rate of the product.
struct ProbeAnswer {
  nlohmann::json ceilings;  ///< numbers by name
  std::optional<Product> product;
  nlohmann::json machine;  ///< torch part of the machine card
};

enum class PropertyStatus { held, broken, not_applicable };
const char* to_string(PropertyStatus status);
/// Throws UsageError.
PropertyStatus property_status_from(const std::string& word);

struct Property {
  std::string name;
  std::string dtype;
  PropertyStatus status = PropertyStatus::not_applicable;
  std::string reason;
  std::optional<double> error;
  std::optional<double> tolerance;
};

/// Any answer of a child: the members that all of them share, and the others in `further`.
struct Answer {
  std::string type;
  std::optional<Status> status;
  std::string reason;
  std::string detail;
  nlohmann::json further = nlohmann::json::object();  ///< the other members
};

/// How the work of a child ended: `wrong` is its own verdict.
struct ChildAnswer {
  Status status = Status::ok;
  std::string reason;
  std::string detail;
};

struct CheckAnswer : ChildAnswer {
  std::string mechanism;
  std::string implementation;
  std::string pattern;
  std::vector<Property> properties;

  int count(PropertyStatus wanted) const;
  /// The property that used up most of its tolerance; null where none has one. Refers to the
  /// answer.
  const Property* closest_to_tolerance() const;
};

/// What the kit found of one implementation, pattern and dtype: a row of the reports of `attnbench
/// check`. Its status is ok, wrong, unsupported, or how the child ended.
struct CheckedRow : CheckAnswer {
  std::string dtype;

  int held() const { return count(PropertyStatus::held); }
  int broken() const { return count(PropertyStatus::broken); }
  int not_applicable() const { return count(PropertyStatus::not_applicable); }
  /// Whether it is broken, crashed or hung; to be unsupported is no failure.
  bool failed() const;
};

struct AppliedRole {
  std::string file;
  std::vector<std::int64_t> shape;
};

struct AppliedParameter {
  std::vector<std::int64_t> shape;
  std::string from;  ///< a file, or "seed"
};

struct ApplyAnswer : ChildAnswer {
  bool refused = false;  ///< the request made no sense
  // Where the status is ok or wrong:
  std::string implementation;
  std::string implementation_reason;
  OptionValues options;
  Problem problem;
  std::map<std::string, AppliedRole> roles;
  std::map<std::string, AppliedParameter> parameters;
  std::optional<nlohmann::json> check;  ///< as a record's; absent where no row was checked
  std::vector<std::string> files;
  Stamp stamp;

  bool ran() const { return status == Status::ok || status == Status::wrong; }
};

struct DataFile {
  std::string file;
  std::int64_t examples = 0;
};

struct DataAnswer : ChildAnswer {
  std::vector<DataFile> files;
};

struct GenerateAnswer : ChildAnswer {
  bool refused = false;  ///< the request made no sense
  // Where the status is ok:
  std::string implementation;
  std::int64_t step = 0;                ///< step of the training after which the weights were saved
  std::int64_t bytes = 0;               ///< bytes generated, or scored
  std::int64_t state_bytes = 0;         ///< of the model's state
  double seconds = 0;                   ///< without loading the model
  std::optional<double> bits_per_byte;  ///< cross-entropy on a text that was scored
  /// Resident memory of the process after its first 10,000 bytes or, where there were fewer, after
  /// all; and at the end.
  std::int64_t early_resident_bytes = 0;
  std::int64_t resident_bytes = 0;
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
ATTNBENCH_JSON(Limits);
ATTNBENCH_JSON(SamplingRule);
ATTNBENCH_JSON(Hello);
ATTNBENCH_JSON(Plan);
ATTNBENCH_JSON(Probe);
ATTNBENCH_JSON(Run);
ATTNBENCH_JSON(Check);
ATTNBENCH_JSON(Apply);
ATTNBENCH_JSON(Data);
ATTNBENCH_JSON(Generate);
ATTNBENCH_JSON(HelloAnswer);
ATTNBENCH_JSON(PlanAnswer);
ATTNBENCH_JSON(Product);
ATTNBENCH_JSON(ProbeAnswer);
ATTNBENCH_JSON(Answer);
ATTNBENCH_JSON(Property);
ATTNBENCH_JSON(CheckAnswer);
/// The members, with held, broken and not_applicable as numbers, which are not read.
ATTNBENCH_JSON(CheckedRow);
ATTNBENCH_JSON(AppliedRole);
ATTNBENCH_JSON(AppliedParameter);
ATTNBENCH_JSON(ApplyAnswer);
ATTNBENCH_JSON(DataFile);
ATTNBENCH_JSON(DataAnswer);
ATTNBENCH_JSON(GenerateAnswer);
ATTNBENCH_JSON(Heartbeat);
ATTNBENCH_JSON(Progress);

}  // namespace attnbench::protocol
