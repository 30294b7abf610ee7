#include "reports/claims/values.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "core/text/spelling.hpp"
#include "reports/tables/best.hpp"
#include "reports/tables/quality.hpp"

namespace attnbench::reports::claims {
namespace {

using result::CellRecord;

constexpr std::string_view part_of_time = "time.", of_memory = "memory.", of_metrics = "metrics.";

bool is_time(const std::string& of) { return of == "time" || of.starts_with(part_of_time); }

bool is_same(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) return a.get<double>() == b.get<double>();
  return a == b;
}

/// The keys of settings and options in which the cells differ, without those that seeds and
/// learning rates may differ in where `trained`.
std::set<std::string> differences(const std::vector<const CellRecord*>& cells, bool trained) {
  std::set<std::string> keys;
  for (const CellRecord* cell : cells) {
    for (Values CellRecord::*part : {&CellRecord::settings, &CellRecord::options}) {
      for (const auto& [key, value] : cell->*part) {
        if (trained && (key == learning_rate || key == model_seed)) continue;
        const Json* const first = find_value(cells.front()->*part, key);
        if (first == nullptr || *first != value) keys.insert(key);
      }
    }
  }
  return keys;
}

/// The number among the test of a training: the whole test's metric, or that of a segment.
std::optional<double> test_number(const ClaimedQuantity& quantity, const CellRecord& cell) {
  if (quantity.of == "states_in_use") {
    if (!cell.training || !cell.training->latent_probabilities) return std::nullopt;
    return cell.training->latent_probabilities->in_use;
  }
  if (quantity.segment.empty()) return number_of(cell.metrics, quantity.of);
  for (const result::Segment& segment :
       cell.training ? cell.training->test : std::vector<result::Segment>()) {
    if (segment.segment != quantity.segment) continue;
    if (quantity.of == "accuracy") return segment.accuracy;
    return segment.loss ? std::optional(bits_of(*segment.loss)) : std::nullopt;
  }
  return std::nullopt;
}

std::string formatted(const char* form, double number) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), form, number);
  return text.data();
}

}  // namespace

std::string number_text(double number) {
  const double size = std::abs(number);
  if (size < 1e-9) return "0";
  if (size < 1000) return formatted("%.3g", number);
  if (size >= 1e5) return text::human_count(number);
  const double step = std::pow(10, std::floor(std::log10(size)) - 2);
  const bool whole = std::round(number) == number;
  return formatted("%.0f", whole ? number : std::round(number / step) * step);
}

ValueUnit unit_of(const std::string& of) {
  if (is_time(of)) return ValueUnit::seconds;
  if (of == "accuracy" || of == "states_in_use") return ValueUnit::share;
  if (of == "bits_per_byte") return ValueUnit::bits;
  if (of.starts_with(of_memory) || of == "metrics.state_bytes") return ValueUnit::bytes;
  if (of.starts_with(of_metrics)) return ValueUnit::number;
  throw UsageError("\"" + text::quotable(of) +
                   "\": expected time, time.PASS, memory.NAME, metrics.NAME, accuracy, "
                   "bits_per_byte or states_in_use");
}

std::string Value::name() const { return label + (place.empty() ? "" : " at " + place); }

std::string Value::words() const {
  switch (unit) {
    case ValueUnit::seconds:
      return text::measured_seconds(estimate.median, estimate.low, estimate.high);
    case ValueUnit::bytes:
      return text::human_bytes(estimate.median);
    case ValueUnit::share:
      return formatted("%.4g", estimate.median);
    case ValueUnit::bits:
      return formatted("%.3f bits", estimate.median);
    case ValueUnit::number:
      break;
  }
  return number_text(estimate.median);
}

Cells::Cells(const result::Result& result) : result_(result), panels_(reports::panels(result)) {
  for (const Panel& panel : panels_) {
    for (const Placed& placed : panel.cells) panel_of_.emplace(placed.cell, &panel);
    if (!has_trainings(panel)) continue;
    for (const Selection& selection : selections(panel)) {
      for (const Rate& rate : selection.rates) {
        for (const CellRecord* cell : rate.cells) chosen_.emplace(cell, selection.choice());
      }
    }
  }
}

Cells::Matches Cells::of_label(const ClaimedQuantity& quantity, const std::string& but_for) const {
  Matches cells;
  for (const CellRecord& cell : result_.cells) {
    if (cell.label == quantity.label) cells.push_back(&cell);
  }
  if (cells.empty()) return cells;
  std::vector<std::pair<std::string, bool>> extremes;  // and whether the greatest is wanted
  for (const auto& [key, wanted] : quantity.settings) {
    if (key == but_for) continue;
    Matches having, matching;
    for (const CellRecord* cell : cells) {
      const auto found =
          key == "task_label" ? std::optional<Json>(cell->task_name()) : value_of(*cell, key);
      if (found) having.push_back(cell);
      if (found && is_same(*found, wanted)) matching.push_back(cell);
    }
    if (having.empty()) {
      throw UsageError("no cell of " + text::name_in_sentence(quantity.label) +
                       " has a setting or option \"" + text::quotable(key) + "\"");
    }
    if (wanted == "least" || wanted == "greatest") {
      extremes.emplace_back(key, wanted == "greatest");
      cells = having;
    } else {
      cells = matching;
    }
    if (cells.empty()) return cells;
  }
  for (const auto& [key, greatest] : extremes) {
    const auto number = [&key = key](const CellRecord* cell) {
      const auto value = value_of(*cell, key);
      return value->is_number() ? value->get<double>() : 0;
    };
    double chosen = number(cells.front());
    for (const CellRecord* cell : cells) {
      chosen = greatest ? std::max(chosen, number(cell)) : std::min(chosen, number(cell));
    }
    std::erase_if(cells, [&](const CellRecord* cell) { return number(cell) != chosen; });
  }
  return cells;
}

