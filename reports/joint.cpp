#include "reports/joint.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "core/text/printable.hpp"
#include "reports/draw.hpp"
#include "reports/figures/end_labels.hpp"
#include "reports/figures/provenance.hpp"

namespace attnbench::reports {
namespace {

constexpr const char* separator = " · ";

/// The parts of a name, from the first that people want to see to the last resort.
std::vector<std::string> name_parts(const result::Result& result, std::size_t number) {
  constexpr std::size_t date = 10;
  constexpr std::size_t minutes = 16;
  constexpr std::size_t digits = 8;
  const std::string& at = result.run.finished_at;
  // Cut letters of a file that somebody edited are said by their bytes.
  std::vector<std::string> parts{text::printable(at.substr(0, date)),
                                 text::printable(result.provenance.commit.substr(0, digits))};
  if (at.size() >= minutes) {
    parts.push_back(text::printable(at.substr(date + 1, minutes - date - 1)));
  }
  parts.push_back("(" + std::to_string(number) + ")");
  return parts;
}

/// Whether all tell results apart. A name that begins another would be found in it, too.
bool are_apart(const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (std::size_t j = 0; j < names.size(); ++j) {
      if (i != j && names[j].starts_with(names[i])) return false;
    }
  }
  return true;
}

/// A series without the name of its result; nothing where it has another's.
std::optional<std::string> without(const std::string& series, const std::string& name) {
  // Options that vary within a label stand behind it.
  const std::size_t at = series.find(separator + name);
  if (at == std::string::npos) return std::nullopt;
  return series.substr(0, at) + series.substr(at + name.size() + std::string(separator).size());
}

/// Series without names → their lines, in the panel's order.
std::vector<std::pair<std::string, std::vector<std::string>>> lines_of(
    const Panel& panel, const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, std::vector<std::string>>> lines;
  for (const std::string& series : panel.series) {
    for (const std::string& name : names) {
      const auto plain = without(series, name);
      if (!plain) continue;
      const auto found = std::find_if(lines.begin(), lines.end(),
                                      [&](const auto& one) { return one.first == *plain; });
      if (found == lines.end()) {
        lines.emplace_back(*plain, std::vector{series});
      } else {
        found->second.push_back(series);
      }
    }
  }
  return lines;
}

/// Looks as in the figures of one result, which know the series without names.
Palette palette_of(const std::vector<Panel>& panels, const std::vector<std::string>& names) {
  std::vector<Panel> plain = panels;
  for (Panel& panel : plain) {
    panel.series.clear();
    for (Placed& placed : panel.cells) {
      for (const std::string& name : names) {
        const auto own = without(placed.series, name);
        if (!own) continue;
        placed.series = *own;
        break;
      }
      if (std::find(panel.series.begin(), panel.series.end(), placed.series) ==
          panel.series.end()) {
        panel.series.push_back(placed.series);
      }
    }
  }
  Palette palette(plain);
  for (const Panel& panel : panels) {
    for (const std::string& series : panel.series) {
      for (std::size_t i = 0; i < names.size(); ++i) {
        if (const auto own = without(series, names[i])) palette.add_again(series, *own, i);
      }
    }
  }
  return palette;
}

/// The panel in as few parts as its lines fit on one pair of axes, each colour once in a part,
/// since there the dash says the result.
std::vector<Panel> readable_parts(const Panel& panel, const std::vector<std::string>& names,
                                  const Palette& palette) {
  std::vector<Panel> parts;
  std::vector<std::set<std::string>> colours;
  for (const auto& [plain, lines] : lines_of(panel, names)) {
    const std::string& colour = palette.of(plain).colour;
    std::size_t at = 0;
    while (at < parts.size() && (colours[at].contains(colour) ||
                                 parts[at].series.size() + lines.size() > max_labelled)) {
      ++at;
    }
    if (at == parts.size()) {
      parts.push_back(panel);
      parts.back().series.clear();
      parts.back().cells.clear();
      colours.emplace_back();
    }
    colours[at].insert(colour);
    parts[at].series.insert(parts[at].series.end(), lines.begin(), lines.end());
  }
  for (Panel& part : parts) {
    const std::set<std::string> shown(part.series.begin(), part.series.end());
    std::copy_if(panel.cells.begin(), panel.cells.end(), std::back_inserter(part.cells),
                 [&](const Placed& placed) { return shown.contains(placed.series); });
  }
  return parts;
}

/// "Solid: 2026-01-02. Dashed: 2026-01-03."
std::string dashes_text(const std::vector<std::string>& names) {
  std::string text = " Solid: " + names.front() + ". Dashed";
  for (std::size_t i = 1; i < names.size(); ++i) text += (i == 1 ? ": " : ", ") + names[i];
  return text + ".";
}

/// `value` of the first result where all have the same, else nothing of it.
template <class Value>
auto shared(const std::vector<result::Result>& results, const Value& value) {
  const auto first = value(results.front());
  const bool all = std::all_of(results.begin(), results.end(),
                               [&](const result::Result& one) { return value(one) == first; });
  return all ? first : decltype(value(results.front()))();
}

}  // namespace

