// The table of a run that is still measuring: a task's labels down, its axis across, what the
// rounds so far say of each cell.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/cell.hpp"
#include "core/result/record.hpp"

namespace attnbench::run {

/// A width and a height that all tables fit into.
inline constexpr std::size_t any_size = static_cast<std::size_t>(-1);

class LiveTable {
 public:
  /// Without cells it stays empty.
  explicit LiveTable(const std::vector<Cell>& cells = {});

  /// Takes what a round found of its cell; it shows nothing of cells that are not its own.
  void add(const result::RoundRecord& record);

  /// Nothing more will come: what is not known is "–" from here on.
  void conclude() { unknown_ = "–"; }

  /// The tasks' labels, in the cells' order.
  const std::vector<std::string>& tasks() const { return tasks_; }
  /// Of a cell; empty where it is none of the table's.
  std::string task_of(const std::string& cell) const;
  /// The lines of a task's table, its heading first: the median of a cell's undisturbed rounds; the
  /// least sample, in parentheses, where all were disturbed; "…" where nothing is known yet. None
  /// where they are more than `height`, wider than `width`, or would have less than two cells.
  std::vector<std::string> lines(const std::string& task, std::size_t width,
                                 std::size_t height) const;

 private:
  struct Place {
    std::string task;
    std::string row;
    std::string column;
  };
  std::string text_of(const std::string& cell) const;

  std::string unknown_ = "…";
  std::vector<std::string> tasks_;
  std::vector<std::pair<std::string, Place>> places_;  ///< by cell, in their order
  std::map<std::string, std::vector<result::RoundRecord>> rounds_;
};

}  // namespace attnbench::run
