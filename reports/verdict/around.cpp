#include "reports/verdict/around.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "core/text/shell.hpp"

namespace attnbench::reports::verdict {
namespace {

using Words = std::vector<std::string>;

constexpr const char* length_axis = "length";
constexpr std::size_t least_rounds = 10;

/// Evenly spaced by factors, with five binary digits each.
std::string lengths_around(const CrossingStatement& crossing) {
  constexpr int count = 6;
  constexpr double margin = 1.25;
  // Without a lower end nothing is known of what is shorter than was measured.
  const double low = crossing.low ? *crossing.low / margin : crossing.shortest / 2;
  const double first = std::log2(std::max(1.0, low));
  const double last = std::log2(crossing.high * margin);
  std::set<std::int64_t> lengths;
  for (int i = 0; i < count; ++i) {
    const double length = std::exp2(first + (last - first) * i / (count - 1));
    const double unit = std::exp2(std::max(0.0, std::floor(std::log2(length)) - 4));
    lengths.insert(static_cast<std::int64_t>(std::round(length / unit) * unit));
  }
  std::string text;
  for (const std::int64_t length : lengths) {
    text += (text.empty() ? "" : ",") + std::to_string(length);
  }
  return text;
}

/// The call that measured the cell, without what chose cells, rounds and the axis. None where it
/// was no call of `run`.
Words call_of(const Panel& panel, const result::CellRecord& cell) {
  std::string command = panel.command;
  const std::string alone = " --only " + cell.id;
  if (cell.reproduce.ends_with(alone)) {
    command = cell.reproduce.substr(0, cell.reproduce.size() - alone.size());
  }
  const Words all = text::words_of_command(command).value_or(Words());
  if (all.size() < 3 || all[1] != "run") return {};
  const std::string own = std::string(length_axis) + "=";
  Words kept;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t equals = all[i].find('=');
    const std::string flag = all[i].substr(0, equals);
    if (flag == "--resume") return {};
    static const std::set<std::string> left_out{"--only", "--skip", "--out", "--rounds",
                                                "--length"};
    if (left_out.contains(flag)) {
      if (equals == std::string::npos) ++i;
    } else if (all[i] == "--set" && i + 1 < all.size() && all[i + 1].starts_with(own)) {
      ++i;
    } else if (!all[i].starts_with(own) && !all[i].starts_with("--set=" + own)) {
      kept.push_back(all[i]);
    }
  }
  return kept;
}

/// `text` as a regular expression that finds it alone.
std::string literal(const std::string& text) {
  std::string out;
  for (const char letter : text) {
    if (std::string_view("\\.+*?()[]{}^$|").find(letter) != std::string_view::npos) out += '\\';
    out += letter;
  }
  return out;
}

/// What --only has to find of a cell besides task and label. It searches settings before options,
/// both by name (`searched` in harness/program/suite/cell.cpp).
struct Conditions {
  std::string implementation;  ///< "latte/scan cpu"; empty for any
  Values settings;
  Values options;

