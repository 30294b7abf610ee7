#include "harness/run/folder/foreign.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/failure.hpp"
#include "core/hash.hpp"
#include "core/result/document.hpp"
#include "core/result/record.hpp"
#include "core/statistics.hpp"
#include "core/text/printable.hpp"
#include "harness/run/folder/combine.hpp"

namespace attnbench::result {
namespace {

/// One foreign file while it is read; knows what its messages name.
class Foreign {
 public:
  Foreign(const Json& ours, const Json& foreign, const std::string& file)
      : ours_(ours.at("attnbench")), foreign_(foreign), file_(file) {
    head();
    for (const Json& cell : ours_.at("cells")) {
      cells_[cell.at("id").get<std::string>()] = &cell;
      taken_.insert(cell.at("label").get<std::string>());
    }
  }

  std::vector<Json> records() const;
  /// "PyTorch 2.11.0".
  std::string program() const {
    const Json& program = foreign_.at("program");
    return program.at("name").get<std::string>() + " " + program.at("version").get<std::string>();
  }
  Json about() const {
    Json about = foreign_.at("program");
    about["threads"] = foreign_.at("threads");
    about["command"] = foreign_.at("command");
    return about;
  }

 private:
  [[noreturn]] void fail(const std::string& pointer, const std::string& expected) const {
    throw UsageFailure(quotable(file_) + ": " + (pointer.empty() ? "/" : quotable(pointer)) +
                       ": expected " + quotable(expected, 300));
  }
  const Json& need(const Json& object, const std::string& pointer, const char* name,
                   bool (Json::*is)() const noexcept, const char* kind) const {
    if (!object.is_object()) fail(pointer, "an object");
    if (!object.contains(name) || !(object.at(name).*is)()) {
      fail(pointer + "/" + name,
           std::string(kind) + (object.contains(name) ? "" : ", found nothing"));
    }
    return object.at(name);
  }
  void known(const Json& object, const std::string& pointer,
             const std::set<std::string>& names) const {
    for (const auto& [name, value] : object.items()) {
      if (names.count(name) != 0) continue;
      std::string list;
      for (const std::string& each : names) list += (list.empty() ? "" : ", ") + each;
      fail(pointer + "/" + name, "one of " + list);
    }
  }
  void head() const;
  Json record(const Json& told, const std::string& pointer) const;
  std::vector<Json> rounds(const Json& seconds, const Json& cell, const std::string& pointer) const;

