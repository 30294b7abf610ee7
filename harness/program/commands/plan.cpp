// attnbench plan SUITE…: cells, cost and time of a suite, and unsupported cells with reasons.
#include <algorithm>
#include <cctype>
#include <iostream>
#include <map>
#include <memory>

#include "core/result/document.hpp"
#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "harness/measure/processor.hpp"
#include "harness/program/commands/shared/command.hpp"
#include "harness/program/commands/shared/suite_arguments.hpp"
#include "harness/program/commands/shared/terminal.hpp"
#include "harness/program/commands/shared/worker_arguments.hpp"
#include "harness/program/run/plan/pace.hpp"
#include "harness/program/run/plan/planning.hpp"
#include "harness/program/run/supervise/budget.hpp"
#include "harness/program/suite/cell.hpp"
#include "harness/program/suite/suite.hpp"

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
  std::size_t failed = 0;  ///< whose forecast ended with an error, or took its process along
  double model_flops = 0;  ///< of one call of each cell
  double peak_bytes = 0;   ///< of the largest cell
  double state_bytes = 0;  ///< of the cell with the greatest
  double seconds = 0;      ///< estimated, of all rounds
  /// Of as many rounds as rank, the least of a budget; of trainings all.
  double ranking_seconds = 0;
  /// Of the unsupported cells, those that their data alone keep from running, and what they would
  /// take; of none of these anything is above.
  std::size_t without_data = 0;
  double seconds_without_data = 0;
  double peak_bytes_without_data = 0;

  void add(const Totals& other);
  bool none_runs() const { return unsupported + failed == cells; }
};

struct PlannedSuite {
  suite::Expanded suite;
  std::vector<Forecast> forecasts;  ///< in the cells' order
  run::Pace pace;

  Totals of_cell(std::size_t index) const;
};

void Totals::add(const Totals& other) {
  cells += other.cells;
  unsupported += other.unsupported;
  failed += other.failed;
  state_bytes = std::max(state_bytes, other.state_bytes);
  model_flops += other.model_flops;
  peak_bytes = std::max(peak_bytes, other.peak_bytes);
  seconds += other.seconds;
  ranking_seconds += other.ranking_seconds;
  without_data += other.without_data;
  seconds_without_data += other.seconds_without_data;
  peak_bytes_without_data = std::max(peak_bytes_without_data, other.peak_bytes_without_data);
}

/// Data that are not there make a cell skipped, which is no failure.
bool has_failed(const Forecast& forecast) {
  const Status status = forecast.status.value_or(Status::unsupported);
  return status != Status::unsupported && status != Status::skipped;
}

Totals PlannedSuite::of_cell(std::size_t index) const {
  const Forecast& forecast = forecasts[index];
  Totals totals;
  totals.cells = 1;
  if (!forecast.supported) {
    (has_failed(forecast) ? totals.failed : totals.unsupported) = 1;
    if (forecast.status == Status::skipped && forecast.problem) {
      totals.without_data = 1;
      totals.seconds_without_data = pace.cell_seconds(suite.cells[index], forecast, suite.measure);
      totals.peak_bytes_without_data = forecast.peak_bytes.value_or(0);
    }
    return totals;
  }
  totals.state_bytes = known_or_zero(forecast.cost.state_bytes);
  totals.model_flops = known_or_zero(forecast.cost.model_flops);
  totals.peak_bytes = forecast.peak_bytes.value_or(0);
  totals.seconds = pace.cell_seconds(suite.cells[index], forecast, suite.measure);
  Json ranking = suite.measure;
  ranking["rounds"] = run::Budget::ranking_rounds;
  totals.ranking_seconds = pace.cell_seconds(suite.cells[index], forecast, ranking);
  return totals;
}

/// Asks the worker, or the cache, for the forecasts. Throws as suite::expand and run::forecast do.
PlannedSuite planned_suite(const suite::Document& document, const Catalogue& catalogue,
                           const suite::Choices& choices, const std::vector<std::string>& plugins,
                           const run::Pace& pace) {
  PlannedSuite planned{suite::expand(document, catalogue, choices), {}, pace};
  planned.forecasts = run::forecast(planned.suite.cells, plugins);
  return planned;
}

