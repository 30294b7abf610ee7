// The numbers of a result that predicates of claims are about.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/result/document.hpp"
#include "core/statistics.hpp"
#include "reports/claims/claim.hpp"
#include "reports/tables/selection.hpp"

namespace attnbench::reports::claims {

enum class ValueUnit { seconds, bytes, number, share, bits };

/// A number in three digits, or whole: "0.346", "1170", "16384", "428 k".
std::string number_text(double number);

/// The unit of a kind of quantity. Throws UsageError for an unknown kind.
ValueUnit unit_of(const std::string& of);

/// A quantity in a result: an estimate, the seeds of a training, or why there is none.
struct Value {
  ValueUnit unit = ValueUnit::number;
  Estimate estimate;               ///< of a training the mean over seeds, without an interval
  std::map<double, double> seeds;  ///< of a training, by seed
  bool converged = true;           ///< none of a training's seeds was learning still
  std::size_t at_chance = 0;       ///< seeds of a training that have learned nothing
  std::string missing;  ///< "standard at length 4096 was disturbed"; empty where it is there
  bool absent = false;  ///< missing because the result has no such cell
  std::string label;
  std::string place;  ///< "length 256"; empty where nothing but the label was asked for

  bool trained() const { return unit == ValueUnit::share || unit == ValueUnit::bits; }
  std::string name() const;   ///< "latte, scan at length 256"
  std::string words() const;  ///< "1.98 ms"
};

/// The cells of a result. Refers to it.
class Cells {
 public:
  explicit Cells(const result::Result& result);
  explicit Cells(result::Result&&) = delete;

  /// The quantity of one cell, or of a training's seeds at the learning rate that validation chose.
  /// Throws UsageError where the quantity is of no known kind, names a setting or metric that its
  /// cells do not have, or selects several cells.
  Value value(const ClaimedQuantity& quantity);

  /// The quantity by each value of the setting `along` that the label's cells have.
  std::map<double, Value> line(const ClaimedQuantity& quantity, const std::string& along);

  /// The cells that were asked for so far.
  const std::set<const result::CellRecord*>& used() const { return used_; }

 private:
  using Matches = std::vector<const result::CellRecord*>;

  Matches of_label(const ClaimedQuantity& quantity, const std::string& but_for = "") const;
  Value measured(const ClaimedQuantity& quantity, const Matches& cells, Value value) const;
  Value trained(const ClaimedQuantity& quantity, const Matches& cells, Value value) const;

  const result::Result& result_;
  std::vector<Panel> panels_;
  std::map<const result::CellRecord*, const Panel*> panel_of_;
  std::map<const result::CellRecord*, Rate> chosen_;  ///< of trainings
  std::set<const result::CellRecord*> used_;
};

}  // namespace attnbench::reports::claims
