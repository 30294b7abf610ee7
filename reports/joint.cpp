#include "reports/joint.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>

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
  std::vector<std::string> parts{at.substr(0, date), result.provenance.commit.substr(0, digits)};
  if (at.size() >= minutes) parts.push_back(at.substr(date + 1, minutes - date - 1));
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

Palette palette_of(const std::vector<Panel>& panels, const std::vector<std::string>& names) {
  Palette palette;
  for (const Panel& panel : panels) {
    for (const Placed& placed : panel.cells) {
      for (std::size_t i = 0; i < names.size(); ++i) {
        const auto plain = without(placed.series, names[i]);
        if (!plain) continue;
        palette.add(*plain, placed.cell->mechanism);
        palette.add_again(placed.series, *plain, i);
      }
    }
  }
  return palette;
}

/// The panel with as many of its lines as fit on one pair of axes, as often as it takes.
std::vector<Panel> readable_parts(const Panel& panel, const std::vector<std::string>& names) {
  std::vector<Panel> parts;
  std::size_t room = 0;
  for (const auto& [plain, lines] : lines_of(panel, names)) {
    if (room < lines.size()) {
      parts.push_back(panel);
      parts.back().series.clear();
      parts.back().cells.clear();
      room = max_labelled;
    }
    room -= std::min(room, lines.size());
    Panel& part = parts.back();
    part.series.insert(part.series.end(), lines.begin(), lines.end());
  }
  for (Panel& part : parts) {
    const std::set<std::string> shown(part.series.begin(), part.series.end());
    std::copy_if(panel.cells.begin(), panel.cells.end(), std::back_inserter(part.cells),
                 [&](const Placed& placed) { return shown.contains(placed.series); });
  }
  return parts;
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
  for (std::size_t part = 0; part < 2; ++part) {
    std::vector<std::string> names;
    for (const result::Result& result : results) names.push_back(name_parts(result, 0)[part]);
    if (are_apart(names)) return names;
  }
  return names_apart(results);
}

result::Result joined(const std::vector<result::Result>& results,
                      const std::vector<std::string>& names) {
  std::map<std::string, std::set<std::size_t>> sources;
  for (std::size_t i = 0; i < results.size(); ++i) {
    for (const auto& cell : results[i].cells) sources[cell.id].insert(i);
  }
  result::Result joint;
  joint.suite = results.front().suite;
  joint.suite.labels.reset();
  joint.suite.title = "";
  for (const std::string& name : names_apart(results)) {
    *joint.suite.title += (joint.suite.title->empty() ? "" : " beside ") + name;
  }
  joint.machine = results.front().machine;
  joint.ceilings = results.front().ceilings;
  joint.run.threads = results.front().run.threads;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].machine.cpu_model != joint.machine.cpu_model) joint.machine = {};
    if (results[i].run.threads != joint.run.threads) joint.run.threads.reset();
    for (const auto& [label, task] : results[i].suite.tasks) joint.suite.tasks.emplace(label, task);
    for (result::CellRecord cell : results[i].cells) {
      if (sources[cell.id].size() < 2) continue;
      cell.label += separator + names[i];
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
    for (Panel& part : readable_parts(panel, names)) {
      part.ranked = false;
      for (const char* name : {"time", "step_time", "memory", "state"}) {
        for (Figure& figure : draw(name, part, palette, {})) {
          figure.name = "side_by_side_" + figure.name;
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
