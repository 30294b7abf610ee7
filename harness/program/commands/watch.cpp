// attnbench watch RUN: the live table of a run elsewhere, from its journal.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <thread>

#include "core/failure.hpp"
#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "harness/program/commands/shared/command.hpp"
#include "harness/program/commands/shared/terminal.hpp"
#include "harness/program/run/folder/journal.hpp"
#include "harness/program/run/folder/run_folder.hpp"
#include "harness/program/run/plan/planning.hpp"
#include "harness/program/run/supervise/live_table.hpp"

namespace attnbench::commands {
namespace {

namespace fs = std::filesystem;

struct WatchArguments {
  std::string folder;
  bool once = false;
  double every = 2;
};

/// "54 cells, 137 rounds so far; still measuring".
std::string state_line(std::size_t cells, std::size_t rounds, bool at_work) {
  return std::to_string(cells) + (cells == 1 ? " cell, " : " cells, ") + std::to_string(rounds) +
         (rounds == 1 ? " round so far; " : " rounds so far; ") +
         (at_work ? "still measuring" : "nobody measures");
}

/// A task's table, or how wide it would be.
std::string table_text(const run::LiveTable& table, const std::string& task) {
  std::string text;
  const auto lines = table.lines(task, terminal_width(200), run::any_size);
  for (const std::string& line : lines) text += line + "\n";
  if (!lines.empty()) return text + "\n";
  const auto wide = table.lines(task, run::any_size, run::any_size);
  if (wide.empty()) return "";
  return text::printable(task) + ": a table of " +
         std::to_string(text::display_width(wide.front())) +
         " columns, more than this terminal has\n\n";
}

std::string look_at(const fs::path& journal, bool at_work) {
  run::JournalContents contents;
  std::vector<Cell> cells;
  try {
    contents = run::read_journal(journal);
    cells = run::cells_from(contents.header.at("cells"));
  } catch (const std::exception&) {
    if (!at_work) throw;  // else its first line is being written
    return "the run has not begun to measure\n";
  }
  run::LiveTable table(cells);
  if (!at_work) table.conclude();
  std::size_t rounds = 0;
  for (const auto& [id, records] : contents.rounds) {
    for (const result::RoundRecord& record : records) table.add(record);
    rounds += records.size();
  }
  std::string text;
  for (const std::string& task : table.tasks()) text += table_text(table, task);
  return text + state_line(cells.size(), rounds, at_work) + "\n";
}

int watch(const WatchArguments& arguments) {
  const fs::path journal = run::find_run_folder(arguments.folder).journal();
  const bool redrawn = !arguments.once && isatty(STDOUT_FILENO) != 0;
  for (;;) {
    const bool at_work = run::is_being_written(journal);
    const std::string text = look_at(journal, at_work);
    if (redrawn) std::cout << "\033[H\033[J";
    print_coloured(text);
    std::cout.flush();
    if (!redrawn || !at_work) return 0;
    std::this_thread::sleep_for(std::chrono::duration<double>(arguments.every));
  }
}

}  // namespace

void declare_watch(Command& command) {
  const auto arguments = std::make_shared<WatchArguments>();
  command.option("RUN", arguments->folder, "folder of a run").required();
  command.flag("--once", arguments->once, "show it once, as where output is no terminal");
  command.option("--every", arguments->every, "seconds from one look to the next (default 2)")
      .positive_seconds();
  command.footer(
      "Ends when nobody writes to the run. A cell shows the median of its rounds so far; the "
      "least\n"
      "sample, in parentheses, where other programs disturbed all of them; a training what it\n"
      "learned.\n"
      "A submission to a cluster is watched by: attnbench status FOLDER --watch\n"
      "\n"
      "Example:\n"
      "  attnbench watch runs/quickstart-latest");
  command.runs([arguments] { return watch(*arguments); });
}

}  // namespace attnbench::commands
