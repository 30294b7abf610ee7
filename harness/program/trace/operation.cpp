#include "harness/program/trace/operation.hpp"

#include <algorithm>
#include <cmath>

#include "core/failure.hpp"
#include "core/sizes.hpp"
#include "core/text/printable.hpp"
#include "harness/program/trace/safetensors.hpp"

namespace attnbench::trace {
namespace {

namespace fs = std::filesystem;

using Lengths = std::vector<std::int64_t>;

bool begins(const std::string& text, const char* with) { return text.rfind(with, 0) == 0; }

/// Why operations of this type are none of ours; empty for those that may be.
std::string refusal_of(const std::string& op_type) {
  if (begins(op_type, "gqa_ragged") || begins(op_type, "gqa_paged")) return "";
  if (begins(op_type, "mla_")) return "multi-head latent attention is not taken from traces yet";
  if (begins(op_type, "dsa_") || begins(op_type, "nsa_")) {
    return "attention to chosen tokens is not taken from traces";
  }
  if (op_type == "gdn") return "gated delta nets are not taken from traces";
  return "it is no attention";
}

std::int64_t constant(const TraceDefinition& definition, const char* axis) {
  const std::optional<std::int64_t> value = definition.constant(axis);
  if (!value) throw NotTaken(std::string("its axis ") + axis + " is no constant");
  if (*value > max_size) {
    throw NotTaken(std::string("its axis ") + axis + " is greater than " +
                   std::to_string(max_size));
  }
  return *value;
}

std::string dtype_of(const TraceDefinition& definition) {
  const std::string dtype = definition.dtype_of("q");
  for (const char* keys : {"k", "v", "k_cache", "v_cache"}) {
    const std::string other = definition.dtype_of(keys);
    if (!other.empty() && other != dtype) {
      throw NotTaken("its queries are " + dtype + " and its " + keys + " is " + other +
                     ", and all inputs of a mix have one dtype");
    }
  }
  for (const char* known : {"float32", "float16", "bfloat16"}) {
    if (dtype == known) return dtype;
  }
  throw NotTaken("its inputs are " + (dtype.empty() ? "of no known dtype" : dtype) +
                 ", and tasks have float32, float16 and bfloat16");
}

/// The sizes of one workload, as its axes and lists say them.
class Reader {
 public:
  Reader(const Operation& operation, const TraceWorkload& workload)
      : operation_(operation), workload_(workload) {}

  OperationSizes prefill() {
    const Lengths queries = lengths("qo_indptr", axis("total_q"), sequences());
    const Lengths keys = key_lengths();
    OperationSizes sizes;
    std::optional<std::int64_t> past;
    for (std::size_t i = 0; i < queries.size(); ++i) {
      if (queries[i] == 0) continue;  // an operation does nothing for it
      if (keys[i] < queries[i]) {
        throw NotTaken("a sequence has " + std::to_string(queries[i]) + " queries and " +
                       std::to_string(keys[i]) + " keys, so that some queries see none");
      }
      const std::int64_t before = keys[i] - queries[i];
      if (past && *past != before) {
        throw NotTaken("its sequences come after pasts of several lengths, which no task has");
      }
      past = before;
      sizes.lengths.push_back(queries[i]);
    }
    if (!past) throw NotTaken("it has no queries");
    sizes.past = *past;
    const auto differs = [&](std::int64_t length) { return length != sizes.lengths.front(); };
    if (sizes.past > 0 && std::any_of(sizes.lengths.begin(), sizes.lengths.end(), differs)) {
      throw NotTaken("its sequences have several lengths after a past, which no task has");
    }
    return sizes;
  }

  /// A step sees its own token, which is no part of the context.
  OperationSizes decode() {
    if (axis("batch_size") != sequences()) {
      throw NotTaken("its batch_size is not the number of its sequences");
    }
    OperationSizes sizes;
    for (const std::int64_t keys : key_lengths()) {
      if (keys < 2) throw NotTaken("a sequence has no context before its token");
      sizes.lengths.push_back(keys - 1);
    }
    return sizes;
  }

  double scale() const {
    const auto input = workload_.inputs.find("sm_scale");
    if (input == workload_.inputs.end() || input->second.type != "scalar") return 0;
    if (!input->second.value.is_number()) {
      throw NotTaken("its sm_scale is no number");
    }
    const double scale = input->second.value.get<double>();
    if (!(scale > 0 && std::isfinite(scale))) throw NotTaken("its sm_scale is not above 0");
    const double usual = 1 / std::sqrt(static_cast<double>(operation_.head_dim));
    constexpr double rounded = 1e-6;  // of a float32
    return std::abs(scale / usual - 1) < rounded ? 0 : scale;
  }

 private:
  std::int64_t axis(const char* name) const {
    const auto found = workload_.axes.find(name);
    if (found == workload_.axes.end()) {
      throw NotTaken(std::string("it does not say its axis ") + name);
    }
    if (found->second < 1) throw NotTaken(std::string("its axis ") + name + " is 0");
    return found->second;
  }

