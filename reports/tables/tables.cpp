#include "reports/tables/tables.hpp"

#include <array>

#include "reports/tables/grid.hpp"
#include "reports/figures/escape.hpp"
#include "reports/figures/points.hpp"
#include "reports/figures/spec.hpp"

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
  line.append(escape_markdown(name)).append(" |");
  for (const std::string& text : texts) line.append(" ").append(escape_markdown(text)).append(" |");
  return line.append("\n");
}

std::string latex_row(const std::string& name, const std::vector<std::string>& texts) {
  std::string line = escape_latex(name);
  for (const std::string& text : texts) line.append(" & ").append(escape_latex(text));
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
  line += escape_csv(text);
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
      text.append("**").append(escape_markdown(heading(panel, grid))).append("**\n\n");
      text.append(markdown_row(axis_title(panel.axis), grid.columns)).append("|:--|");
      for (std::size_t i = 0; i < grid.columns.size(); ++i) text += "--:|";
      text += "\n";
      for (const auto& [name, texts] : grid.rows) text += markdown_row(name, texts);
      text += "\n";
    }
    const auto findings = result::findings_of(panel);
    for (const Finding& finding : findings) {
      text.append("- ").append(escape_markdown(finding_text(finding))).append("\n");
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
      text.append(escape_latex(heading(panel, grid))).append("}\n\\begin{tabular}{l");
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