std::vector<std::string> names_apart(const std::vector<result::Result>& results) {
  std::vector<std::string> names(results.size());
  for (std::size_t length = 2;; ++length) {
    std::size_t longest = 0;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::vector<std::string> parts = name_parts(results[i], i + 1);
      longest = std::max(longest, parts.size());
      names[i].clear();
      for (std::size_t part = 0; part < std::min(length, parts.size()); ++part) {
        if (!parts[part].empty()) names[i] += (names[i].empty() ? "" : " ") + parts[part];
      }
    }
    if (are_apart(names) || length >= longest) return names;
  }
}

std::vector<std::string> brief_names(const std::vector<result::Result>& results) {
  constexpr std::size_t year = 5;
  for (const std::size_t part : {0, 1}) {  // the day, the commit
    std::vector<std::string> names;
    for (const result::Result& result : results) names.push_back(name_parts(result, 0)[part]);
    if (!are_apart(names)) continue;
    const bool one_year = std::all_of(names.begin(), names.end(), [&](const std::string& name) {
      return name.size() > year && name.substr(0, year) == names.front().substr(0, year);
    });
    if (part == 0 && one_year) {
      for (std::string& name : names) name.erase(0, year);
    }
    return names;
  }
  return names_apart(results);
}

result::Result joined(const std::vector<result::Result>& results,
                      const std::vector<std::string>& names) {
  std::map<std::string, std::set<std::size_t>> sources;
  for (std::size_t i = 0; i < results.size(); ++i) {
    for (const auto& cell : results[i].cells) sources[cell.id].insert(i);
  }
  std::vector<result::Result> used;
  std::vector<std::string> used_names;
  for (std::size_t i = 0; i < results.size(); ++i) {
    result::Result one = results[i];
    std::erase_if(one.cells, [&](const auto& cell) { return sources[cell.id].size() < 2; });
    if (one.cells.empty()) continue;
    used.push_back(std::move(one));
    used_names.push_back(names[i]);
  }
  result::Result joint;
  if (used.empty()) return joint;
  joint.suite.name = shared(used, [](const auto& one) { return one.suite.name; });
  joint.suite.profile = shared(used, [](const auto& one) { return one.suite.profile; });
  joint.suite.source = shared(used, [](const auto& one) { return one.suite.source; });
  joint.suite.notes = shared(used, [](const auto& one) { return one.suite.notes; });
  joint.machine.host = shared(used, [](const auto& one) { return one.machine.host; });
  joint.machine.cpu_model = shared(used, [](const auto& one) { return one.machine.cpu_model; });
  const Json devices = shared(used, [](const auto& one) { return Json(one.machine.devices); });
  if (!devices.is_null()) joint.machine.devices = used.front().machine.devices;
  joint.run.threads = shared(used, [](const auto& one) { return one.run.threads; });
  joint.suite.title = "";
  for (const std::string& name : names_apart(used)) {
    *joint.suite.title += (joint.suite.title->empty() ? "" : " beside ") + name;
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    for (const auto& [label, task] : used[i].suite.tasks) joint.suite.tasks.emplace(label, task);
    for (result::CellRecord& cell : used[i].cells) {
      cell.label += separator + used_names[i];
      joint.cells.push_back(std::move(cell));
    }
  }
  return joint;
}

std::vector<Figure> joint_figures(const result::Result& joint,
                                  const std::vector<std::string>& names) {
  const std::vector<Panel> all = panels(joint);
  const Palette palette = palette_of(all, names);
  std::vector<Figure> figures;
  for (const Panel& panel : all) {
    for (Panel& part : readable_parts(panel, names, palette)) {
      part.ranked = false;
      for (const char* name : {"time", "step_time", "memory", "state"}) {
        for (Figure& figure : draw(name, part, palette, {})) {
          figure.name = "side_by_side_" + figure.name;
          figure.caption += dashes_text(names);
          figures.push_back(std::move(figure));
        }
      }
    }
  }
  tell_titles_apart(figures);
  for (Figure& figure : figures) add_provenance(figure, joint);
  return figures;
}

}  // namespace attnbench::reports
