#include "core/schema/result_check.hpp"

#include <array>
#include <nlohmann/json.hpp>

#include "core/failure.hpp"
#include "core/schema/values_check.hpp"
#include "core/text/printable.hpp"
#include "core/result/record.hpp"

namespace attnbench::result {
namespace {

enum class Kind { object, array, text, number, integer, boolean };

struct Part {
  const char* name;
  Kind kind;
  bool required;
};

const char* words(Kind kind) {
  switch (kind) {
    case Kind::object:
      return "an object";
    case Kind::array:
      return "an array";
    case Kind::text:
      return "a string";
    case Kind::number:
      return "a number";
    case Kind::integer:
      return "an integer";
    case Kind::boolean:
      return "true or false";
  }
  return "";
}

bool is(const Json& value, Kind kind) {
  switch (kind) {
    case Kind::object:
      return value.is_object();
    case Kind::array:
      return value.is_array();
    case Kind::text:
      return value.is_string();
    case Kind::number:
      return value.is_number();
    case Kind::integer:
      return value.is_number_integer();
    case Kind::boolean:
      return value.is_boolean();
  }
  return false;
}

/// Walks the document; knows the file that its messages name.
class Form {
 public:
  explicit Form(std::string file) : file_(std::move(file)) {}

  [[noreturn]] void fail(const std::string& pointer, const std::string& expected) const {
    throw UsageFailure(quotable(file_) + ": " + (pointer.empty() ? "/" : quotable(pointer)) +
                       ": expected " + quotable(expected, 300) +
                       "; is it a result.json that attnbench wrote?");
  }

  template <std::size_t count>
  void parts(const Json& object, const std::string& pointer,
             const std::array<Part, count>& expected) const {
    if (!object.is_object()) fail(pointer, "an object");
    for (const Part& part : expected) {
      const std::string place = pointer + "/" + part.name;
      if (!object.contains(part.name)) {
        if (part.required) fail(place, std::string(words(part.kind)) + ", found nothing");
        continue;
      }
      if (!is(object[part.name], part.kind)) fail(place, words(part.kind));
    }
  }

  void document(const Json& result) const;

 private:
  void suite(const Json& suite) const;
  void cell(const Json& cell, const std::string& pointer) const;
  void timing(const Json& timing, const std::string& pointer) const;
  void samples(const Json& round, const std::string& pointer) const;
  void crossover(const Json& crossover, const std::string& pointer) const;
  void training(const Json& cell, const std::string& pointer) const;
  void columns(const Json& table, const std::string& pointer,
               const std::array<const char*, 3>& names) const;
  void seconds(const Json& value, const std::string& pointer) const;
  void numbers(const Json& object, const std::string& pointer) const;
  void values(const Json& value, const std::string& pointer) const;
  void machine(const Json& machine) const;

