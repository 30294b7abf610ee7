#include "reports/page/page.hpp"

#include <algorithm>
#include <cctype>

#include "core/result/blas.hpp"
#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "reports/figures/points.hpp"
#include "reports/figures/spec.hpp"
#include "reports/figures/verdicts.hpp"
#include "reports/tables/grid.hpp"
#include "reports/tables/tables.hpp"

namespace attnbench::reports {

extern const char* const page_style;   // reports/page/page.css, embedded by the build
extern const char* const page_script;  // reports/page/page.js: draws every figure, again when the
                                       // reader's theme or the page's width class changes

namespace {

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::string element(const std::string& name, const std::string& text,
                    const std::string& attributes = "") {
  return "<" + name + attributes + ">" + result::escape_html(text) + "</" + name + ">";
}

std::string spaced(std::string text) {
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

/// A key without the unit that its value's text says already.
std::string fact_name(std::string key) {
  for (const std::string unit :
       {"_flops_per_second", "_bytes_per_second", "_per_second", "_bytes", "_seconds", "_hz"}) {
    if (ends_with(key, unit)) return spaced(key.substr(0, key.size() - unit.size()));
  }
  return spaced(std::move(key));
}

/// A value as a person would read it in a list of facts.
std::string fact_text(const std::string& key, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() && ends_with(key, "_bytes")) {
    return result::human_bytes(value.get<double>());
  }
  if (value.is_number() && ends_with(key, "_hz")) {
    return result::human_count(value.get<double>()) + "Hz";
  }
  if (value.is_number() && ends_with(key, "_seconds")) {
    return result::human_seconds(value.get<double>());
  }
  if (!value.is_structured()) return value.dump();
  std::string text;
  for (const auto& [name, part] : value.items()) {
    const std::string inner = fact_text(name, part);
    if (inner.empty()) continue;
    if (!text.empty()) text += value.is_object() ? "; " : ", ";
    if (value.is_object()) text += fact_name(name) + " ";
    text += part.is_structured() && value.is_array() ? "(" + inner + ")" : inner;
  }
  return text;
}

std::string fact_rows(const Json& object) {
  std::string html;
  for (const auto& [key, value] : object.items()) {
    const std::string text = fact_text(key, value);
    if (text.empty()) continue;
    html += "<tr>" + element("td", fact_name(key)) + element("td", text) + "</tr>\n";
  }
  return html;
}

std::string fact_table(const std::string& title, const std::string& rows) {
  if (rows.empty()) return "";
  return element("h3", title) + "\n<div class=\"scroll\"><table class=\"words\">\n" + rows +
         "</table></div>\n";
}

std::string grid_html(const std::string& axis, const result::Grid& grid) {
  std::string html = element("h3", grid.title);
  if (!grid.note.empty()) html += "\n" + element("p", grid.note, " class=\"dim\"");
  html += "\n<div class=\"scroll\"><table>\n<tr>" + element("th", axis);
  for (const std::string& column : grid.columns) html += element("th", column);
  html += "</tr>\n";
  for (const auto& [name, texts] : grid.rows) {
    html += "<tr>" + element("td", name);
    for (const std::string& text : texts) html += element("td", text);
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

std::string note(const std::string& text) { return element("p", text, " class=\"note\"") + "\n"; }

std::string machine_line(const Json& ours) {
  const Json& machine = ours["machine"];
  std::string text;
  const auto add = [&](const std::string& part) {
    if (part.empty()) return;
    if (!text.empty()) text += ", ";
    text += part;
  };
  const Json devices = machine.value("devices", Json::object());
  for (const auto& [word, card] : devices.items()) {
    add(card.value("name", word) + " (" + word + ")");
  }
  add(fact_text("", machine.value("cpu_model", Json(""))));
  const Json threads = ours["run"].value("threads", Json());
  if (threads.is_number()) add(threads.dump() + (threads == 1 ? " thread" : " threads"));
  const int jobs = ours["run"].value("jobs", 1);
  if (jobs > 1) add(std::to_string(jobs) + " trainings at a time");
  add(fact_text("", machine.value("host", Json(""))));
  add(ours["run"].value("started_at", ""));
  return text;
}

bool same_letter(char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; }

/// Text that may stand inside of a script element. Only what ends the element or opens a comment is
/// changed, into what means the same in JSON, in strings and in regular expressions: a plain "</"
/// also comes up in code, where a backslash would break it.
std::string in_script(std::string text) {
  for (const std::string end : {"</script", "<!--"}) {
    auto found = text.begin();
    while ((found = std::search(found, text.end(), end.begin(), end.end(), same_letter)) !=
           text.end()) {
      const auto at = found - text.begin();
      text.replace(static_cast<std::size_t>(at), 1, "\\u003c");
      found = text.begin() + at;
    }
  }
  return text;
}

/// An SVG file's element, without the XML declaration that HTML does not want.
std::string svg_element(const std::string& svg) {
  const std::size_t begin = svg.find("<svg");
  return begin == std::string::npos ? "" : svg.substr(begin);
}

std::string figure_html(const Figure& figure, const std::string& svg, const std::string& id,
                        bool drawn) {
  std::string html = "<figure>\n<h4>" + result::escape_html(figure.title) + "</h4>\n";
  const std::string still = svg_element(svg);
  if (drawn) {
    html += "<script type=\"application/json\" id=\"" + id + "\">" + in_script(figure.spec.dump()) +
            "</script>\n<div class=\"plot\" data-spec=\"" + id + "\"></div>\n";
    if (!still.empty()) {
      html += "<noscript><div class=\"still\">" + still + "</div></noscript>\n";
    }
  } else if (!still.empty()) {
    html += "<div class=\"still\">" + still + "</div>\n";
  }
  html += "<figcaption>" + result::escape_html(figure.caption);
  if (drawn) html += " Choose in the legend what to show, several with Shift.";
  return html + "</figcaption>\n</figure>\n";
}

std::string section_html(const Section& section, std::size_t number, bool drawn,
                         const std::string& message) {
  std::string html = "<section id=\"result-" + std::to_string(number) + "\">\n";
  html += header_html(section.result);
  const std::string verdicts = verdicts_html(section.verdicts);
  if (!verdicts.empty()) html += "<h2>Verdicts</h2>\n" + verdicts;
  if (!section.figures.empty()) html += "<h2>Figures</h2>\n";
  if (!message.empty()) html += "<p class=\"note\">" + result::escape_html(message) + "</p>\n";
  std::string group;
  for (std::size_t i = 0; i < section.figures.size(); ++i) {
    const bool pictured = drawn || !section.svg[i].empty();
    const std::string id = "spec-" + std::to_string(number) + "-" + std::to_string(i);
    if (!pictured) continue;
    if (section.figures[i].group != group) {
      group = section.figures[i].group;
      html += "<h3>" + result::escape_html(group) + "</h3>\n<p class=\"dim\">" +
              result::escape_html(section.figures[i].subtitle) + "</p>\n";
    }
    html += figure_html(section.figures[i], section.svg[i], id, drawn);
  }
  html += "<h2>Tables</h2>\n" + tables_html(section.result);
  html += "<h2>What is not ok, and why</h2>\n" + statuses_html(section.result);
  html += "<h2>How it was measured</h2>\n" + facts_html(section.result);
  return html + "<p class=\"dim\">From " + result::escape_html(section.source) +
         "</p>\n</section>\n";
}

std::string title_of(const Section& section) {
  const Json& suite = section.result["attnbench"]["suite"];
  return suite.value("title", suite.value("name", std::string("attnbench")));
}

}  // namespace

std::string header_html(const Json& result) {
  const Json& ours = result["attnbench"];
  const Json& suite = ours["suite"];
  const std::string name = suite.value("name", "attnbench");
  std::string html = element("h1", suite.value("title", name)) + "\n";
  if (suite.contains("source")) html += element("p", suite["source"].get<std::string>()) + "\n";
  std::string about = "suite " + name;
  const std::string profile = suite.value("profile", "");
  if (!profile.empty()) about += ", profile " + profile;
  html += element("p", about + ". " + result::status_line(result) + ".", " class=\"dim\"") + "\n";
  html += element("p", machine_line(ours), " class=\"dim\"") + "\n";
  const std::string state = ours["run"].value("state", "complete");
  if (state != "complete") {
    const std::string reason = ours["run"].value("reason", "");
    html += note("This run is not complete: " + state + (reason.empty() ? "" : ", " + reason) +
                 ". What was measured until then is here.");
  }
  const std::string slow_blas =
      result::blas_warning(ours["ceilings"].value("cpu", Json::object()), ours["machine"]);
  if (!slow_blas.empty()) html += element("p", slow_blas, " class=\"note bad\"") + "\n";
  for (const Json& spoiler : ours["machine"].value("spoilers", Json::array())) {
    html += note(fact_text("", spoiler));
  }
  return html;
}

std::string tables_html(const Json& result) {
  std::string html;
  for (const result::Panel& panel : result::panels(result)) {
    std::string shared = shared_settings(panel);
    if (!panel.facet.empty()) shared += (shared.empty() ? "" : ", ") + panel.facet_text();
    html += element("p", panel.task_label + ": " + shared, " class=\"dim\"") + "\n";
    for (const result::Grid& grid : result::grids_of(panel, result::Letters::utf8)) {
      html += grid_html(axis_title(panel.axis), grid);
    }
  }
  return html;
}

std::string statuses_html(const Json& result) {
  std::string rows;
  for (const result::Panel& panel : result::panels(result)) {
    for (const result::Placed& placed : panel.cells) {
      const Json& cell = *placed.cell;
      if (cell["status"] == "ok") continue;
      std::string place = placed.series;
      if (placed.x) place += ", " + panel.axis + " " + result::human_value(*placed.x);
      if (!panel.facet.empty()) place += ", " + panel.facet_text();
      rows += "<tr>" + element("td", panel.task_label + ": " + place) +
              element("td", cell["status"].get<std::string>(),
                      cell["status"] == "unsupported" || cell["status"] == "skipped"
                          ? ""
                          : " class=\"bad\"") +
              "<td>" + result::escape_html(cell.value("reason", ""));
      const Json detail = cell.value("detail", Json(""));
      if (detail != "") {
        rows += "<details><summary>more</summary>" +
                element("pre", detail.is_string() ? detail.get<std::string>() : detail.dump(1)) +
                "</details>";
      }
      rows += "</td><td>" + element("code", cell.value("reproduce", "")) + "</td></tr>\n";
    }
  }
  if (rows.empty()) return "<p>All cells are ok.</p>\n";
  return "<div class=\"scroll\"><table class=\"words\">\n<tr><th>cell</th><th>status</th>"
         "<th>reason</th><th>alone</th></tr>\n" +
         rows + "</table></div>\n";
}

std::string ceiling_text(const std::string& name, double value) {
  if (ends_with(name, "_flops_per_second")) return result::human_count(value) + "FLOP/s";
  if (ends_with(name, "_bytes_per_second")) return result::human_bytes(value) + "/s";
  if (ends_with(name, "_per_second")) return result::human_count(value) + "/s";
  if (ends_with(name, "_bytes")) return result::human_bytes(value);
  if (ends_with(name, "_seconds")) return result::human_seconds(value);
  return result::human_count(value);
}

std::string facts_html(const Json& result) {
  const Json& ours = result["attnbench"];
  std::string html;
  const std::string command = ours["run"].value("command", "");
  if (!command.empty()) {
    html += "<h3>The command that makes this again</h3>\n" + element("pre", command) + "\n";
  }
  for (const auto& [device, ceilings] : ours["ceilings"].items()) {
    std::string rows;
    for (const auto& [name, value] : ceilings.items()) {
      const std::string text =
          value.is_number() ? ceiling_text(name, value.get<double>()) : fact_text(name, value);
      rows += "<tr>" + element("td", fact_name(name)) + element("td", text) + "</tr>\n";
    }
    html += fact_table("Ceilings measured in this run: " + device, rows);
  }
  Json run = ours["run"];
  run.erase("command");  // said above
  html += fact_table("Run", fact_rows(run));
  Json machine = ours["machine"];
  machine.erase("spoilers");  // said at the top
  const Json devices = machine.value("devices", Json::object());
  for (const auto& [word, card] : devices.items()) {
    html += fact_table("Device: " + word, fact_rows(card));
  }
  machine.erase("devices");
  html += fact_table("Machine", fact_rows(machine));
  html += fact_table("Provenance", fact_rows(ours["provenance"]));
  return html;
}

std::string page(const std::vector<Section>& sections, const std::string& bundle,
                 const std::string& message) {
  const bool drawn = !bundle.empty();
  std::string html =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      // Nothing is fetched from anywhere; Vega compiles its expressions, hence unsafe-eval.
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'; img-src data: "
      "blob:\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n";
  html += "<title>" +
          result::escape_html(sections.empty() ? "attnbench" : title_of(sections.front())) +
          "</title>\n<style>\n" + page_style + "</style>\n</head>\n<body>\n";
  if (sections.size() > 1) {
    html += "<nav><ul>\n";
    for (std::size_t i = 0; i < sections.size(); ++i) {
      html += "<li><a href=\"#result-" + std::to_string(i) + "\">" +
              result::escape_html(title_of(sections[i])) + "</a></li>\n";
    }
    html += "</ul></nav>\n";
  }
  for (std::size_t i = 0; i < sections.size(); ++i) {
    html += section_html(sections[i], i, drawn, message);
  }
  if (drawn) {
    html += "<script>" + in_script(bundle) + "</script>\n<script>\n" + page_script + "</script>\n";
  }
  return html + "</body>\n</html>\n";
}

}  // namespace attnbench::reports
