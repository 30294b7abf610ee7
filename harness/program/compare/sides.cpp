#include "harness/program/compare/sides.hpp"

#include <map>
#include <utility>

#include "core/failure.hpp"
#include "harness/program/run/folder/combine.hpp"
#include "reports/tables/layout.hpp"

namespace attnbench::compare {
namespace {

/// The values of a cell's axes, less those in which the sides differ on purpose.
std::map<std::string, Json> axes_of(const Cell& cell, const MatchRule& rule) {
  const result::CellRecord record = run::planned_record(cell, {});
  std::map<std::string, Json> values;
  for (const std::string& name : cell.varies.value_or(std::vector<std::string>{})) {
    if (rule.ignored.contains(name)) continue;
    values[name] = reports::value_of(record, name).value_or(Json());
  }
  return values;
}

std::string key_of(const Cell& cell, const MatchRule& rule) {
  return Json{cell.task_label, cell.device, rule.by_label ? cell.label : "", axes_of(cell, rule)}
      .dump();
}

std::string name_of(const Cell& cell, const MatchRule& rule) {
  std::string name = cell.task_label + (rule.by_label ? " " + cell.label : "");
  for (const auto& [key, value] : axes_of(cell, rule)) {
    const std::string part = reports::label_part(key, value);
    name += part.empty() ? part : part.substr(1);  // without the comma
  }
  return name;
}

std::map<std::string, const Cell*> by_key(const std::vector<Cell>& cells, const MatchRule& rule) {
  std::map<std::string, const Cell*> found;
  for (const Cell& cell : cells) {
    if (found.emplace(key_of(cell, rule), &cell).second) continue;
    throw UsageFailure("ab: several cells of one side are \"" + name_of(cell, rule) +
                       "\": give each option in which the sides differ one value");
  }
  return found;
}

void take_turns(Matched& matched, const Cell& base, const Cell& changed, const MatchRule& rule) {
  Cell first = base;
  Cell second = changed;
  Cell control = base;
  first.id += "-base";
  second.id += "-new";
  control.id += "-again";
  if (rule.by_label) second.label += ", new";
  control.label += ", again";
  matched.matches.push_back({name_of(base, rule), first.id, second.id, control.id});
  for (Cell* cell : {&first, &second, &control}) matched.cells.push_back(std::move(*cell));
}

}  // namespace

Matched match_cells(const std::vector<Cell>& base, const std::vector<Cell>& changed,
                    const MatchRule& rule) {
  const auto before = by_key(base, rule);
  const auto after = by_key(changed, rule);
  Matched matched;
  for (const Cell& cell : base) {
    const auto found = after.find(key_of(cell, rule));
    if (found == after.end()) {
      matched.missing.push_back({name_of(cell, rule), false});
    } else if (rule.one_build && found->second->id == cell.id) {
      ++matched.equal;
    } else {
      take_turns(matched, cell, *found->second, rule);
    }
  }
  for (const Cell& cell : changed) {
    if (!before.contains(key_of(cell, rule))) {
      matched.missing.push_back({name_of(cell, rule), true});
    }
  }
  return matched;
}

ATTNBENCH_JSON_CODEC(UnmatchedCell) {
  JSON_AT(name);
  JSON_USUAL(added);
}

ATTNBENCH_JSON_CODEC(SidesPlan) {
  JSON_MAYBE(suite);
  JSON_AT(base);
  json.at("new", value.changed);
  JSON_AT(control, gate);
  JSON_MAYBE(matches, missing, builds);
}

std::set<std::string> SidesPlan::cells_of_second() const {
  std::set<std::string> ids;
  if (builds.size() < 2) return ids;
  for (const Match& match : matches) ids.insert(match.changed);
  return ids;
}

void add_missing(Comparison& comparison, const std::vector<UnmatchedCell>& missing) {
  for (const UnmatchedCell& one : missing) {
    Pair pair;
    pair.name = one.name;
    pair.verdict = one.added ? SpeedVerdict::added : SpeedVerdict::gone;
    pair.reason = one.added ? "the base has no such cell" : "the new side has no such cell";
    comparison.pairs.push_back(std::move(pair));
  }
}

}  // namespace attnbench::compare
