// Files of FlashInfer's trace: definitions of operations, and workloads with their sizes.
//
// As FlashInfer-Bench documents them (docs/flashinfer_trace; the format has no version): a
// definition is a JSON file {name, op_type, axes, inputs, outputs, …} whose axes are constants or
// vary; a workload is a line of a JSONL file {definition, workload: {uuid, axes, inputs}, …}, which
// may also hold a solution and its evaluation. Keys that are not documented are refused: they may
// change what is asked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/json_object.hpp"

namespace attnbench::trace {

struct TraceAxis {
  std::string type;                   ///< const or var
  std::optional<std::int64_t> value;  ///< of a const, above 0
  Json parent;
  Json description;
};

struct TraceTensor {
  Json shape;  ///< names of axes; null of a scalar
  std::string dtype;
};

struct TraceDefinition {
  std::string name;
  std::string op_type;
  std::map<std::string, TraceAxis> axes;
  std::map<std::string, TraceTensor> inputs;
  std::map<std::string, TraceTensor> outputs;
  Json tags;
  Json description;
  Json constraints;
  Json reference;
  std::string file;  ///< that it is from; not read

  bool has_axis(const std::string& axis) const { return axes.count(axis) != 0; }
  /// The value of a constant axis; nothing where it varies or is not there.
  std::optional<std::int64_t> constant(const std::string& axis) const;
  /// The dtype of an input; empty where there is none.
  std::string dtype_of(const std::string& input) const;
};

/// Where the numbers of an input are from.
struct TraceInput {
  std::string type;  ///< random, scalar or safetensors
  Json value;
  std::string path;
  std::string tensor_key;
};

struct TraceWorkload {
  std::string uuid;
  std::map<std::string, std::int64_t> axes;
  std::map<std::string, TraceInput> inputs;
  std::string definition;      ///< its name
  std::filesystem::path file;  ///< that it is from
  std::string place;           ///< "FILE:LINE"
};

struct TraceFiles {
  std::vector<TraceDefinition> definitions;  ///< in the order of the files
  std::vector<TraceWorkload> workloads;      ///< each uuid once

  const TraceDefinition* find(const std::string& name) const;
};

ATTNBENCH_JSON(TraceAxis);
ATTNBENCH_JSON(TraceTensor);
ATTNBENCH_JSON(TraceDefinition);
ATTNBENCH_JSON(TraceInput);
ATTNBENCH_JSON(TraceWorkload);

/// Reads definitions and workloads, one object a file or one a line (.jsonl). Throws UsageFailure
/// naming file, line, pointer and what was expected: for what is neither, a key that is missing or
/// unknown, constants of 0 or less, negative sizes, and two definitions of one name that differ.
TraceFiles read_trace_files(const std::vector<std::string>& files);

}  // namespace attnbench::trace
