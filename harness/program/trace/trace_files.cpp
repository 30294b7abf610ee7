#include "harness/program/trace/trace_files.hpp"

#include <algorithm>
#include <set>

#include "core/failure.hpp"
#include "core/json_file.hpp"
#include "core/text/printable.hpp"

namespace attnbench::trace {

namespace {

constexpr const char* expected_object =
    "a definition or a workload of FlashInfer's trace, {\"name\", \"op_type\", \"axes\", …} or "
    "{\"definition\", \"workload\"}";

/// A line {definition, workload, …}.
struct TraceLine {
  std::string definition;
  TraceWorkload workload;
  Json solution;
  Json evaluation;
};

}  // namespace

ATTNBENCH_JSON_READER(TraceAxis) {
  JSON_AT(type);
  JSON_MAYBE(value, parent, description);
  json.finish();
  if (value.type != "const" && value.type != "var") {
    throw SchemaError("/type", "expected const or var, found \"" + value.type + "\"");
  }
  if (value.type == "const" && value.value.value_or(0) < 1) {
    throw SchemaError("/value", "expected a whole number above 0, the size of the axis");
  }
}

ATTNBENCH_JSON_READER(TraceTensor) {
  JSON_AT(shape, dtype);
  JSON_IGNORE_REST;
}

ATTNBENCH_JSON_READER(TraceDefinition) {
  JSON_AT(name, op_type, axes, inputs, outputs);
  JSON_MAYBE(tags, description, constraints, reference);
  json.finish();
}

ATTNBENCH_JSON_READER(TraceInput) {
  JSON_AT(type);
  JSON_MAYBE(value, path, tensor_key);
  json.finish();
}

ATTNBENCH_JSON_READER(TraceWorkload) {
  JSON_AT(uuid, axes, inputs);
  json.finish();
  for (const auto& [axis, size] : value.axes) {
    if (size < 0) {
      throw SchemaError("/axes/" + axis,
                        "expected a whole number of at least 0, found " + std::to_string(size));
    }
  }
}

namespace {

ATTNBENCH_JSON_READER(TraceLine) {
  JSON_AT(definition, workload);
  JSON_MAYBE(solution, evaluation);
  json.finish();
}

class Reading {
 public:
  void add(const std::string& file) {
    const std::string content = read_file(file, expected_object);
    if (std::filesystem::path(file).extension() != ".jsonl") {
      return add(parse_json(content, file, expected_object), file, file);
    }
    std::size_t line = 1;
    for (std::size_t begin = 0; begin < content.size(); ++line) {
      const std::size_t end = std::min(content.find('\n', begin), content.size());
      const std::string_view text = std::string_view(content).substr(begin, end - begin);
      begin = end + 1;
      if (text.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      add(parse_json(text, file, expected_object, {}, line), file,
          file + ":" + std::to_string(line));
    }
  }

  TraceFiles files;

 private:
  void add(const Json& json, const std::string& file, const std::string& place) {
    try {
      if (json.is_object() && json.contains("workload")) {
        auto line = json.get<TraceLine>();
        line.workload.definition = line.definition;
        line.workload.file = file;
        line.workload.place = place;
        // Solutions are evaluated on the same workload again and again.
        if (seen_.insert(line.definition + " " + line.workload.uuid).second) {
          files.workloads.push_back(std::move(line.workload));
        }
      } else if (json.is_object() && json.contains("op_type")) {
        add_definition(json, file, place);
      } else {
        throw SchemaError("", std::string("expected ") + expected_object);
      }
    } catch (const SchemaError& error) {
      std::string what = error.what();
      if (what.find("unknown key") != std::string::npos) {
        what +=
            "; expected those that FlashInfer-Bench documents, as a further one may mean "
            "another operation";
      }
      throw UsageFailure(text::quotable(place) + ": " + text::quotable(what, 400));
    }
  }

  void add_definition(const Json& json, const std::string& file, const std::string& place) {
    auto definition = json.get<TraceDefinition>();
    definition.file = file;
    const auto [known, is_new] = texts_.emplace(definition.name, json);
    if (is_new) {
      files.definitions.push_back(std::move(definition));
    } else if (known->second != json) {
      throw UsageFailure(text::quotable(place) + ": another definition is called \"" +
                         text::quotable(definition.name) +
                         "\", too, and differs; expected one of each name");
    }
  }

  std::set<std::string> seen_;
  std::map<std::string, Json> texts_;  ///< of definitions, by name
};

}  // namespace

std::optional<std::int64_t> TraceDefinition::constant(const std::string& axis) const {
  const auto found = axes.find(axis);
  return found == axes.end() || found->second.type != "const" ? std::nullopt : found->second.value;
}

std::string TraceDefinition::dtype_of(const std::string& input) const {
  const auto found = inputs.find(input);
  return found == inputs.end() ? "" : found->second.dtype;
}

const TraceDefinition* TraceFiles::find(const std::string& name) const {
  const auto found = std::find_if(definitions.begin(), definitions.end(),
                                  [&](const TraceDefinition& one) { return one.name == name; });
  return found == definitions.end() ? nullptr : &*found;
}

TraceFiles read_trace_files(const std::vector<std::string>& files) {
  Reading reading;
  for (const std::string& file : files) reading.add(file);
  return std::move(reading.files);
}

}  // namespace attnbench::trace
