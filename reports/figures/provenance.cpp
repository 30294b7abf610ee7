#include "reports/figures/provenance.hpp"

#include <map>
#include <set>
#include <utility>

#include "core/text/format.hpp"
#include "reports/figures/spec.hpp"

namespace attnbench::reports {
namespace {

/// Letters of a title that fit into a figure of the usual width.
constexpr std::size_t title_width = 72;

std::string joined_parts(const std::vector<std::string>& parts, const std::string& between) {
  std::string text;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (!text.empty()) text += between;
    text += part;
  }
  return text;
}

/// "2026-11-23"; empty where the run does not say.
std::string day_of(const result::Result& result) { return result.run.started_at.substr(0, 10); }

}  // namespace

std::string machine_text(const result::Result& result) {
  std::vector<std::string> parts;
  for (const auto& [word, card] : result.machine.devices) {
    parts.push_back(card.name.empty() ? word : card.name);
  }
  parts.push_back(result.machine.cpu_model);
  if (const auto threads = result.run.threads) {
    parts.push_back(std::to_string(*threads) + (*threads == 1 ? " thread" : " threads"));
  }
  return joined_parts(parts, ", ");
}

std::string alternative_text(const Figure& figure, const result::Result& result) {
  return joined_parts({figure.title, figure.subtitle, machine_text(result), figure.caption}, ". ");
}

void tell_titles_apart(std::vector<Figure>& figures) {
  std::map<std::string, int> times;
  for (const Figure& figure : figures) ++times[figure.title];
  std::set<std::string> taken;
  for (Figure& figure : figures) {
    std::string title = figure.title;
    if (times[title] > 1 && !figure.group.empty()) title += ": " + figure.group;
    const std::string wanted = title;
    for (int i = 2; !taken.insert(title).second; ++i)
      title = wanted + " (" + std::to_string(i) + ")";
    if (title == figure.title) continue;
    figure.title = title;
    Json& drawn = figure.spec["title"];
    if (!drawn.is_object()) drawn = Json::object();
    drawn["text"] = wrapped_lines(title, title_width);
  }
}

void add_provenance(Figure& figure, const result::Result& result) {
  figure.spec["description"] = alternative_text(figure, result);
  if (!figure.spec.contains("title")) return;
  Json& title = figure.spec["title"];
  if (!title.is_object()) title = {{"text", title}};
  if (const auto& suite = result.suite.title) {
    Json lines = wrapped_lines(*suite, title_width);
    const Json& own = title["text"];
    if (own.is_array()) {
      lines.insert(lines.end(), own.begin(), own.end());
    } else {
      lines.push_back(own);
    }
    title["text"] = std::move(lines);
  }
  Json& subtitle = title["subtitle"];
  if (subtitle.is_string()) subtitle = Json::array({subtitle});
  if (!subtitle.is_array()) subtitle = Json::array();
  const std::string line = joined_parts({machine_text(result), day_of(result)}, ", ");
  for (const Json& each : wrapped_lines(line)) subtitle.push_back(each);
}

void lead_with(Figure& figure, const std::string& answer) {
  if (answer.empty() || !figure.spec.contains("title")) return;
  Json& title = figure.spec["title"];
  std::string named;
  for (const std::string line : title["text"]) {
    const bool broken = named.ends_with(' ');  // one title, in two lines
    named += (named.empty() || broken ? "" : ". ") + line;
  }
  Json below = wrapped_lines(named + ".");
  for (const Json& line : title["subtitle"]) below.push_back(line);
  title["subtitle"] = std::move(below);
  title["text"] = text::wrap(answer, title_width);
}

}  // namespace attnbench::reports
