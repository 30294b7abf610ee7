#include "harness/program/trace/trace_suite.hpp"

#include <algorithm>
#include <cctype>
#include <map>

#include "core/sequence_lengths.hpp"
#include "harness/program/trace/operation.hpp"

namespace attnbench::trace {
namespace {

using Ordered = nlohmann::ordered_json;

/// Letters, digits, _, - and . alone, as names of suites have them.
std::string suite_name(const TraceFiles& files) {
  constexpr std::size_t longest = 80;
  std::string name = files.definitions.size() == 1 ? files.definitions.front().name : "trace";
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return !std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.'; },
      '-');
  if (name.empty() || !std::isalnum(static_cast<unsigned char>(name.front())))
    name = "trace" + name;
  return name.substr(0, longest);
}

std::string counted(std::size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

/// The settings that all workloads share.
Ordered shared_settings(const Operation& operation) {
  Ordered set = {{"heads", operation.heads},
                 {"kv_heads", operation.kv_heads},
                 {"head_dim", operation.head_dim},
                 {"dtype", operation.dtype}};
  if (operation.stage == Stage::decode) {
    set["steps"] = 1;
  } else {
    set["pattern"] = "causal";
    set["pass"] = "forward";
  }
  return set;
}

/// A list for each setting by which the sizes differ, or that is not usual.
Ordered zip_of(const Operation& operation, const std::vector<OperationSizes>& all) {
  Ordered zip = {{"batch", Ordered::array()}, {"length", Ordered::array()}};
  Ordered lengths = Ordered::array(), past = Ordered::array(), scale = Ordered::array();
  bool ragged = false, continues = false, scaled = false;
  for (const OperationSizes& one : all) {
    const std::int64_t longest = *std::max_element(one.lengths.begin(), one.lengths.end());
    const std::int64_t shortest = *std::min_element(one.lengths.begin(), one.lengths.end());
    zip["batch"].push_back(one.lengths.size());
    zip["length"].push_back(longest);
    lengths.push_back(shortest == longest ? "" : sequence_lengths_text(one.lengths));
    past.push_back(one.past);
    scale.push_back(one.scale);
    ragged = ragged || shortest != longest;
    continues = continues || one.past > 0;
    scaled = scaled || one.scale > 0;
  }
  if (ragged) zip["lengths"] = lengths;
  if (continues && operation.stage == Stage::prefill) zip["past"] = past;
  if (scaled) zip["scale"] = scale;
  return zip;
}

class Making {
 public:
  explicit Making(const TraceFiles& files) : files_(files) {}

  TraceSuite made() {
    for (const TraceDefinition& definition : files_.definitions) add(definition);
    std::map<std::string, std::size_t> unknown;
    for (const TraceWorkload& workload : files_.workloads) {
      if (files_.find(workload.definition) == nullptr) ++unknown[workload.definition];
    }
    for (const auto& [name, count] : unknown) {
      made_.left_out.push_back({name, count, "its definition is in none of the files"});
    }
    made_.suite = {{"name", suite_name(files_)},
                   {"title", "Attention of a FlashInfer trace: " + counted(made_.sizes, "size") +
                                 " of " + counted(made_.taken, "workload")}};
    made_.suite["notes"] = notes();
    made_.suite["tasks"] = tasks_;
    made_.suite["mechanisms"] = {{"softmax", Ordered::object()}};
    return std::move(made_);
  }

 private:
  void add(const TraceDefinition& definition) {
    std::vector<const TraceWorkload*> own;
    for (const TraceWorkload& workload : files_.workloads) {
      if (workload.definition == definition.name) own.push_back(&workload);
    }
    try {
      const Operation operation = operation_of(definition);
      if (own.empty()) throw NotTaken("it has no workload in these files");
      add(definition, operation, own);
    } catch (const NotTaken& why) {
      made_.left_out.push_back({definition.name, own.size(), why.what()});
    }
  }

  void add(const TraceDefinition& definition, const Operation& operation,
           const std::vector<const TraceWorkload*>& workloads) {
    std::vector<OperationSizes> all;
    std::map<std::string, std::size_t> reasons;
    for (const TraceWorkload* const workload : workloads) {
      try {
        const OperationSizes sizes = sizes_of(operation, *workload);
        ++made_.taken;
        if (std::find(all.begin(), all.end(), sizes) == all.end()) all.push_back(sizes);
      } catch (const NotTaken& why) {
        ++reasons[why.what()];
      }
    }
    for (const auto& [reason, count] : reasons) {
      made_.left_out.push_back({definition.name, count, reason});
    }
    if (all.empty()) return;
    made_.sizes += all.size();
    const bool decodes = operation.stage == Stage::decode;
    tasks_[definition.name] = {{"task", decodes ? "decode" : "kernel"},
                               {"set", shared_settings(operation)},
                               {"zip", zip_of(operation, all)}};
  }

  std::string notes() const {
    std::size_t left = 0;
    for (const LeftOut& one : made_.left_out) left += one.workloads;
    std::string text =
        "Each task is an operation of the trace, without its log-sum-exp. Keys in pages are "
        "measured in one piece, and batches of several lengths padded.";
    if (left > 0) text += " Left out: " + counted(left, "workload") + ".";
    return text;
  }

  const TraceFiles& files_;
  TraceSuite made_;
  Ordered tasks_ = Ordered::object();
};

void append(std::string& text, const Ordered& value, std::size_t depth) {
  if (!value.is_object() || value.empty()) {
    text += value.dump();
    return;
  }
  const auto line = [&](std::size_t at) { text += "\n" + std::string(2 * at, ' '); };
  text += "{";
  for (const auto& [key, member] : value.items()) {
    if (text.back() != '{') text += ",";
    line(depth + 1);
    text += Ordered(key).dump() + ": ";
    append(text, member, depth + 1);
  }
  line(depth);
  text += "}";
}

}  // namespace

std::string suite_text(const Ordered& suite) {
  std::string text;
  append(text, suite, 0);
  return text + "\n";
}

TraceSuite suite_of(const TraceFiles& files) { return Making(files).made(); }

}  // namespace attnbench::trace
