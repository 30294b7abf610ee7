#include "reports/page/page.hpp"

#include <algorithm>
#include <cctype>

#include "core/result/machine.hpp"
#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "reports/page/facts.hpp"
#include "reports/page/page_tables.hpp"
#include "reports/page/summary.hpp"
#include "reports/tables/tables.hpp"
#include "reports/verdict/ranking.hpp"

namespace attnbench::reports {

extern const char* const page_style;   // reports/page/page.css, embedded by the build
extern const char* const page_script;  // reports/page/page.js: draws every figure, again when the
                                       // reader's theme or the page's width class changes
extern const char* const page_tables;  // reports/page/tables.js: sorts, filters and copies tables

namespace {

std::string note(const std::string& text) { return element("p", text, " class=\"note\"") + "\n"; }

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
  const bool wide = figure.spec.contains("facet");
  std::string html = "<figure id=\"" + id + "-figure\"" + (wide ? " class=\"wide\"" : "") +
                     ">\n<h4>" + text::escape_html(figure.title) + " <a class=\"anchor\" href=\"#" +
                     id + "-figure\" aria-label=\"Link to this figure\">#</a></h4>\n";
  const std::string still = svg_element(svg);
  const std::string label =
      " aria-label=\"" + text::escape_html(figure.spec.value("description", figure.title)) + "\"";
  const std::string picture = "<div class=\"still\" role=\"img\"" + label + ">" + still + "</div>";
  if (drawn) {
    html += "<script type=\"application/json\" id=\"" + id + "\">" + in_script(figure.spec.dump()) +
            "</script>\n<div class=\"plot\" role=\"img\" data-spec=\"" + id + "\"" + label +
            " data-name=\"" + text::escape_html(figure.name) + "\"></div>\n";
    if (!still.empty()) {
      html += "<noscript>" + picture + "</noscript>\n";
    }
  } else if (!still.empty()) {
    html += picture + "\n";
  }
  html += "<figcaption>" + text::escape_html(figure.caption);
  const std::string spec = figure.spec.dump();
  if (drawn && spec.find("\"bind\":\"legend\"") != std::string::npos) {
    html += " Choose in the legend what to show, several with Shift.";
  } else if (drawn && spec.find("\"name\":\"labels\"") != std::string::npos) {
    html += " A click on a label shows its line alone, with Shift several.";
  }
  if (drawn && spec.find("\"command\":") != std::string::npos) {
    html += " A click on a ring shows the command that measures around its crossing.";
  }
  return html + "</figcaption>\n</figure>\n";
}

bool is_pictured(const Section& section, std::size_t i, bool drawn) {
  return i < section.figures.size() && (drawn || !section.svg[i].empty());
}

std::string numbered_figure(const Section& section, std::size_t number, std::size_t i, bool drawn) {
  const std::string id = "spec-" + std::to_string(number) + "-" + std::to_string(i);
  return figure_html(section.figures[i], section.svg[i], id, drawn);
}

/// What the first screen shows: the first figure, and beside it the table that ranks.
std::string lead_html(const Section& section, std::size_t number, bool drawn) {
  const std::size_t first = section.verdict_figures;
  const bool pictured = is_pictured(section, first, drawn);
  const std::string ranked = ranking_html(section.verdict);
  if (!pictured && ranked.empty()) return "";
  return "<div class=\"lead\">\n" +
         (pictured
              ? "<div>" + numbered_figure(section, number, first, drawn) +
                    element("p", section.figures[first].subtitle, " class=\"dim\"") + "</div>\n"
              : std::string()) +
         "<div class=\"ranked\">\n" + ranked + "</div>\n</div>\n";
}

/// Figures `first` to before `end`; those of a group under its name.
std::string figures_html(const Section& section, std::size_t number, bool drawn, std::size_t first,
                         std::size_t end) {
  std::string html;
  std::string group;
  for (std::size_t i = first; i < end; ++i) {
    if (!is_pictured(section, i, drawn)) continue;
    if (section.figures[i].group != group) {
      if (!group.empty()) html += "</div>\n";
      group = section.figures[i].group;
      html += "<h3>" + text::escape_html(group) + "</h3>\n<p class=\"dim\">" +
              text::escape_html(section.figures[i].subtitle) + "</p>\n<div class=\"figures\">\n";
    }
    html += numbered_figure(section, number, i, drawn);
  }
  return html + (group.empty() ? "" : "</div>\n");
}

std::string section_html(const Section& section, std::size_t number, bool drawn,
                         const std::string& message) {
  const std::string suffix = "-" + std::to_string(number);
  std::string html;
  const auto part = [&](const std::string& title, const std::string& id, const std::string& text) {
    if (!text.empty()) html += heading_html(title, id + suffix) + text;
  };
  // The turns of `ab` have a verdict of their own, by pairs.
  std::size_t shown = section.verdict_figures;
  part("Verdicts", "verdicts",
       figures_html(section, number, drawn, 0, shown) + verdicts_html(section.verdicts));
  std::string lead;
  if (!section.verdicts) {
    lead = lead_html(section, number, drawn);
    if (is_pictured(section, shown, drawn)) ++shown;
    part("In words", "verdict", verdict_html(section.verdict));
  }
  part("What papers claim", "claims", claims_html(section.claims));
  const std::string unpictured =
      message.empty() ? "" : "<p class=\"note\">" + text::escape_html(message) + "</p>\n";
  if (section.figures.size() > shown || !unpictured.empty()) {
    html += heading_html("Figures", "figures" + suffix) + unpictured +
            figures_html(section, number, drawn, shown, section.figures.size());
  }
  html += heading_html("Tables", "tables" + suffix) + "<div><div data-filter></div>\n" +
          tables_html(section.result) + "</div>\n";
  part("What is not ok, and why", "statuses", statuses_html(section.result));
  if (!section.joint) part("How it was measured", "facts", facts_html(section.result));
  const std::string headline =
      section.verdicts ? std::string() : verdict::headline_of(section.verdict);
  return "<section id=\"result-" + std::to_string(number) + "\">\n" +
         header_html(section.result, headline) + lead + notes_html(section.result) +
         links_html(section.links) + contents_html(html) + html + "<p class=\"dim\">From " +
         text::escape_html(section.source) + "</p>\n</section>\n";
}

std::string title_of(const Section& section) {
  const result::SuiteInfo& suite = section.result.suite;
  return suite.title ? *suite.title : suite.name.empty() ? "attnbench" : suite.name;
}

}  // namespace

