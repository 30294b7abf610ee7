#include "reports/page/facts.hpp"

#include <algorithm>

#include "core/text/format.hpp"
#include "core/text/printable.hpp"

namespace attnbench::reports {
namespace {

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
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
    return text::human_bytes(value.get<double>());
  }
  if (value.is_number() && ends_with(key, "_hz")) {
    return text::human_count(value.get<double>()) + "Hz";
  }
  if (value.is_number() && ends_with(key, "_seconds")) {
    return text::human_seconds(value.get<double>());
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

}  // namespace

std::string element(const std::string& name, const std::string& text,
                    const std::string& attributes) {
  return "<" + name + attributes + ">" + text::escape_html(text) + "</" + name + ">";
}

std::string machine_line(const result::Result& result) {
  const result::RunInfo& run = result.run;
  std::string text;
  const auto add = [&](const std::string& part) {
    if (!part.empty()) text += (text.empty() ? "" : ", ") + part;
  };
  for (const auto& [word, card] : result.machine.devices) {
    add((card.name.empty() ? word : card.name) + " (" + word + ")");
  }
  add(result.machine.cpu_model);
  if (run.threads) add(std::to_string(*run.threads) + (*run.threads == 1 ? " thread" : " threads"));
  if (run.jobs.value_or(1) > 1) add(std::to_string(*run.jobs) + " trainings at a time");
  add(result.machine.host);
  add(run.started_at);
  return text;
}

std::string ceiling_text(const std::string& name, double value) {
  if (ends_with(name, "_flops_per_second")) return text::human_count(value) + "FLOP/s";
  if (ends_with(name, "_bytes_per_second")) return text::human_bytes(value) + "/s";
  if (ends_with(name, "_per_second")) return text::human_count(value) + "/s";
  if (ends_with(name, "_bytes")) return text::human_bytes(value);
  if (ends_with(name, "_seconds")) return text::human_seconds(value);
  return text::human_count(value);
}

std::string facts_html(const result::Result& result) {
  std::string html;
  result::RunInfo run = result.run;
  if (!run.command.empty()) {
    html += "<h3>The command that makes this again</h3>\n" +
            element("pre", run.command, " data-copy") + "\n";
  }
  for (const auto& [device, ceilings] : result.ceilings) {
    std::string rows;
    for (const auto& [name, value] : ceilings) {
      const std::string text =
          value.is_number() ? ceiling_text(name, value.get<double>()) : fact_text(name, value);
      rows += "<tr>" + element("td", fact_name(name)) + element("td", text) + "</tr>\n";
    }
    html += fact_table("Ceilings measured in this run: " + device, rows);
  }
  run.command.clear();  // said above
  html += fact_table("Run", fact_rows(run));
  for (const auto& [word, card] : result.machine.devices) {
    html += fact_table("Device: " + word, fact_rows(card));
  }
  result::MachineCard machine = result.machine;
  machine.noise_sources.reset();  // said at the top
  machine.devices.clear();
  html += fact_table("Machine", fact_rows(machine));
  html += fact_table("Provenance", fact_rows(result.provenance));
  return html;
}

}  // namespace attnbench::reports
