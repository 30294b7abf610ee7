#include "reports/tables/tables.hpp"

#include <algorithm>
#include <vector>

#include "core/text/colour.hpp"
#include "core/text/printable.hpp"
#include "reports/tables/conditions.hpp"
#include "reports/tables/grid.hpp"

namespace attnbench::reports {
namespace {

std::string repeat(const std::string& piece, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += piece;
  return text;
}

/// A middle dot is the only letter of notes that ASCII lacks.
std::string plain(std::string text, text::Letters letters) {
  const std::string dot = "·";
  for (std::size_t at = 0; letters == text::Letters::ascii && (at = text.find(dot)) != text.npos;) {
    text.replace(at, dot.size(), "*");
  }
  return text;
}

/// `text`, without control characters where escape sequences of ours stand beside it.
std::string safe(const std::string& text, const TableStyle& style) {
  return style.colour ? text::printable(text, text::Breaks::kept) : text;
}

}  // namespace

std::string table(const Grid& grid, const std::string& axis, const TableStyle& style) {
  std::size_t label_width = text::display_width(axis);
  for (const auto& row : grid.rows)
    label_width = std::max(label_width, text::display_width(row.first));
  label_width = std::min(label_width, std::max<std::size_t>(12, style.width * 2 / 5));
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < grid.columns.size(); ++i) {
    widths.push_back(text::display_width(grid.columns[i]));
    for (const auto& row : grid.rows) {
      widths[i] = std::max(widths[i], text::display_width(row.second[i]));
    }
  }
  const std::string rule = style.letters == text::Letters::utf8 ? "─" : "-";
  std::string text;
  for (std::size_t begin = 0; begin < grid.columns.size();) {
    std::size_t end = begin;
    std::size_t used = label_width;
    while (end < widths.size() && (end == begin || used + 2 + widths[end] <= style.width)) {
      used += 2 + widths[end++];
    }
    const auto line = [&](const std::string& name, const std::vector<std::string>& texts) {
      std::string content =
          text::pad_right(text::shorten(name, label_width, style.letters), label_width);
      for (std::size_t i = begin; i < end; ++i)
        content += "  " + text::pad_left(texts[i], widths[i]);
      content.erase(content.find_last_not_of(' ') + 1);
      return content + "\n";
    };
    const auto row_line = [&](std::size_t row) {
      const auto& [name, texts] = grid.rows[row];
      if (!style.colour) return line(name, texts);
      std::string content = text::printable(
          text::pad_right(text::shorten(name, label_width, style.letters), label_width));
      for (std::size_t i = begin; i < end; ++i) {
        const std::string padded = text::printable(text::pad_left(texts[i], widths[i]));
        const bool best = grid.best.count({row, i}) != 0;
        content += "  " + (best ? text::coloured(padded, text::Colour::bold) : padded);
      }
      return content + "\n";
    };
    if (begin > 0) text += '\n';
    for (const std::string& titled : text::wrap(grid.title, style.width)) {
      if (titled.empty()) continue;
      text.append(safe(titled, style)).append("\n");
    }
    if (begin == 0) {
      const std::string note = plain(grid.note, style.letters);
      for (const std::string& noted : text::wrap(note, style.width)) {
        text.append(safe(noted, style)).append("\n");
      }
    }
    text.append(safe(line(axis, grid.columns), style));
    text.append(repeat(rule, std::min(used, style.width))).append("\n");
    for (std::size_t row = 0; row < grid.rows.size(); ++row) text += row_line(row);
    begin = end;
  }
  return text;
}

namespace {

std::string heading_of(const Panel& panel) {
  const std::string facet = panel.facet_text();
  return panel.task_label + (facet.empty() ? "" : ", " + facet);
}

/// A line for each series and reason.
std::string findings_text(const Panel& panel, const TableStyle& style) {
  std::string text;
  for (const SeriesFailure& finding : findings_of(panel)) {
    std::string line = "  " + finding.series;
    if (!finding.places.empty()) line += " at " + finding.places;
    line += ": " + finding.status + ": " + text::quotable(finding.reason, 600);
    text += safe(line, style) + '\n';
  }
  return text;
}

std::ptrdiff_t count_of(const result::Result& result, Status status) {
  return std::count_if(result.cells.begin(), result.cells.end(),
                       [&](const result::CellRecord& cell) { return cell.status == status; });
}

}  // namespace

