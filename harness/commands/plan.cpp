// attnbench plan SUITE…: cells, cost and time of a suite, and unsupported cells with reasons.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>

#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/suite_arguments.hpp"
#include "harness/commands/terminal.hpp"
#include "harness/commands/worker_arguments.hpp"
#include "harness/run/plan/planning.hpp"
#include "harness/suite/cell.hpp"

namespace attnbench::commands {
namespace {

using suite::Json;

struct PlanArguments {
  SuiteArguments suites;
  bool json = false;
  bool cells = false;
};

struct Totals {
  std::size_t cells = 0;
  std::size_t unsupported = 0;
  double model_flops = 0;  ///< of one call of each cell
  double peak_bytes = 0;   ///< of the largest cell
  double seconds = 0;

  void add(const Totals& other) {
    cells += other.cells;
    unsupported += other.unsupported;
    model_flops += other.model_flops;
    peak_bytes = std::max(peak_bytes, other.peak_bytes);
    seconds += other.seconds;
  }
};

Totals totals_of(const Json& forecast, const Json& measure) {
  Totals totals;
  totals.cells = 1;
  if (!forecast.value("supported", true)) {
    totals.unsupported = 1;
    return totals;
  }
  const Json cost = forecast.value("cost", Json::object());
  totals.model_flops = cost.value("model_flops", 0.0);
  totals.peak_bytes = forecast.value("peak_bytes", 0.0);
  const double once = suite::estimated_call_seconds(cost);
  const bool trains = forecast.value("once", false);
  totals.seconds = trains ? once : suite::estimated_cell_seconds(once, measure);
  return totals;
}

std::string hours(double seconds) {
  if (seconds < 120) return result::human_seconds(seconds);
  char text[32];
  std::snprintf(text, sizeof text, seconds < 7200 ? "%.0f min" : "%.1f h",
                seconds / (seconds < 7200 ? 60 : 3600));
  return text;
}

/// "4.10 GFLOP", "12 FLOP".
std::string flops(double count) {
  const std::string text = result::human_count(count);
  const bool bare = std::isdigit(static_cast<unsigned char>(text.back())) != 0;
  return text + (bare ? " FLOP" : "FLOP");
}

Row row_of(const std::string& label, const Totals& totals) {
  if (totals.unsupported == totals.cells) {
    const std::string count = std::to_string(totals.cells);
    return {label, count, count, "-", "-", "-"};
  }
  return {label,
          std::to_string(totals.cells),
          totals.unsupported == 0 ? "-" : std::to_string(totals.unsupported),
          flops(totals.model_flops),
          result::human_bytes(totals.peak_bytes),
          hours(totals.seconds)};
}

/// An expanded suite with the forecast of each cell.
struct Planned {
  suite::Expanded suite;
  std::vector<Json> forecasts;
};

void print_cells(const Planned& planned) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < planned.suite.cells.size(); ++i) {
    const Json& forecast = planned.forecasts[i];
    const Totals totals = totals_of(forecast, planned.suite.measure);
    const bool supported = totals.unsupported == 0;
    rows.push_back(
        {suite::describe(planned.suite.cells[i]),
         supported ? forecast.value("implementation", "") : "unsupported",
         supported ? flops(totals.model_flops) : "-",
         supported ? result::human_bytes(totals.peak_bytes) : "-",
         supported ? std::string() : result::quotable(forecast.value("reason", ""), 600)});
  }
  print_columns(std::cout, rows, "  ");
}

void print_reasons(const Planned& planned) {
  std::map<std::string, std::size_t> reasons;
  for (const Json& forecast : planned.forecasts) {
    if (!forecast.value("supported", true)) {
      ++reasons[result::quotable(forecast.value("reason", "no reason given"), 600)];
    }
  }
  for (const auto& [reason, count] : reasons) {
    std::cout << "  unsupported, " << count << (count == 1 ? " cell: " : " cells: ") << reason
              << "\n";
  }
}