  std::string file_;
};

void Form::document(const Json& result) const {
  parts(result, "",
        std::array<Part, 3>{{{"context", Kind::object, true},
                             {"benchmarks", Kind::array, true},
                             {"attnbench", Kind::object, true}}});
  const Json& ours = result["attnbench"];
  parts(ours, "/attnbench",
        std::array<Part, 7>{{{"schema", Kind::integer, true},
                             {"suite", Kind::object, true},
                             {"run", Kind::object, true},
                             {"machine", Kind::object, true},
                             {"ceilings", Kind::object, true},
                             {"provenance", Kind::object, true},
                             {"cells", Kind::array, true}}});
  if (ours["schema"] != 1) {
    fail("/attnbench/schema",
         "1, found " + ours["schema"].dump() + ": another version of attnbench wrote it");
  }
  values(ours["run"], "/attnbench/run");
  values(ours["suite"], "/attnbench/suite");
  suite(ours["suite"]);
  parts(ours["run"], "/attnbench/run",
        std::array<Part, 5>{{{"command", Kind::text, false},
                             {"state", Kind::text, false},
                             {"threads", Kind::integer, false},
                             {"rounds", Kind::integer, false},
                             {"wall_seconds", Kind::number, false}}});
  machine(ours["machine"]);
  for (const auto& [device, ceilings] : ours["ceilings"].items()) {
    const std::string place = "/attnbench/ceilings/" + device;
    if (!ceilings.is_object()) fail(place, "an object");
    for (const auto& [name, rate] : ceilings.items()) {
      const bool rated =
          name.find("_per_second") != name.npos || name.find("_seconds") != name.npos;
      if (rated && !rate.is_number()) fail(place + "/" + name, "a number");
    }
  }
  for (std::size_t i = 0; i < ours["cells"].size(); ++i) {
    const std::string place = "/attnbench/cells/" + std::to_string(i);
    cell(ours["cells"][i], place);
    values(ours["cells"][i], place);
  }
}

void Form::suite(const Json& suite) const {
  const std::string place = "/attnbench/suite";
  parts(suite, place,
        std::array<Part, 6>{{{"name", Kind::text, false},
                             {"title", Kind::text, false},
                             {"source", Kind::text, false},
                             {"published", Kind::text, false},
                             {"tasks", Kind::object, false},
                             {"labels", Kind::array, false}}});
  const Json tasks = suite.value("tasks", Json::object());
  for (const auto& [label, task] : tasks.items()) {
    parts(task, place + "/tasks/" + label,
          std::array<Part, 3>{{{"task", Kind::text, false},
                               {"axis", Kind::text, false},
                               {"figures", Kind::array, false}}});
  }
  std::size_t index = 0;
  for (const Json& label : suite.value("labels", Json::array())) {
    if (!label.is_string()) fail(place + "/labels/" + std::to_string(index), "a string");
    ++index;
  }
}

void Form::cell(const Json& cell, const std::string& pointer) const {
  parts(cell, pointer,
        std::array<Part, 19>{{{"id", Kind::text, true},
                              {"label", Kind::text, true},
                              {"task", Kind::text, true},
                              {"task_label", Kind::text, false},
                              {"mechanism", Kind::text, true},
                              {"implementation", Kind::text, false},
                              {"device", Kind::text, false},
                              {"options", Kind::object, true},
                              {"settings", Kind::object, true},
                              {"problem", Kind::object, false},
                              {"status", Kind::text, true},
                              {"reason", Kind::text, false},
                              {"primary", Kind::text, false},
                              {"timing", Kind::object, false},
                              {"memory", Kind::object, false},
                              {"metrics", Kind::object, false},
                              {"crossover", Kind::object, false},
                              {"growth", Kind::object, false},
                              {"roofline", Kind::object, false}}});
  if (!status_from(cell["status"].get<std::string>())) {
    fail(pointer + "/status",
         "one of ok, wrong, disturbed, unsupported, skipped, out_of_memory, timeout, "
         "crashed, error, found " +
             cell["status"].dump());
  }
  if (cell.contains("memory")) numbers(cell["memory"], pointer + "/memory");
  if (cell.contains("roofline")) {
    parts(cell["roofline"], pointer + "/roofline",
          std::array<Part, 3>{{{"floor_seconds", Kind::number, true},
                               {"bound", Kind::text, true},
                               {"share", Kind::number, true}}});
  }
  if (cell.contains("crossover")) crossover(cell["crossover"], pointer + "/crossover");
  if (cell.contains("training")) training(cell, pointer);
  if (!cell.contains("timing")) return;
  for (const auto& [what, value] : cell["timing"].items()) {
    timing(value, pointer + "/timing/" + what);
  }
  if (!cell.contains("primary")) fail(pointer + "/primary", "the name of a timing, found nothing");
  if (cell["status"] == "ok" && cell["timing"].empty()) {
    fail(pointer + "/timing", "at least one timing");
  }
  if (!cell["timing"].contains(cell["primary"].get<std::string>())) {
    fail(pointer + "/primary", "the name of a timing, found " + cell["primary"].dump());
  }
}

void Form::timing(const Json& timing, const std::string& pointer) const {
  parts(timing, pointer,
        std::array<Part, 7>{{{"median_seconds", Kind::number, true},
                             {"disturbed", Kind::boolean, false},
                             {"low_seconds", Kind::number, true},
                             {"high_seconds", Kind::number, true},
                             {"minimum_seconds", Kind::number, false},
                             {"calibrated_median_seconds", Kind::number, false},
                             {"rounds", Kind::array, true}}});
  for (const char* name : {"median_seconds", "low_seconds", "high_seconds"}) {
    seconds(timing[name], pointer + "/" + name);
  }
  for (std::size_t i = 0; i < timing["rounds"].size(); ++i) {
    parts(timing["rounds"][i], pointer + "/rounds/" + std::to_string(i),
          std::array<Part, 8>{{{"median_seconds", Kind::number, true},
                               {"calibration_seconds", Kind::number, false},
                               {"samples_seconds", Kind::array, false},
                               {"samples_cpu_share", Kind::array, false},
                               {"samples_switches", Kind::array, false},
                               {"preempted", Kind::array, false},
                               {"disturbed", Kind::boolean, false},
                               {"disturbed_by", Kind::text, false}}});
    seconds(timing["rounds"][i]["median_seconds"],
            pointer + "/rounds/" + std::to_string(i) + "/median_seconds");
    samples(timing["rounds"][i], pointer + "/rounds/" + std::to_string(i));
  }
}

/// What is beside the samples belongs to one each; what was preempted is one of them.
void Form::samples(const Json& round, const std::string& pointer) const {
  const std::size_t count = round.value("samples_seconds", Json::array()).size();
  for (const char* name : {"samples_seconds", "samples_cpu_share", "samples_switches"}) {
    const Json beside = round.value(name, Json::array());
    if (round.contains(name) && beside.size() != count) {
      fail(pointer + "/" + name, "as many numbers as samples_seconds");
    }
    for (const Json& number : beside) {
      if (!number.is_number()) fail(pointer + "/" + name, "numbers");
    }
  }
  for (const Json& index : round.value("preempted", Json::array())) {
    const bool whole = index.is_number_integer() && index.get<std::int64_t>() >= 0;
    if (!whole || index.get<std::size_t>() >= count) {
      fail(pointer + "/preempted", "indices of samples_seconds");
    }
  }
}

void Form::crossover(const Json& crossover, const std::string& pointer) const {
  parts(crossover, pointer,
        std::array<Part, 9>{{{"verdict", Kind::text, true},
                             {"length", Kind::number, false},
                             {"low", Kind::number, false},
                             {"high", Kind::number, false},
                             {"length_minimum", Kind::number, true},
                             {"length_maximum", Kind::number, true},
                             {"against", Kind::text, true},
                             {"implementation", Kind::text, true},
                             {"rounds", Kind::array, true}}});
  if (crossover["verdict"] == "found" && !crossover.contains("length")) {
    fail(pointer + "/length", "a number, found nothing");
  }
}

/// As many numbers in each.
void Form::columns(const Json& table, const std::string& pointer,
                   const std::array<const char*, 3>& names) const {
  parts(table, pointer,
        std::array<Part, 3>{{{names[0], Kind::array, true},
                             {names[1], Kind::array, true},
                             {names[2], Kind::array, true}}});
  for (const char* name : names) {
    if (table[name].size() != table[names[0]].size()) {
      fail(pointer + "/" + name, std::string("as many numbers as ") + names[0]);
    }
    for (const Json& number : table[name]) {
      if (!number.is_number()) fail(pointer + "/" + name, "numbers");
    }
  }
}

/// What the selection and the figures of training read.
void Form::training(const Json& cell, const std::string& pointer) const {
  const Json& training = cell["training"];
  const std::string place = pointer + "/training";
  parts(training, place,
        std::array<Part, 3>{{{"curve", Kind::array, true},
                             {"test", Kind::array, true},
                             {"look_back", Kind::object, true}}});
  for (std::size_t i = 0; i < training["curve"].size(); ++i) {
    parts(training["curve"][i], place + "/curve/" + std::to_string(i),
          std::array<Part, 4>{{{"epoch", Kind::number, true},
                               {"loss", Kind::number, true},
                               {"train_accuracy", Kind::number, true},
                               {"validation_accuracy", Kind::number, true}}});
  }
  for (std::size_t i = 0; i < training["test"].size(); ++i) {
    parts(training["test"][i], place + "/test/" + std::to_string(i),
          std::array<Part, 5>{{{"segment", Kind::text, true},
                               {"questions", Kind::number, true},
                               {"accuracy", Kind::number, true},
                               {"wrong_from_context", Kind::number, true},
                               {"wrong_from_elsewhere", Kind::number, true}}});
  }
  columns(training["look_back"], place + "/look_back", {"distances", "questions", "right"});
  if (training.contains("reach_line")) {
    columns(training["reach_line"], place + "/reach_line", {"keys", "state_bytes", "reach"});
  }
  parts(cell.value("metrics", Json()), pointer + "/metrics",
        std::array<Part, 3>{{{"accuracy", Kind::number, true},
                             {"validation_accuracy", Kind::number, true},
                             {"train_accuracy", Kind::number, true}}});
  parts(cell["settings"], pointer + "/settings",
        std::array<Part, 1>{{{"learning_rate", Kind::number, true}}});
}

void Form::numbers(const Json& object, const std::string& pointer) const {
  for (const auto& [name, value] : object.items()) {
    const bool bytes = name.size() > 6 && name.compare(name.size() - 6, 6, "_bytes") == 0;
    if (bytes && !value.is_number()) fail(pointer + "/" + name, "a number");
  }
}

/// What nothing took: logarithms and ratios of it are not to be drawn.
void Form::seconds(const Json& value, const std::string& pointer) const {
  constexpr double least = 1e-12;
  constexpr double most = 1e9;
  const double taken = value.get<double>();
  if (!(taken >= least && taken <= most)) {
    fail(pointer, "a positive number of seconds from 1e-12 to 1e9");
  }
}

void Form::values(const Json& value, const std::string& pointer) const {
  const auto misfit = find_misfit(value);
  if (misfit) fail(pointer + misfit->pointer, misfit->expected);
}

void Form::machine(const Json& machine) const {
  const std::string place = "/attnbench/machine";
  parts(machine, place,
        std::array<Part, 2>{{{"devices", Kind::object, false}, {"spoilers", Kind::array, false}}});
  const Json devices = machine.value("devices", Json::object());
  for (const auto& [word, card] : devices.items()) {
    parts(card, place + "/devices/" + word, std::array<Part, 1>{{{"name", Kind::text, false}}});
  }
}

}  // namespace

void check_form(const Json& result, const std::string& file) { Form(file).document(result); }

}  // namespace attnbench::result