std::string header_html(const result::Result& result, const std::string& headline) {
  const result::SuiteInfo& suite = result.suite;
  const std::string name = suite.name.empty() ? "attnbench" : suite.name;
  const std::string title = suite.title.value_or(name);
  std::string html;
  if (headline.empty()) {
    html += element("h1", title) + "\n";
  } else {
    html += element("p", title, " class=\"over\"") + "\n" + element("h1", headline) + "\n";
  }
  const std::string& state = result.run.state;
  if (!state.empty() && state != "complete") {
    const std::string& reason = result.run.reason;
    html += note("This run is not complete: " + state + (reason.empty() ? "" : ", " + reason) +
                 ". What was measured until then is here.");
  }
  const std::string slow_blas = result::blas_warning(result.ceilings_of("cpu"), result.machine);
  if (!slow_blas.empty()) html += element("p", slow_blas, " class=\"note bad\"") + "\n";
  return html;
}

std::string notes_html(const result::Result& result) {
  const result::SuiteInfo& suite = result.suite;
  std::string html;
  for (const std::string& sentence : result.machine.noise()) html += note(sentence);
  if (suite.source) html += element("p", *suite.source) + "\n";
  if (suite.notes) html += element("p", *suite.notes) + "\n";
  std::string about = "Suite " + (suite.name.empty() ? "attnbench" : suite.name);
  if (!suite.profile.empty()) about += ", profile " + suite.profile;
  return html +
         element("p", about + ". " + status_line(result) + ". " + machine_line(result) + ".",
                 " class=\"dim\"") +
         "\n";
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
          text::escape_html(sections.empty() ? "attnbench" : title_of(sections.front())) +
          "</title>\n<style>\n" + page_style + "</style>\n</head>\n<body>\n";
  if (sections.size() > 1) {
    html += "<nav><ul>\n";
    for (std::size_t i = 0; i < sections.size(); ++i) {
      html += "<li><a href=\"#result-" + std::to_string(i) + "\">" +
              text::escape_html(title_of(sections[i])) + "</a></li>\n";
    }
    html += "</ul></nav>\n";
  }
  for (std::size_t i = 0; i < sections.size(); ++i) {
    html += section_html(sections[i], i, drawn, message);
  }
  html += std::string("<script>\n") + page_tables + "</script>\n";
  if (drawn) {
    html += "<script type=\"application/json\" id=\"dark-colours\">" + Json(dark_colours()).dump() +
            "</script>\n<script>" + in_script(bundle) + "</script>\n<script>\n" + page_script +
            "</script>\n";
  }
  return html + "</body>\n</html>\n";
}

}  // namespace attnbench::reports
