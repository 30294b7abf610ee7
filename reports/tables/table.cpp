#include "reports/tables/table.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "reports/tables/grid.hpp"
#include "core/text/printable.hpp"
#include "core/result/record.hpp"

namespace attnbench::result {
namespace {

std::string repeat(const std::string& piece, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += piece;
  return text;
}

/// A middle dot is the one letter of notes that ASCII has not.
std::string plain(std::string text, Letters letters) {
  const std::string dot = "·";
  for (std::size_t at = 0; letters == Letters::ascii && (at = text.find(dot)) != text.npos;) {
    text.replace(at, dot.size(), "*");
  }
  return text;
}

/// As many columns as fit, then the rest below under the same labels.
std::string draw(const Grid& grid, const std::string& axis, const TableStyle& style) {
  std::size_t label_width = display_width(axis);
  for (const auto& row : grid.rows) label_width = std::max(label_width, display_width(row.first));
  label_width = std::min(label_width, std::max<std::size_t>(12, style.width * 2 / 5));
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < grid.columns.size(); ++i) {
    widths.push_back(display_width(grid.columns[i]));
    for (const auto& row : grid.rows) {
      widths[i] = std::max(widths[i], display_width(row.second[i]));
    }
  }
  const std::string rule = style.letters == Letters::utf8 ? "─" : "-";
  std::string text;
  for (std::size_t begin = 0; begin < grid.columns.size();) {
    std::size_t end = begin;
    std::size_t used = label_width;
    while (end < widths.size() && (end == begin || used + 2 + widths[end] <= style.width)) {
      used += 2 + widths[end++];
    }
    const auto line = [&](const std::string& name, const std::vector<std::string>& texts) {
      std::string content = pad_right(shorten(name, label_width, style.letters), label_width);
      for (std::size_t i = begin; i < end; ++i) content += "  " + pad_left(texts[i], widths[i]);
      content.erase(content.find_last_not_of(' ') + 1);
      return content + "\n";
    };
    if (begin > 0) text += '\n';
    text.append(shorten(grid.title, style.width, style.letters)).append("\n");
    if (begin == 0) {
      const std::string note = plain(grid.note, style.letters);
      for (const std::string& noted : wrap(note, style.width)) text.append(noted).append("\n");
    }
    text.append(line(axis, grid.columns));
    text.append(repeat(rule, std::min(used, style.width))).append("\n");
    for (const auto& row : grid.rows) text += line(row.first, row.second);
    begin = end;
  }
  return text;
}

}  // namespace

std::string table(const Json& result, const TableStyle& style) {
  std::string text;
  for (const Panel& panel : panels(result)) {
    if (!text.empty()) text += '\n';
    text += panel.task_label;
    if (!panel.facet.empty()) text += ", " + panel.facet_text();
    text += '\n';
    for (const Grid& grid : grids_of(panel, style.letters)) {
      text.append("\n").append(draw(grid, panel.axis, style));
    }
    const std::vector<Finding> findings = findings_of(panel);
    if (!findings.empty()) text += '\n';
    for (const Finding& finding : findings) {
      text.append("  ").append(finding.series);
      if (!finding.places.empty()) text.append(" at ").append(finding.places);
      text.append(": ")
          .append(finding.status)
          .append(": ")
          .append(quotable(finding.reason, 600))
          .append("\n");
    }
  }
  return text;
}

namespace {

std::ptrdiff_t count_of(const Json& cells, const std::string& status) {
  return std::count_if(cells.begin(), cells.end(), [&](const Json& cell) {
    return cell["status"].get_ref<const std::string&>() == status;
  });
}

}  // namespace

std::string disturbed_line(const Json& result, const std::string& folder) {
  const auto count = count_of(result["attnbench"]["cells"], "disturbed");
  if (count == 0) return "";
  return std::to_string(count) + (count == 1 ? " cell was" : " cells were") +
         " disturbed by other work on this machine and " + (count == 1 ? "is" : "are") +
         " not ranked; when it is quiet: attnbench run --resume " + folder + " --retry disturbed";
}

std::string status_line(const Json& result) {
  const Json& cells = result["attnbench"]["cells"];
  std::string text = std::to_string(cells.size()) + (cells.size() == 1 ? " cell" : " cells");
  std::string separator = ": ";
  for (const std::string& word : status_words()) {
    const auto count = count_of(cells, word);
    if (count == 0) continue;
    text += separator + std::to_string(count) + " " + word;
    separator = ", ";
  }
  return text;
}

}  // namespace attnbench::result