void print(const suite::Document& document, const Planned& planned, bool list_cells) {
  std::vector<std::string> labels;
  std::map<std::string, Totals> by_label;
  Totals all;
  for (std::size_t i = 0; i < planned.suite.cells.size(); ++i) {
    const Json& cell = planned.suite.cells[i];
    const std::string label =
        cell["task_label"].get<std::string>() + "  " + cell["label"].get<std::string>();
    if (by_label.count(label) == 0) labels.push_back(label);
    const Totals totals = totals_of(planned.forecasts[i], planned.suite.measure);
    by_label[label].add(totals);
    all.add(totals);
  }
  const std::string profile = planned.suite.header.value("profile", "");
  std::cout << document.name << (profile.empty() ? "" : ", profile " + profile) << ": " << all.cells
            << (all.cells == 1 ? " cell, " : " cells, ") << planned.suite.measure["rounds"]
            << " rounds each\n";
  std::vector<Row> rows{
      {"", "cells", "unsupported", "one call of each", "largest", "time, estimated"}};
  for (const std::string& label : labels) rows.push_back(row_of(label, by_label[label]));
  rows.push_back(row_of("all", all));
  print_columns(std::cout, rows, "  ");
  print_reasons(planned);
  if (list_cells) print_cells(planned);
  const suite::AssumedMachine machine;
  std::cout << "  The time is a rough estimate, not a measurement: it assumes "
            << result::human_count(machine.flops_per_second) << "FLOP/s and "
            << result::human_count(machine.bytes_per_second) << "B/s.\n";
}

Json as_json(const suite::Document& document, const Planned& planned) {
  Json cells = Json::array();
  Totals all;
  for (std::size_t i = 0; i < planned.suite.cells.size(); ++i) {
    const Totals totals = totals_of(planned.forecasts[i], planned.suite.measure);
    all.add(totals);
    Json cell = planned.suite.cells[i];
    cell["forecast"] = planned.forecasts[i];
    if (totals.unsupported == 0) cell["forecast"]["estimated_seconds"] = totals.seconds;
    cells.push_back(cell);
  }
  const suite::AssumedMachine machine;
  return {{"file", document.name},
          {"suite", planned.suite.header},
          {"measure", planned.suite.measure},
          {"cells", cells},
          {"totals",
           {{"cells", all.cells},
            {"unsupported", all.unsupported},
            {"model_flops", all.model_flops},
            {"peak_bytes", all.peak_bytes},
            {"estimated_seconds", all.seconds}}},
          {"assumed",
           {{"flops_per_second", machine.flops_per_second},
            {"bytes_per_second", machine.bytes_per_second}}}};
}

int plan(PlanArguments& arguments) {
  const std::vector<suite::Document> documents = take_documents(arguments.suites);
  const suite::Catalogue catalogue = catalogue_with(arguments.suites.plugins);
  Json all = Json::array();
  for (const suite::Document& document : documents) {
    Planned planned{suite::expand(document, catalogue, arguments.suites.choices), {}};
    for (const run::Forecast& one :
         run::forecast(run::cells_from(planned.suite.cells), arguments.suites.plugins)) {
      planned.forecasts.push_back(one);
    }
    if (arguments.json) {
      all.push_back(as_json(document, planned));
    } else {
      print(document, planned, arguments.cells);
    }
  }
  if (arguments.json) std::cout << all.dump(2) << "\n";
  return 0;
}

}  // namespace

void add_plan(CommandLine& line) {
  Command& command = line.add("plan", "Show what a suite would run: cells, work, memory, hours");
  auto arguments = std::make_shared<PlanArguments>();
  add_suite_arguments(command, arguments->suites);
  command.flag("--cells", arguments->cells, "List every cell");
  command.flag("--json", arguments->json, "Everything as JSON");
  command.footer(
      "Example:\n"
      "  attnbench plan suites/latte_v1_figure_2.json --profile quick --cells");
  command.runs([arguments] { return plan(*arguments); });
}

}  // namespace attnbench::commands