/// "4.10 GFLOP", "12 FLOP".
std::string flops(double count) {
  const std::string text = text::human_count(count);
  const bool bare = std::isdigit(static_cast<unsigned char>(text.back())) != 0;
  return text + (bare ? " FLOP" : "FLOP");
}

TableRow row_of(const std::string& label, const Totals& totals) {
  const auto count = [](std::size_t cells) {
    return cells == 0 ? std::string("-") : std::to_string(cells);
  };
  TableRow row{label, std::to_string(totals.cells), count(totals.unsupported),
               count(totals.failed)};
  if (totals.none_runs()) {
    row.insert(row.end(), {"-", "-", "-", "-"});
  } else {
    row.insert(row.end(), {flops(totals.model_flops), text::human_bytes(totals.peak_bytes),
                           totals.state_bytes > 0 ? text::human_bytes(totals.state_bytes) : "-",
                           run::human_duration(totals.seconds)});
  }
  row.push_back(totals.without_data == 0 ? "-" : run::human_duration(totals.seconds_without_data));
  return row;
}

/// The status of a cell that will not run: data that are not there make it skipped.
std::string word_of(const Forecast& forecast) {
  return to_string(forecast.status.value_or(Status::unsupported));
}

void print_planned(const PlannedSuite& planned) {
  std::vector<TableRow> rows;
  for (std::size_t i = 0; i < planned.suite.cells.size(); ++i) {
    const Forecast& forecast = planned.forecasts[i];
    const Totals totals = planned.of_cell(i);
    const bool supported = forecast.supported;
    rows.push_back({suite::describe(planned.suite.cells[i]),
                    supported ? forecast.implementation : word_of(forecast),
                    supported ? flops(totals.model_flops) : "-",
                    supported ? text::human_bytes(totals.peak_bytes) : "-",
                    supported ? std::string() : text::quotable(forecast.reason, 600)});
  }
  print_columns(std::cout, rows, "  ");
}

void print_reasons(const PlannedSuite& planned) {
  std::map<std::pair<std::string, std::string>, std::size_t> reasons;
  for (const Forecast& forecast : planned.forecasts) {
    if (forecast.supported) continue;
    const std::string reason = forecast.reason.empty() ? "no reason given" : forecast.reason;
    ++reasons[{word_of(forecast), text::quotable(reason, 600)}];
  }
  for (const auto& [why, count] : reasons) {
    std::cout << "  " << why.first << ", " << count << (count == 1 ? " cell: " : " cells: ")
              << why.second << "\n";
  }
}

void print_plan(const suite::Document& document, const PlannedSuite& planned, bool list_cells) {
  std::vector<std::string> labels;
  std::map<std::string, Totals> by_label;
  Totals all;
  for (std::size_t i = 0; i < planned.suite.cells.size(); ++i) {
    const Cell& cell = planned.suite.cells[i];
    const std::string label = cell.task_label + "  " + cell.label;
    if (by_label.count(label) == 0) labels.push_back(label);
    const Totals totals = planned.of_cell(i);
    by_label[label].add(totals);
    all.add(totals);
  }
  const auto info = planned.suite.header.get<result::SuiteInfo>();
  std::cout << document.name << (info.profile.empty() ? "" : ", profile " + info.profile) << ": "
            << all.cells << (all.cells == 1 ? " cell, " : " cells, ") << planned.suite.rounds(0)
            << " rounds each\n";
  if (info.notes) std::cout << "  " << text::quotable(*info.notes, 600) << "\n";
  for (const std::string& note : planned.suite.notes) {
    std::cout << "  " << text::quotable(note, 600) << "\n";
  }
  std::vector<TableRow> rows{{"", "cells", "unsupported", "failed", "one call of each", "largest",
                              "state", "time, estimated", "once data are there"}};
  for (const std::string& label : labels) rows.push_back(row_of(label, by_label[label]));
  rows.push_back(row_of("all", all));
  for (TableRow& row : rows) {
    if (all.without_data == 0) row.pop_back();
    if (all.failed == 0) row.erase(row.begin() + 3);
  }
  print_columns(std::cout, rows, "  ");
  print_reasons(planned);
  if (all.without_data > 0) {
    std::cout
        << "  Without their data " << all.without_data
        << (all.without_data == 1 ? " cell does" : " cells do")
        << " not run; \"once data are there\" is estimated for data of the size that settings "
           "say or that was published, at most "
        << text::human_bytes(all.peak_bytes_without_data) << " at once.\n";
  }
  if (list_cells) print_planned(planned);
  const suite::AssumedMachine& machine = planned.pace.machine();
  const std::string rates = text::human_count(machine.flops_per_second) + "FLOP/s and " +
                            text::human_count(machine.bytes_per_second) + "B/s";
  std::cout << "  The time is an estimate, not a measurement: "
            << (planned.pace.has_experience()
                    ? "from what earlier runs took on this machine, at " + rates
                    : "nothing was run on this machine yet, and " + rates + " are assumed")
            << ".\n";
  if (all.none_runs()) return;
  std::cout << "  Least `run --budget` that ranks, of " << run::Budget::ranking_rounds
            << " rounds: about " << run::human_duration(all.ranking_seconds) << ".\n";
}