std::string table(const result::Result& result, const TableStyle& style) {
  std::string text;
  for (const Panel& panel : panels(result)) {
    if (!text.empty()) text += '\n';
    text += safe(heading_of(panel), style) + '\n';
    for (const Grid& grid : grids_of(panel, style.letters)) {
      text.append("\n").append(table(grid, panel.axis, style));
    }
    const std::string findings = findings_text(panel, style);
    if (!findings.empty()) text += '\n' + findings;
  }
  return text;
}

std::string failures(const result::Result& result, const TableStyle& style) {
  std::string text;
  for (const Panel& panel : panels(result)) {
    const std::string findings = findings_text(panel, style);
    if (!findings.empty()) text += safe(heading_of(panel), style) + "\n" + findings;
  }
  return text;
}

std::string disturbed_line(const result::Result& result, const std::string& folder) {
  const auto count = count_of(result, Status::disturbed);
  if (count == 0) return "";
  return std::to_string(count) + (count == 1 ? " cell was" : " cells were") +
         " disturbed by other work on this machine and " + (count == 1 ? "is" : "are") +
         " not ranked; when it is quiet: attnbench run --resume " + folder + " --retry disturbed";
}

std::string status_line(const result::Result& result) {
  const std::size_t cells = result.cells.size();
  std::string text = std::to_string(cells) + (cells == 1 ? " cell" : " cells");
  std::string separator = ": ";
  for (const std::string& word : status_words()) {
    const auto count = count_of(result, *status_from(word));
    if (count == 0) continue;
    text += separator + std::to_string(count) + " " + word;
    separator = ", ";
  }
  return text;
}

}  // namespace attnbench::reports

namespace attnbench::reports {
namespace {

std::string heading(const Panel& panel, const Grid& grid) {
  std::string text = panel.task_label + ": " + grid.title;
  const std::string shared = shared_settings(panel);
  if (!shared.empty()) text.append(" (").append(shared).append(")");
  if (!panel.facet.empty()) text.append(", ").append(panel.facet_text());
  if (!grid.note.empty()) text.append(": ").append(grid.note);
  return text;
}

std::string finding_text(const SeriesFailure& finding) {
  std::string text = finding.series;
  if (!finding.places.empty()) text.append(" at ").append(finding.places);
  return text.append(": ").append(finding.status).append(": ").append(finding.reason);
}

std::string markdown_row(const std::string& name, const std::vector<std::string>& texts) {
  std::string line = "| ";
  line.append(text::escape_markdown(name)).append(" |");
  for (const std::string& text : texts)
    line.append(" ").append(text::escape_markdown(text)).append(" |");
  return line.append("\n");
}

std::string latex_row(const std::string& name, const std::vector<std::string>& texts) {
  std::string line = text::escape_latex(name);
  for (const std::string& text : texts) line.append(" & ").append(text::escape_latex(text));
  return line.append(" \\\\\n");
}

}  // namespace

std::string markdown_tables(const result::Result& result) {
  std::string text;
  for (const Panel& panel : panels(result)) {
    for (const Grid& grid : grids_of(panel, text::Letters::utf8)) {
      text.append("**").append(text::escape_markdown(heading(panel, grid))).append("**\n\n");
      text.append(markdown_row(axis_title(panel.axis), grid.columns)).append("|:--|");
      for (std::size_t i = 0; i < grid.columns.size(); ++i) text += "--:|";
      text += "\n";
      for (const auto& [name, texts] : grid.rows) text += markdown_row(name, texts);
      text += "\n";
    }
    const auto findings = findings_of(panel);
    for (const SeriesFailure& finding : findings) {
      text.append("- ").append(text::escape_markdown(finding_text(finding))).append("\n");
    }
    if (!findings.empty()) text += "\n";
  }
  return text;
}

std::string latex_tables(const result::Result& result) {
  std::string text = "% needs \\usepackage{booktabs}\n";
  for (const Panel& panel : panels(result)) {
    for (const Grid& grid : grids_of(panel, text::Letters::utf8)) {
      text.append("\\begin{table}\n\\centering\n\\caption{");
      text.append(text::escape_latex(heading(panel, grid))).append("}\n\\begin{tabular}{l");
      text.append(grid.columns.size(), 'r').append("}\n\\toprule\n");
      text.append(latex_row(axis_title(panel.axis), grid.columns)).append("\\midrule\n");
      for (const auto& [name, texts] : grid.rows) text += latex_row(name, texts);
      text += "\\bottomrule\n\\end{tabular}\n\\end{table}\n\n";
    }
  }
  return text;
}

}  // namespace attnbench::reports
