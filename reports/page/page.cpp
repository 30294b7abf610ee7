#include "reports/page/page.hpp"

#include <algorithm>
#include <cctype>

#include "reports/figures/escape.hpp"
#include "reports/page/page_facts.hpp"
#include "reports/page/page_parts.hpp"
#include "reports/figures/verdicts.hpp"

namespace attnbench::reports {
namespace {

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
  std::string html = "<figure>\n<h4>" + escape_html(figure.title) + "</h4>\n";
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
  html += "<figcaption>" + escape_html(figure.caption);
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
  if (!message.empty()) html += "<p class=\"note\">" + escape_html(message) + "</p>\n";
  std::string group;
  for (std::size_t i = 0; i < section.figures.size(); ++i) {
    const bool pictured = drawn || !section.svg[i].empty();
    const std::string id = "spec-" + std::to_string(number) + "-" + std::to_string(i);
    if (!pictured) continue;
    if (section.figures[i].group != group) {
      group = section.figures[i].group;
      html += "<h3>" + escape_html(group) + "</h3>\n<p class=\"dim\">" +
              escape_html(section.figures[i].subtitle) + "</p>\n";
    }
    html += figure_html(section.figures[i], section.svg[i], id, drawn);
  }
  html += "<h2>Tables</h2>\n" + tables_html(section.result);
  html += "<h2>What is not ok, and why</h2>\n" + statuses_html(section.result);
  html += "<h2>How it was measured</h2>\n" + facts_html(section.result);
  return html + "<p class=\"dim\">From " + escape_html(section.source) + "</p>\n</section>\n";
}

std::string title_of(const Section& section) {
  const Json& suite = section.result["attnbench"]["suite"];
  return suite.value("title", suite.value("name", std::string("attnbench")));
}

}  // namespace

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
  html += "<title>" + escape_html(sections.empty() ? "attnbench" : title_of(sections.front())) +
          "</title>\n<style>" + page_style + "</style>\n</head>\n<body>\n";
  if (sections.size() > 1) {
    html += "<nav><ul>\n";
    for (std::size_t i = 0; i < sections.size(); ++i) {
      html += "<li><a href=\"#result-" + std::to_string(i) + "\">" +
              escape_html(title_of(sections[i])) + "</a></li>\n";
    }
    html += "</ul></nav>\n";
  }
  for (std::size_t i = 0; i < sections.size(); ++i) {
    html += section_html(sections[i], i, drawn, message);
  }
  if (drawn) {
    html += "<script>" + in_script(bundle) + "</script>\n<script>" + page_script + "</script>\n";
  }
  return html + "</body>\n</html>\n";
}

}  // namespace attnbench::reports