Json as_json(const suite::Document& document, const PlannedSuite& planned) {
  Json cells = Json::array();
  Totals all;
  for (std::size_t i = 0; i < planned.suite.cells.size(); ++i) {
    const Totals totals = planned.of_cell(i);
    all.add(totals);
    Json cell = planned.suite.cells[i];
    Json forecast = planned.forecasts[i];
    if (planned.forecasts[i].supported) forecast.update({{"estimated_seconds", totals.seconds}});
    cell.update({{"forecast", std::move(forecast)}});
    cells.push_back(std::move(cell));
  }
  const suite::AssumedMachine& machine = planned.pace.machine();
  return {{"file", document.name},
          {"suite", planned.suite.header},
          {"measure", planned.suite.measure},
          {"cells", cells},
          {"totals",
           {{"cells", all.cells},
            {"unsupported", all.unsupported},
            {"failed", all.failed},
            {"model_flops", all.model_flops},
            {"peak_bytes", all.peak_bytes},
            {"state_bytes", all.state_bytes},
            {"estimated_seconds", all.seconds},
            {"ranking_seconds", all.ranking_seconds},
            {"without_data",
             {{"cells", all.without_data},
              {"peak_bytes", all.peak_bytes_without_data},
              {"estimated_seconds", all.seconds_without_data}}}}},
          {"assumed",
           {{"flops_per_second", machine.flops_per_second},
            {"bytes_per_second", machine.bytes_per_second},
            {"measured", planned.pace.has_own_rates()},
            {"from_records", planned.pace.has_experience()}}}};
}

int plan(PlanArguments& arguments) {
  const std::vector<suite::Document> documents = take_documents(arguments.suites);
  const Catalogue catalogue = catalogue_with(arguments.suites.plugins);
  const run::Pace pace = run::remembered_pace(run::pace_file(measure::processor().model));
  Json all = Json::array();
  bool failed = false;
  for (const suite::Document& document : documents) {
    const PlannedSuite planned = planned_suite(document, catalogue, arguments.suites.choices,
                                               arguments.suites.plugins, pace);
    failed = failed || std::any_of(planned.forecasts.begin(), planned.forecasts.end(), has_failed);
    if (arguments.json) {
      all.push_back(as_json(document, planned));
    } else {
      print_plan(document, planned, arguments.cells);
    }
  }
  if (arguments.json) std::cout << all.dump(2) << "\n";
  return static_cast<int>(failed ? ExitCode::cells : ExitCode::done);
}

}  // namespace

void declare_plan(Command& command) {
  auto arguments = std::make_shared<PlanArguments>();
  add_suite_arguments(command, arguments->suites);
  command.flag("--cells", arguments->cells, "List every cell");
  command.flag("--json", arguments->json, "Everything as JSON");
  command.footer(
      "Exit codes: 0 all is planned or refused with a reason, 2 the suite is malformed, 5 a "
      "forecast\n"
      "failed.\n"
      "\n"
      "Examples:\n"
      "  attnbench plan suites/latte_v1_figure_2.json --profile quick --cells\n"
      "  attnbench plan flash latte --shape llama3-8b --length 1024..8192");
  command.runs([arguments] { return plan(*arguments); });
}

}  // namespace attnbench::commands
