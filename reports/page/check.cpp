#include "reports/page/check.hpp"

#include <cstdio>
#include <map>
#include <sstream>
#include <vector>

#include "core/text/printable.hpp"

namespace attnbench::reports {
namespace {

std::string short_number(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", number);
  return text;
}

/// A text of the document as a cell of a table.
std::string cell(const std::string& text) { return result::escape_markdown(text); }

std::string joined(const Json& words) {
  std::string out;
  for (const Json& word : words) {
    out += (out.empty() ? "" : ", ") + (word.is_string() ? word.get<std::string>() : word.dump());
  }
  return out;
}

void fact(std::ostringstream& out, const std::string& name, const std::string& text) {
  if (!text.empty()) out << "- " << name << ": " << cell(text) << "\n";
}

void print_mechanism(std::ostringstream& out, const Json& mechanism) {
  out << "\n## " << cell(mechanism.value("name", "")) << "\n\n"
      << cell(mechanism.value("title", "")) << "\n\n";
  fact(out, "source", mechanism.value("citation", ""));
  fact(out, "origin", mechanism.value("origin", ""));
  fact(out, "patterns", joined(mechanism.value("patterns", Json::array())));
  Json made = Json::array(), denied = Json::array();
  const Json claims = mechanism.value("claims", Json::object());
  for (const auto& [claim, value] : claims.items()) {
    (value == true ? made : denied).push_back(claim);
  }
  fact(out, "claims", joined(made));
  fact(out, "does not claim", joined(denied));
  for (const Json& option : mechanism.value("options", Json::array())) {
    fact(out, "option " + option.value("name", ""),
         option.value("default", Json()).dump() + ", " + option.value("meaning", ""));
  }
}

std::string closest(const Json& row) {
  const Json* worst = closest_to_tolerance(row);
  if (worst == nullptr) return "";
  return cell(worst->value("name", "")) + " " + short_number(worst->value("error", 0.0)) + " of " +
         short_number(worst->at("tolerance"));
}

void print_checks(std::ostringstream& out, const Json& checks) {
  if (checks.empty()) return;
  out << "\n## Properties\n\n"
      << "| mechanism | implementation | pattern | dtype | status | held | broken | not applicable "
         "| "
         "closest to its tolerance |\n"
      << "|---|---|---|---|---|---:|---:|---:|---|\n";
  for (const Json& row : checks) {
    out << "| " << cell(row.value("mechanism", "")) << " | "
        << cell(row.value("implementation", "")) << " | " << row.value("pattern", "") << " | "
        << row.value("dtype", "") << " | " << row.value("status", "error") << " | "
        << row.value("held", 0) << " | " << row.value("broken", 0) << " | "
        << row.value("not_applicable", 0) << " | " << closest(row) << " |\n";
  }
}

/// What is broken, and how rows ended that did not end well.
void print_failures(std::ostringstream& out, const Json& checks) {
  std::ostringstream lines;
  for (const Json& row : checks) {
    const std::string status = row.value("status", "error");
    if (status == "ok" || status == "unsupported") continue;
    const std::string who = row.value("mechanism", "") + "/" + row.value("implementation", "") +
                            " " + row.value("pattern", "") + " " + row.value("dtype", "");
    bool listed = false;
    for (const Json& property : row.at("properties")) {
      if (property.value("status", "") != "broken") continue;
      listed = true;
      lines << "- " << cell(who) << ": **" << cell(property.value("name", "")) << "** "
            << cell(property.value("reason", "broken")) << "\n";
    }
    if (!listed)
      lines << "- " << cell(who) << ": " << status << ", " << cell(row.value("reason", "")) << "\n";
  }
  if (!lines.str().empty()) out << "\n## What failed\n\n" << lines.str();
}

/// Each reason once, with the properties that it is given for.
void print_left_out(std::ostringstream& out, const Json& checks) {
  std::map<std::string, std::map<std::string, bool>> properties_by_reason;
  for (const Json& row : checks) {
    for (const Json& property : row.at("properties")) {
      if (property.value("status", "") != "not_applicable") continue;
      properties_by_reason[property.value("reason", "")][property.value("name", "")] = true;
    }
  }
  if (properties_by_reason.empty()) return;
  out << "\n## Not applicable\n\n| because | properties |\n|---|---|\n";
  for (const auto& [reason, properties] : properties_by_reason) {
    std::string names;
    for (const auto& [name, ignored] : properties) names += (names.empty() ? "" : ", ") + name;
    out << "| " << cell(reason) << " | " << cell(names) << " |\n";
  }
}

void print_growth(std::ostringstream& out, const Json& growth) {
  if (growth.empty()) return;
  out << "\n## Growth\n\nExponents of time and workspace, measured in fresh processes.\n\n"
      << "| mechanism | implementation | of | claimed | tolerance | measured | verdict |\n"
      << "|---|---|---|---:|---:|---:|---|\n";
  for (const Json& row : growth) {
    const std::string reason = row.value("reason", "");
    out << "| " << cell(row.value("mechanism", "")) << " | "
        << cell(row.value("implementation", "")) << " | " << row.value("quantity", "") << " | "
        << short_number(row.value("claimed", 0.0)) << " | "
        << short_number(row.value("tolerance", 0.0)) << " | "
        << (row.contains("measured") ? short_number(row.at("measured"))
                                     : std::string("not measured"))
        << " | " << row.value("verdict", "") << (reason.empty() ? "" : ": " + cell(reason))
        << " |\n";
  }
}

/// "NVIDIA H100 (cuda:1), compute capability 9.0, driver …", as far as the card says so.
std::string card_text(const std::string& word, const Json& card) {
  std::string text = card.value("name", "a card without a name") + " (" + word + ")";
  for (const auto& [key, name] : {std::pair{"compute_capability", "compute capability"},
                                  {"driver", "driver"},
                                  {"driver_cuda", "CUDA"}}) {
    const std::string value = card.value(key, "");
    if (!value.empty()) text += std::string(", ") + name + " " + value;
  }
  return text;
}

/// What the checks ran on: a device's card, where it is not the processor, and the machine.
void print_machine(std::ostringstream& out, const Json& machine) {
  const Json devices = machine.value("devices", Json::object());
  for (const auto& [word, card] : devices.items()) fact(out, "device", card_text(word, card));
  fact(out, "processor", machine.value("cpu_model", ""));
  fact(out, "machine", machine.value("host", ""));
  fact(out, "system", machine.value("os", ""));
}

void print_provenance(std::ostringstream& out, const Json& document) {
  const Json build = document.value("build", Json::object());
  const Json stamp = document.value("stamp", Json::object());
  out << "\n## Where it comes from\n\n";
  const std::string command = document.value("command", "");
  if (!command.empty()) out << "    " << command << "\n\n";
  fact(out, "date", document.value("date", ""));
  fact(out, "attnbench",
       stamp.value("attnbench", "") + (build.contains("commit")
                                           ? ", commit " + build["commit"].get<std::string>() +
                                                 (build.value("dirty", false) ? ", changed" : "")
                                           : ""));
  fact(out, "fingerprint of programs and plugins", build.value("binary", ""));
  fact(out, "compiler", build.value("compiler", ""));
  fact(out, "LibTorch", stamp.value("torch", ""));
  print_machine(out, document.value("machine", Json::object()));
}

}  // namespace

const Json* closest_to_tolerance(const Json& row) {
  const Json* worst = nullptr;
  double most = -1;
  for (const Json& property : row.at("properties")) {
    const double tolerance = property.value("tolerance", 0.0);
    if (tolerance <= 0) continue;
    const double share = property.value("error", 0.0) / tolerance;
    if (share > most) {
      most = share;
      worst = &property;
    }
  }
  return worst;
}

std::string check_markdown(const Json& document) {
  const Json checks = document.value("checks", Json::array());
  const Json growth = document.value("growth", Json::array());
  std::ostringstream out;
  out << "# attnbench check: " << document.value("verdict", "no verdict") << "\n";
  for (const Json& mechanism : document.value("mechanisms", Json::array())) {
    print_mechanism(out, mechanism);
  }
  print_failures(out, checks);
  print_checks(out, checks);
  print_growth(out, growth);
  print_left_out(out, checks);
  print_provenance(out, document);
  return out.str();
}

}  // namespace attnbench::reports