Value Cells::value(const ClaimedQuantity& quantity) {
  Value value;
  value.unit = unit_of(quantity.of);
  const Matches cells = of_label(quantity);
  std::string place;
  for (const auto& [key, wanted] : quantity.settings) {
    const bool chosen = (wanted == "least" || wanted == "greatest") && !cells.empty();
    const Json said = chosen ? value_of(*cells.front(), key).value_or(wanted) : wanted;
    const std::string name = key == "task_label" ? "" : key + " ";
    place += (place.empty() ? "" : ", ") + name + text::human_value(said);
  }
  if (!quantity.segment.empty()) place += (place.empty() ? "" : ", ") + quantity.segment;
  value.label = quantity.label;
  value.place = place;
  if (cells.empty()) {
    value.missing = "the result has no cell of " + value.name();
    value.absent = true;
    return value;
  }
  used_.insert(cells.begin(), cells.end());
  const bool seeds = cells.front()->training.has_value();
  const std::set<std::string> differ = differences(cells, seeds);
  if (!differ.empty()) {
    throw UsageError(std::to_string(cells.size()) + " cells of " +
                     text::name_in_sentence(quantity.label) +
                     " are selected, expected one; they differ in " +
                     text::listed({differ.begin(), differ.end()}));
  }
  if (value.trained()) return trained(quantity, cells, std::move(value));
  return measured(quantity, cells, std::move(value));
}

Value Cells::measured(const ClaimedQuantity& quantity, const Matches& cells, Value value) const {
  const CellRecord& cell = *cells.front();
  const auto throw_unmeasured = [&] {
    throw UsageError("no \"" + text::quotable(quantity.of) + "\" was measured of " + value.name());
  };
  const auto ended = [&] {
    if (result::is_disturbed(cell)) return value.name() + " was disturbed";
    return value.name() + " ended as " + to_string(cell.status) +
           (cell.reason.empty() ? "" : " (" + text::quotable(cell.reason, 120) + ")");
  };
  std::optional<Estimate> found;
  if (is_time(quantity.of)) {
    const std::string what = quantity.of == "time" ? "" : quantity.of.substr(part_of_time.size());
    if (result::is_ok(cell) && result::timing_of(cell, what) == nullptr) throw_unmeasured();
    found = ranked_times(*panel_of_.at(&cell), what)(cell);
    if (!found && result::is_ok(cell)) {
      value.missing = value.name() + " was not timed in several processes";
      return value;
    }
  } else {
    const bool memory = quantity.of.starts_with(of_memory);
    const std::string key = quantity.of.substr((memory ? of_memory : of_metrics).size());
    found = exact_bytes(memory ? &CellRecord::memory : &CellRecord::metrics, key.c_str())(cell);
    if (!found && result::is_ok(cell)) throw_unmeasured();
    const auto low = number_of(cell.metrics, key + "_low");
    const auto high = number_of(cell.metrics, key + "_high");
    if (found && !memory && low && high) found = Estimate{found->median, *low, *high};
    for (const CellRecord* other : cells) {
      const auto number = number_of(memory ? other->memory : other->metrics, key);
      if (!found || number == found->median) continue;
      throw UsageError(value.name() + " has several values of " + text::quotable(quantity.of));
    }
  }
  if (!found) {
    value.missing = ended();
    return value;
  }
  value.estimate = *found;
  return value;
}

Value Cells::trained(const ClaimedQuantity& quantity, const Matches& cells, Value value) const {
  const Rate* rate = nullptr;
  for (const CellRecord* cell : cells) {
    const auto chosen = chosen_.find(cell);
    if (chosen != chosen_.end()) rate = &chosen->second;
  }
  if (rate == nullptr) {
    value.missing = "no training of " + value.name() + " ended well";
    return value;
  }
  if (rate->failed > 0) value.missing = "a seed of " + value.name() + " did not end well";
  double sum = 0;
  for (const CellRecord* cell : rate->cells) {
    if (quantity.of != "states_in_use" && cell->training &&
        cell->training->judged_by == "perplexity") {
      value.missing = "the tokens of " + value.name() + " are no bytes";
      return value;
    }
    const auto number = test_number(quantity, *cell);
    if (!number) {
      throw UsageError("no \"" + text::quotable(quantity.of) + "\"" +
                       (quantity.segment.empty()
                            ? ""
                            : " of the segment \"" + text::quotable(quantity.segment) + "\"") +
                       " was measured of " + value.name());
    }
    sum += *number;
    value.seeds[number_of(cell->settings, model_seed).value_or(0)] = *number;
    const result::Ending ending = result::ending_of(*cell->training);
    value.converged = value.converged && ending != result::Ending::still_learning;
    value.at_chance += ending == result::Ending::at_chance ? 1 : 0;
  }
  const double mean = sum / static_cast<double>(rate->cells.size());
  value.estimate = {mean, mean, mean};
  return value;
}

std::map<double, Value> Cells::line(const ClaimedQuantity& quantity, const std::string& along) {
  std::map<double, Value> values;
  for (const CellRecord* cell : of_label(quantity, along)) {
    const auto place = value_of(*cell, along);
    if (!place || !place->is_number() || values.contains(place->get<double>())) continue;
    ClaimedQuantity there = quantity;
    there.settings[along] = *place;
    values.emplace(place->get<double>(), value(there));
  }
  return values;
}

}  // namespace attnbench::reports::claims
