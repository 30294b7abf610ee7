// Operations of a trace as settings of tasks.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/program/trace/trace_files.hpp"

namespace attnbench::trace {

/// Why an operation or a workload is left out, as a clause for a message.
class NotTaken : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class Stage { prefill, decode };

/// What the constants of a definition say.
struct Operation {
  Stage stage = Stage::prefill;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 1;
  std::optional<std::int64_t> page_size;  ///< of keys in pages
  std::string dtype;
};

/// The sizes of a workload: one sequence, or a batch of sequences that differ in length alone.
struct OperationSizes {
  std::int64_t past = 0;
  std::vector<std::int64_t> lengths;  ///< of each sequence: new tokens, or tokens of context
  double scale = 0;                   ///< of the scores; 0 = 1/sqrt(head_dim)
  bool operator==(const OperationSizes&) const = default;
};

/// Throws NotTaken for what is no attention of a kind that tasks have, and UsageFailure where heads
/// do not divide.
Operation operation_of(const TraceDefinition& definition);

/// Throws NotTaken where a workload does not say its lengths, or has none that a task measures.
OperationSizes sizes_of(const Operation& operation, const TraceWorkload& workload);

}  // namespace attnbench::trace
