#include "reports/tables/tables.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/result/record.hpp"
#include "core/text/printable.hpp"
#include "reports/figures/points.hpp"
#include "reports/figures/spec.hpp"
#include "reports/tables/grid.hpp"

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

std::ptrdiff_t count_of(const Json& cells, const std::string& status) {
  return std::count_if(cells.begin(), cells.end(), [&](const Json& cell) {
    return cell["status"].get_ref<const std::string&>() == status;
  });
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

namespace attnbench::reports {
namespace {

using result::Finding;
using result::Grid;
using result::Panel;

std::string heading(const Panel& panel, const Grid& grid) {
  std::string text = panel.task_label + ": " + grid.title;
  const std::string shared = shared_settings(panel);
  if (!shared.empty()) text.append(" (").append(shared).append(")");
  if (!panel.facet.empty()) text.append(", ").append(panel.facet_text());
  if (!grid.note.empty()) text.append(": ").append(grid.note);
  return text;
}

std::string finding_text(const Finding& finding) {
  std::string text = finding.series;
  if (!finding.places.empty()) text.append(" at ").append(finding.places);
  return text.append(": ").append(finding.status).append(": ").append(finding.reason);
}

std::string markdown_row(const std::string& name, const std::vector<std::string>& texts) {
  std::string line = "| ";
  line.append(result::escape_markdown(name)).append(" |");
  for (const std::string& text : texts)
    line.append(" ").append(result::escape_markdown(text)).append(" |");
  return line.append("\n");
}

std::string latex_row(const std::string& name, const std::vector<std::string>& texts) {
  std::string line = result::escape_latex(name);
  for (const std::string& text : texts) line.append(" & ").append(result::escape_latex(text));
  return line.append(" \\\\\n");
}

/// Where a column's number (or word) is in a record: part and key. Timings are looked up apart.
struct Column {
  const char* name;
  const char* part;
};

constexpr std::array<Column, 15> number_columns{{{"input_bytes", "memory"},
                                                 {"output_bytes", "memory"},
                                                 {"saved_bytes", "memory"},
                                                 {"workspace_bytes", "memory"},
                                                 {"peak_bytes", "memory"},
                                                 {"state_bytes", "metrics"},
                                                 {"crossover_length", "metrics"},
                                                 {"crossover_length_low", "metrics"},
                                                 {"crossover_length_high", "metrics"},
                                                 {"efficiency_length", "metrics"},
                                                 {"verdict", "crossover"},
                                                 {"against", "crossover"},
                                                 {"model_flops", "cost"},
                                                 {"floor_seconds", "roofline"},
                                                 {"share", "roofline"}}};
constexpr std::array<const char*, 13> size_columns{
    "batch",    "heads",     "kv_heads",      "length",           "key_length",
    "head_dim", "value_dim", "latents_total", "latents_per_head", "pattern",
    "scope",    "dtype",     "autocast"};
constexpr std::array<const char*, 6> time_columns{"median_seconds",  "low_seconds",
                                                  "high_seconds",    "interval",
                                                  "minimum_seconds", "calibrated_median_seconds"};

std::string plain(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void field(std::string& line, const std::string& text) {
  if (!line.empty()) line += ',';
  line += result::escape_csv(text);
}

void field_of(std::string& line, const Json& object, const char* key) {
  field(line, object.is_object() && object.contains(key) ? plain(object[key]) : "");
}

std::string csv_line(const Json& cell, const std::string& what, const Json& timing) {
  std::string line = cell["id"].get<std::string>();
  for (const char* key : {"label", "task_label", "mechanism"}) field_of(line, cell, key);
  const Json chosen = cell.value("chosen", Json::object());
  field(line, chosen.value("implementation", cell.value("implementation", std::string())));
  field_of(line, cell, "device");
  const Json problem = cell.value("problem", Json::object());
  for (const char* key : size_columns) {
    const Json* value = result::value_of(cell, key);
    if (problem.contains(key)) value = &problem[key];
    field(line, value ? plain(*value) : "");
  }
  field(line, cell["options"].dump());
  field_of(line, cell, "status");
  field_of(line, cell, "reason");
  field(line, what);
  for (const char* key : time_columns) field_of(line, timing, key);
  field(line, timing.is_object() ? std::to_string(timing["rounds"].size()) : "");
  for (const Column& column : number_columns) {
    field_of(line, cell.value(column.part, Json::object()), column.name);
  }
  field_of(line, cell.value("roofline", Json::object()), "bound");
  return line + "\n";
}

}  // namespace

std::string markdown_tables(const Json& result) {
  std::string text;
  for (const Panel& panel : result::panels(result)) {
    for (const Grid& grid : result::grids_of(panel, result::Letters::utf8)) {
      text.append("**").append(result::escape_markdown(heading(panel, grid))).append("**\n\n");
      text.append(markdown_row(axis_title(panel.axis), grid.columns)).append("|:--|");
      for (std::size_t i = 0; i < grid.columns.size(); ++i) text += "--:|";
      text += "\n";
      for (const auto& [name, texts] : grid.rows) text += markdown_row(name, texts);
      text += "\n";
    }
    const auto findings = result::findings_of(panel);
    for (const Finding& finding : findings) {
      text.append("- ").append(result::escape_markdown(finding_text(finding))).append("\n");
    }
    if (!findings.empty()) text += "\n";
  }
  return text;
}

std::string latex_tables(const Json& result) {
  std::string text = "% needs \\usepackage{booktabs}\n";
  for (const Panel& panel : result::panels(result)) {
    for (const Grid& grid : result::grids_of(panel, result::Letters::utf8)) {
      text.append("\\begin{table}\n\\centering\n\\caption{");
      text.append(result::escape_latex(heading(panel, grid))).append("}\n\\begin{tabular}{l");
      text.append(grid.columns.size(), 'r').append("}\n\\toprule\n");
      text.append(latex_row(axis_title(panel.axis), grid.columns)).append("\\midrule\n");
      for (const auto& [name, texts] : grid.rows) text += latex_row(name, texts);
      text += "\\bottomrule\n\\end{tabular}\n\\end{table}\n\n";
    }
  }
  return text;
}

std::string csv_table(const Json& result) {
  std::string text = "id,label,task,mechanism,implementation,device";
  for (const char* column : size_columns) field(text, column);
  text += ",options,status,reason,timing";
  for (const char* column : time_columns) field(text, column);
  text += ",rounds";
  for (const Column& column : number_columns) field(text, column.name);
  text += ",bound\n";
  for (const Json& cell : result["attnbench"]["cells"]) {
    const Json timings = cell.value("timing", Json::object());
    for (const auto& [what, timing] : timings.items()) text += csv_line(cell, what, timing);
    if (timings.empty()) text += csv_line(cell, "", nullptr);
  }
  return text;
}

}  // namespace attnbench::reports