  std::vector<std::string> texts() const;
};

std::vector<std::string> Conditions::texts() const {
  std::vector<std::string> all;
  if (!implementation.empty()) all.push_back(" " + implementation);
  for (const Values* values : {&settings, &options}) {
    for (const auto& [name, value] : *values) {
      // Not of a window or a fraction, without which more is measured than needed.
      if (value.is_string()) {
        all.push_back(" " + name + "=" + value.get<std::string>());
      } else if (value.is_number_integer() || value.is_boolean()) {
        all.push_back(" " + name + "=" + value.dump());
      }
    }
  }
  return all;
}

/// What tells the panel from others of its task.
Conditions of_panel(const Panel& panel, const result::CellRecord& cell) {
  Conditions conditions;
  for (const auto& [key, value] : panel.facet) {
    if (const Json* const own = find_value(cell.settings, key)) conditions.settings[key] = *own;
  }
  return conditions;
}

/// Adds what tells the series of `own` from others of its label. Whether there is any.
bool add_series(const Panel& panel, const Placed& own, Conditions& conditions) {
  const result::CellRecord& cell = *own.cell;
  bool any = false;
  for (const Placed& placed : panel.cells) {
    const result::CellRecord& other = *placed.cell;
    if (other.label != cell.label || placed.series == own.series) continue;
    any = true;
    if (other.implementation != cell.implementation || other.device != cell.device) {
      conditions.implementation = cell.mechanism + "/" + cell.implementation + " " + cell.device;
    }
    const Json* const stacked = find_value(cell.settings, stack);
    if (stacked != nullptr && stack_of(other) != stack_of(cell)) {
      conditions.settings[stack] = *stacked;
    }
    for (const auto& [key, value] : cell.options) {
      const Json* const others = find_value(other.options, key);
      if (others == nullptr || *others != value) conditions.options[key] = value;
    }
  }
  return any;
}

std::string expression(const std::string& task, const std::set<std::string>& labels,
                       const Conditions& conditions) {
  std::string names;
  for (const std::string& label : labels) names += (names.empty() ? "" : "|") + literal(label);
  if (labels.size() > 1) names = "(" + names + ")";
  std::string text = "^" + literal(task) + "  " + names + "  ";
  const std::vector<std::string> texts = conditions.texts();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    text += (i == 0 ? ".*" : "( .*)?") + literal(texts[i]);
  }
  return text + (texts.empty() ? "" : "( |$)");
}

/// Whether nothing changes along the series but its length, and what is always as long.
bool holds_all_else(const std::vector<const result::CellRecord*>& cells) {
  for (const Values result::CellRecord::*part :
       {&result::CellRecord::settings, &result::CellRecord::options}) {
    for (const auto& [key, first] : cells.front()->*part) {
      const auto every = [&, &key = key](const auto& is) {
        return std::all_of(cells.begin(), cells.end(), [&](const result::CellRecord* cell) {
          const Json* const value = find_value(cell->*part, key);
          return value != nullptr && is(*cell, *value);
        });
      };
      const bool constant =
          every([&first = first](const auto&, const Json& value) { return value == first; });
      const bool as_long = every([](const result::CellRecord& cell, const Json& value) {
        const auto length = value_of(cell, length_axis);
        return length && *length == value;
      });
      if (!constant && !as_long) return false;
    }
  }
  return true;
}

}  // namespace

std::string command_around(const Panel& panel, const CrossingStatement& crossing) {
  if (panel.axis != length_axis || crossing.crossing != CrossingKind::found) return "";
  const Placed* own = nullptr;
  std::set<std::string> exact;
  std::map<std::string, std::vector<const result::CellRecord*>> lines;
  for (const Placed& placed : panel.cells) {
    const bool is_own = placed.series == crossing.label;
    if (is_own && own == nullptr) own = &placed;
    if (!is_own && is_exact(*placed.cell)) exact.insert(placed.cell->label);
    if (is_own || is_exact(*placed.cell)) lines[placed.series].push_back(placed.cell);
  }
  if (own == nullptr || exact.empty()) return "";
  if (std::any_of(lines.begin(), lines.end(),
                  [](const auto& line) { return !holds_all_else(line.second); })) {
    return "";
  }
  Words words = call_of(panel, *own->cell);
  if (words.empty()) return "";
  const result::Timing* const timing = result::timing_of(*own->cell);
  const std::size_t rounds =
      std::max(least_rounds, timing == nullptr ? 0 : 2 * timing->rounds.size());
  const Conditions shared = of_panel(panel, *own->cell);
  Conditions further = shared;
  if (add_series(panel, *own, further)) {
    const std::string alone = expression(panel.task_label, {own->cell->label}, further);
    words.insert(words.end(), {"--only", alone});
  } else {
    exact.insert(own->cell->label);
  }
  words.insert(words.end(), {"--only", expression(panel.task_label, exact, shared)});
  words.insert(words.end(), {std::string("--") + length_axis, lengths_around(crossing), "--rounds",
                             std::to_string(rounds)});
  return text::shell_words(words);
}

}  // namespace attnbench::reports::verdict