  const Json& ours_;
  const Json& foreign_;
  const std::string& file_;
  std::map<std::string, const Json*> cells_;
  std::set<std::string> taken_;
};

void Foreign::head() const {
  need(foreign_, "", "schema", &Json::is_number_integer, "the integer 1");
  if (foreign_.at("schema") != 1) fail("/schema", "1, found " + foreign_.at("schema").dump());
  known(foreign_, "", {"schema", "program", "threads", "command", "records"});
  const Json& program = need(foreign_, "", "program", &Json::is_object, "an object");
  need(program, "/program", "name", &Json::is_string, "a string");
  need(program, "/program", "version", &Json::is_string, "a string");
  need(foreign_, "", "threads", &Json::is_number_integer, "a count");
  need(foreign_, "", "command", &Json::is_string, "a string");
  need(foreign_, "", "records", &Json::is_array, "an array");
}

std::vector<Json> Foreign::rounds(const Json& seconds, const Json& cell,
                                  const std::string& pointer) const {
  std::vector<Json> rounds;
  const Json timing = cell.value("timing", Json::object());
  for (const auto& [what, processes] : seconds.items()) {
    const std::string place = pointer + "/" + what;
    if (!timing.contains(what)) fail(place, "a timing that the cell beside it has");
    if (!processes.is_array() || processes.empty()) fail(place, "an array of arrays of seconds");
    for (std::size_t i = 0; i < processes.size(); ++i) {
      const std::string one = place + "/" + std::to_string(i);
      if (!processes[i].is_array() || processes[i].empty()) fail(one, "an array of seconds");
      std::vector<double> samples;
      for (const Json& sample : processes[i]) {
        const double value = sample.is_number() ? sample.get<double>() : 0;
        if (!(value >= 1e-12 && value <= 1e9)) fail(one, "seconds above zero, from 1e-12 to 1e9");
        samples.push_back(value);
      }
      if (rounds.size() <= i) {
        rounds.push_back(
            {{"status", "ok"}, {"round", i}, {"measured", {{"timing", Json::object()}}}});
      }
      const auto interval = measure::median_interval(samples);
      const auto [low, high] = std::minmax_element(samples.begin(), samples.end());
      rounds[i]["measured"]["timing"][what] = {{"samples_seconds", samples},
                                               {"median_seconds", measure::median(samples)},
                                               {"low_seconds", interval ? interval->low : *low},
                                               {"high_seconds", interval ? interval->high : *high}};
    }
  }
  return rounds;
}

Json Foreign::record(const Json& told, const std::string& pointer) const {
  const auto text = [&](const char* name) {
    return need(told, pointer, name, &Json::is_string, "a string").get<std::string>();
  };
  const auto found = cells_.find(text("beside"));
  if (found == cells_.end()) fail(pointer + "/beside", "the id of a cell in the result beside it");
  const std::string label = text("label") + " (" + program() + ")";
  if (taken_.count(label) != 0) fail(pointer + "/label", "a label that no cell of ours has");
  known(told, pointer,
        {"beside", "label", "implementation", "status", "reason", "seconds", "memory"});
  const Json& beside = *found->second;
  Json cell = {{"id", hash_text(beside.at("id").get<std::string>() + label).substr(0, 12)},
               {"label", label},
               {"foreign", about()}};
  for (const char* part : {"task", "task_label", "mechanism", "device", "options", "settings"}) {
    if (beside.contains(part)) cell[part] = beside.at(part);
  }
  for (const char* word : {"implementation", "status", "reason"}) {
    if (told.contains(word)) need(told, pointer, word, &Json::is_string, "a string");
  }
  cell["implementation"] = told.value("implementation", "");
  const std::string status = told.value("status", "ok");
  if (!status_from(status)) fail(pointer + "/status", "a status, found \"" + status + "\"");
  Json forecast = {{"supported", true}, {"implementation", cell["implementation"]}};
  if (beside.contains("problem")) forecast["problem"] = beside.at("problem");
  for (const char* part : {"model_flops", "minimal_bytes", "exponentials"}) {
    const Json cost = beside.value("cost", Json::object());
    if (cost.contains(part)) forecast["cost"][part] = cost.at(part);
  }
  std::vector<Json> told_rounds = {{{"status", status}, {"reason", told.value("reason", "")}}};
  const bool disturbed = status == to_string(Status::disturbed);
  if (status == "ok" || disturbed) {
    const Json& seconds = need(told, pointer, "seconds", &Json::is_object, "an object");
    told_rounds = rounds(seconds, beside, pointer + "/seconds");
    if (told_rounds.empty()) fail(pointer + "/seconds", "at least one timing");
    if (told.contains("memory")) {
      told_rounds[0]["measured"]["memory"] =
          need(told, pointer, "memory", &Json::is_object, "an object");
      for (const auto& [name, bytes] : told.at("memory").items()) {
        if (!bytes.is_number()) fail(pointer + "/memory/" + name, "a number of bytes");
      }
    }
  }
  Json made = combine(cell, forecast, told_rounds,
                      ours_.at("ceilings").value(cell.value("device", "cpu"), Json::object()));
  if (disturbed) {
    made["status"] = status;
    made["reason"] = told.value("reason", "its program says so");
  }
  return made;
}

std::vector<Json> Foreign::records() const {
  std::vector<Json> out;
  const Json& records = foreign_.at("records");
  for (std::size_t i = 0; i < records.size(); ++i) {
    out.push_back(record(records[i], "/records/" + std::to_string(i)));
  }
  return out;
}

}  // namespace

Json with_foreign(const Json& ours, const Json& foreign, const std::string& file) {
  const Foreign read(ours, foreign, file);
  const Json& from = ours.at("attnbench");
  Parts parts;
  parts.executable = ours.at("context").value("executable", "attnbench");
  parts.suite = from.at("suite");
  parts.run = from.at("run");
  parts.machine = from.at("machine");
  parts.ceilings = from.at("ceilings");
  parts.provenance = from.at("provenance");
  parts.provenance["foreign"][read.program()] = read.about();
  parts.cells = from.at("cells").get<std::vector<Json>>();
  Json labels = parts.suite.value("labels", Json::array());
  for (Json& cell : read.records()) {
    if (std::find(labels.begin(), labels.end(), cell.at("label")) == labels.end()) {
      labels.push_back(cell.at("label"));
    }
    parts.cells.push_back(std::move(cell));
  }
  parts.suite["labels"] = std::move(labels);
  return assemble(parts);
}

}  // namespace attnbench::result
