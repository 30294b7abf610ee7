#include "reports/page/summary.hpp"

#include "core/text/printable.hpp"
#include "reports/page/facts.hpp"
#include "reports/page/page_tables.hpp"
#include "reports/verdict/ranking_table.hpp"
#include "reports/verdict/sentences.hpp"

namespace attnbench::reports {
namespace {

using text::escape_html;

constexpr const char* heading_begin = "<h2 id=\"";

std::string line_rows(const std::vector<verdict::Line>& lines) {
  std::string html;
  for (const verdict::Line& line : lines) {
    html += "<tr><th scope=\"row\">" + escape_html(line.topic) + "</th><td>" +
            escape_html(line.text) + "</td></tr>\n";
  }
  return html;
}

std::string verdict_table(const std::string& title, const std::string& note,
                          const std::vector<verdict::Line>& lines) {
  if (lines.empty()) return "";
  std::string html = "<h3>" + escape_html(title) + "</h3>\n";
  if (!note.empty()) html += "<p class=\"dim\">" + escape_html(note) + "</p>\n";
  return html + "<div class=\"scroll\"><table class=\"words verdict\">\n" + line_rows(lines) +
         "</table></div>\n";
}

}  // namespace

std::string ranking_html(const verdict::Verdict& verdict) {
  std::string html;
  for (const verdict::Ranking& ranking : verdict.rankings) {
    if (!html.empty() && !ranking.headline.empty()) html += element("p", ranking.headline) + "\n";
    html += grid_html(verdict::ranked_things, verdict::grid_of(ranking, text::Letters::utf8),
                      " data-copy");
  }
  if (html.empty()) return "";
  for (const verdict::Line& line : verdict::lines_of(verdict.exceptions)) {
    html += "<p class=\"dim\">" + escape_html(line.topic + ": " + line.text) + "</p>\n";
  }
  return html;
}

std::string verdict_html(const verdict::Verdict& verdict) {
  std::string html;
  if (!verdict.sentence.empty()) {
    html += "<p class=\"sentence\">" + escape_html(verdict.sentence) + "</p>\n";
  }
  for (const verdict::Answer& answer : verdict.answers) {
    html += verdict_table(answer.task, answer.conditions, verdict::lines_of(answer));
  }
  // Below the table that ranks where there is one.
  return verdict.rankings.empty()
             ? html + verdict_table("Not ranked", "", verdict::lines_of(verdict.exceptions))
             : html;
}

std::string claims_html(const std::vector<claims::EvaluatedClaim>& claims) {
  if (claims.empty()) return "";
  std::string html =
      "<div class=\"scroll\"><table class=\"words\">\n<thead><tr><th>claim</th><th>here</th>"
      "<th>found</th></tr></thead>\n";
  for (const auto& [claim, evidence] : claims) {
    const std::string published =
        claim.published ? "; published: " + claim.published->value : std::string();
    html += "<tr><td>" +
            escape_html(claim.claim + " (" + claim.paper + ": " + claim.place + published + ")") +
            "</td><td>" + escape_html(to_string(evidence.outcome)) + "</td><td>" +
            escape_html(found_words(evidence)) + "</td></tr>\n";
  }
  return html + "</table></div>\n";
}

std::string links_html(const std::vector<std::pair<std::string, std::string>>& links) {
  std::string html;
  for (const auto& [words, path] : links) {
    html += (html.empty() ? "<p class=\"dim\">Data: " : ", ") + std::string("<a href=\"") +
            escape_html(path) + "\">" + escape_html(words) + "</a>";
  }
  return html.empty() ? "" : html + "</p>\n";
}

std::string heading_html(const std::string& text, const std::string& id) {
  return heading_begin + escape_html(id) + "\">" + escape_html(text) + "</h2>\n";
}

std::string contents_html(const std::string& section) {
  std::string items;
  std::size_t count = 0;
  const std::string begin = heading_begin;
  for (std::size_t at = section.find(begin); at != std::string::npos;
       at = section.find(begin, at + 1)) {
    const std::size_t id = at + begin.size();
    const std::size_t id_end = section.find('"', id);
    const std::size_t text = section.find('>', id_end) + 1;
    items += "<li><a href=\"#" + section.substr(id, id_end - id) + "\">" +
             section.substr(text, section.find("</h2>", text) - text) + "</a></li>\n";
    ++count;
  }
  if (count < 2) return "";
  return "<nav aria-label=\"Contents\"><ul class=\"contents\">\n" + items + "</ul></nav>\n";
}

}  // namespace attnbench::reports
