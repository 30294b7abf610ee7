// A suite of the operations of a trace that are attention of a kind that attnbench measures.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/program/trace/trace_files.hpp"

namespace attnbench::trace {

/// Workloads, or a definition with all of its own, that are not in the suite.
struct LeftOut {
  std::string definition;
  std::size_t workloads = 0;  ///< 0 where it has none
  std::string reason;
};

struct TraceSuite {
  nlohmann::ordered_json suite;  ///< without tasks where nothing could be taken
  std::size_t taken = 0;         ///< workloads
  std::size_t sizes = 0;         ///< different ones among them, each a cell of every mechanism
  std::vector<LeftOut> left_out;
};

/// The suite as a file: an object's members on lines of their own, lists on one.
std::string suite_text(const nlohmann::ordered_json& suite);

/// One task for each definition that is taken, with a zip of its workloads' sizes:
/// - a prefill (gqa_ragged, gqa_paged with `causal` in its name) is a cell of `kernel`: of one
///   sequence after a past, of several of one form, or of several lengths (`lengths`);
/// - a decoding step (gqa_paged with a batch_size) is one of `decode`: its keys are those of the
///   context and of the token itself.
/// The mechanism is softmax, which they compute. Lengths of a batch of several are read from the
/// safetensors that a workload names, relative to a folder above its file; where these are not
/// there, it is left out: no length is guessed. Throws UsageFailure where heads do not divide.
TraceSuite suite_of(const TraceFiles& files);

}  // namespace attnbench::trace