  std::int64_t sequences() const {
    const std::int64_t count = axis("len_indptr") - 1;
    if (count < 1) throw NotTaken("it has no sequence");
    if (count > max_size) {
      throw NotTaken("it has more than " + std::to_string(max_size) + " sequences");
    }
    return count;
  }

  /// Tokens of keys, where they are in pages by these.
  Lengths key_lengths() {
    if (!operation_.page_size) return lengths("kv_indptr", axis("total_kv"), sequences());
    Lengths pages = lengths("kv_indptr", axis("num_kv_indices"), sequences());
    if (*operation_.page_size == 1) return pages;
    const Lengths last = list("kv_last_page_len", sequences());
    for (std::size_t i = 0; i < pages.size(); ++i) {
      if (last[i] < 0 || last[i] > *operation_.page_size) {
        throw NotTaken("its kv_last_page_len is no length of a page's tokens");
      }
      if (pages[i] > longest_length) throw too_long();
      pages[i] = pages[i] == 0 ? 0 : (pages[i] - 1) * *operation_.page_size + last[i];
    }
    return pages;
  }

  /// The differences of a list of offsets that ends with `total`.
  Lengths lengths(const char* indptr, std::int64_t total, std::int64_t count) {
    if (total > longest_length * count) throw too_long();
    if (count == 1) return {total};
    const Lengths offsets = list(indptr, count + 1);
    Lengths each;
    for (std::size_t i = 1; i < offsets.size(); ++i) each.push_back(offsets[i] - offsets[i - 1]);
    const bool rises =
        std::all_of(each.begin(), each.end(), [](std::int64_t one) { return one >= 0; });
    if (offsets.front() != 0 || offsets.back() != total || !rises) {
      throw NotTaken(std::string("its ") + indptr + " is no list of offsets from 0 to " +
                     std::to_string(total));
    }
    if (*std::max_element(each.begin(), each.end()) > longest_length) throw too_long();
    return each;
  }

  Lengths list(const char* name, std::int64_t count) {
    const auto input = workload_.inputs.find(name);
    const bool stored = input != workload_.inputs.end() && input->second.type == "safetensors";
    if (!stored) {
      throw NotTaken(std::string("it does not say the lengths of its sequences: its ") + name +
                     " is not stored");
    }
    const fs::path file = found_above(input->second.path);
    if (file.empty()) {
      throw NotTaken(std::string("the lengths of its sequences, its ") + name +
                     ", are in a file that is not there, of the folder " +
                     fs::path(input->second.path).parent_path().lexically_normal().string());
    }
    Lengths numbers = whole_numbers(file, input->second.tensor_key);
    if (static_cast<std::int64_t>(numbers.size()) != count) {
      throw NotTaken(std::string("its ") + name + " has " + std::to_string(numbers.size()) +
                     " numbers for " + std::to_string(count));
    }
    return numbers;
  }

  /// The file of a path relative to the trace's root, a folder above the workload's; empty where
  /// there is none.
  fs::path found_above(const std::string& path) const {
    std::error_code ignored;
    if (path.empty()) return {};
    fs::path folder = fs::absolute(workload_.file, ignored).parent_path();
    for (;; folder = folder.parent_path()) {
      fs::path file = folder / path;
      if (fs::is_regular_file(file, ignored)) return file;
      if (!folder.has_relative_path()) return {};
    }
  }

  static NotTaken too_long() {
    return NotTaken("a sequence has more than " + std::to_string(longest_length) + " tokens");
  }

  const Operation& operation_;
  const TraceWorkload& workload_;
};

}  // namespace

Operation operation_of(const TraceDefinition& definition) {
  if (const std::string why = refusal_of(definition.op_type); !why.empty()) throw NotTaken(why);
  Operation operation;
  const bool paged = begins(definition.op_type, "gqa_paged");
  if (definition.has_axis("batch_size")) {
    operation.stage = Stage::decode;
  } else if (!definition.has_axis("total_q")) {
    throw NotTaken("it has neither the axis total_q of a prefill nor the batch_size of a step");
  } else if (definition.name.find("causal") == std::string::npos) {
    throw NotTaken("its name does not say that it is causal");
  }
  operation.heads = constant(definition, "num_qo_heads");
  operation.kv_heads = constant(definition, "num_kv_heads");
  operation.head_dim = constant(definition, "head_dim");
  if (paged) operation.page_size = constant(definition, "page_size");
  if (operation.heads % operation.kv_heads != 0) {
    throw UsageFailure(text::quotable(definition.file) +
                       ": /axes/num_kv_heads: " + std::to_string(operation.kv_heads) +
                       " does not divide the " + std::to_string(operation.heads) +
                       " of num_qo_heads; expected key heads that as many query heads share each");
  }
  operation.dtype = dtype_of(definition);
  return operation;
}

OperationSizes sizes_of(const Operation& operation, const TraceWorkload& workload) {
  Reader reader(operation, workload);
  OperationSizes sizes = operation.stage == Stage::prefill ? reader.prefill() : reader.decode();
  sizes.scale = reader.scale();
  return sizes;
}

}  // namespace attnbench::trace
