#include "reports/page/check.hpp"

#include <cstdio>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "core/protocol.hpp"
#include "core/text/printable.hpp"

namespace attnbench::reports {
namespace {

using protocol::CheckedRow;

struct OptionFacts {
  std::string name;
  std::string meaning;
  Json fallback;
};

struct MechanismFacts {
  std::string name;
  std::string title;
  std::string citation;
  std::string origin;
  std::vector<std::string> patterns;
  std::map<std::string, Json> claims;
  std::vector<OptionFacts> options;
};

struct GrowthRow {
  std::string mechanism;
  std::string implementation;
  std::string quantity;
  std::string verdict;
  std::string reason;
  double claimed = 0;
  double tolerance = 0;
  std::optional<double> measured;
};

/// What the worker says of itself.
struct Stamp {
  std::string attnbench;
  std::string torch;
};

struct Document {
  std::string verdict = "no verdict";
  std::string command;
  std::string date;
  result::Provenance build;
  Stamp stamp;
  result::MachineCard machine;
  std::vector<MechanismFacts> mechanisms;
  std::vector<CheckedRow> checks;
  std::vector<GrowthRow> growth;
};

ATTNBENCH_JSON_READER(OptionFacts) {
  JSON_MAYBE(name, meaning);
  json.maybe("default", value.fallback);
}

ATTNBENCH_JSON_READER(MechanismFacts) {
  JSON_MAYBE(name, title, citation, origin, patterns, claims, options);
}

ATTNBENCH_JSON_READER(GrowthRow) {
  JSON_MAYBE(mechanism, implementation, quantity, verdict, reason, claimed, tolerance, measured);
}

ATTNBENCH_JSON_READER(Stamp) { JSON_MAYBE(attnbench, torch); }

ATTNBENCH_JSON_READER(Document) {
  JSON_MAYBE(verdict, command, date, build, stamp, machine, mechanisms, checks, growth);
}

std::string short_error(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", number);
  return text;
}

/// A text of the document as a cell of a table.
std::string cell(const std::string& text) { return text::escape_markdown(text); }

std::string joined_lines(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

void fact(std::ostringstream& out, const std::string& name, const std::string& text) {
  if (!text.empty()) out << "- " << name << ": " << cell(text) << "\n";
}

void print_mechanism(std::ostringstream& out, const MechanismFacts& mechanism) {
  out << "\n## " << cell(mechanism.name) << "\n\n" << cell(mechanism.title) << "\n\n";
  fact(out, "source", mechanism.citation);
  fact(out, "origin", mechanism.origin);
  fact(out, "patterns", joined_lines(mechanism.patterns));
  std::vector<std::string> made, denied;
  for (const auto& [claim, value] : mechanism.claims) {
    (value == true ? made : denied).push_back(claim);
  }
  fact(out, "claims", joined_lines(made));
  fact(out, "does not claim", joined_lines(denied));
  for (const OptionFacts& option : mechanism.options) {
    fact(out, "option " + option.name, option.fallback.dump() + ", " + option.meaning);
  }
}

std::string closest(const CheckedRow& row) {
  const protocol::Property* const worst = row.closest_to_tolerance();
  if (worst == nullptr) return "";
  return cell(worst->name) + " " + short_error(worst->error.value_or(0)) + " of " +
         short_error(*worst->tolerance);
}

void print_checks(std::ostringstream& out, const std::vector<CheckedRow>& checks) {
  if (checks.empty()) return;
  out << "\n## Properties\n\n"
      << "| mechanism | implementation | pattern | dtype | status | held | broken | not applicable "
         "| closest to its tolerance |\n"
      << "|---|---|---|---|---|---:|---:|---:|---|\n";
  for (const CheckedRow& row : checks) {
    out << "| " << cell(row.mechanism) << " | " << cell(row.implementation) << " | " << row.pattern
        << " | " << row.dtype << " | " << to_string(row.status) << " | " << row.held() << " | "
        << row.broken() << " | " << row.not_applicable() << " | " << closest(row) << " |\n";
  }
}

/// What is broken, and how rows ended that did not end well.
void print_failures(std::ostringstream& out, const std::vector<CheckedRow>& checks) {
  std::ostringstream lines;
  for (const CheckedRow& row : checks) {
    if (!row.failed()) continue;
    const std::string who =
        cell(row.mechanism + "/" + row.implementation + " " + row.pattern + " " + row.dtype);
    bool listed = false;
    for (const protocol::Property& property : row.properties) {
      if (property.status != protocol::PropertyStatus::broken) continue;
      listed = true;
      lines << "- " << who << ": **" << cell(property.name) << "** "
            << cell(property.reason.empty() ? "broken" : property.reason) << "\n";
    }
    if (!listed)
      lines << "- " << who << ": " << to_string(row.status) << ", " << cell(row.reason) << "\n";
  }
  if (!lines.str().empty()) out << "\n## What failed\n\n" << lines.str();
}

/// Each reason once, with the properties that it is given for.
void print_left_out(std::ostringstream& out, const std::vector<CheckedRow>& checks) {
  std::map<std::string, std::set<std::string>> properties_by_reason;
  for (const CheckedRow& row : checks) {
    for (const protocol::Property& property : row.properties) {
      if (property.status != protocol::PropertyStatus::not_applicable) continue;
      properties_by_reason[property.reason].insert(property.name);
    }
  }
  if (properties_by_reason.empty()) return;
  out << "\n## Not applicable\n\n| because | properties |\n|---|---|\n";
  for (const auto& [reason, properties] : properties_by_reason) {
    out << "| " << cell(reason) << " | "
        << cell(joined_lines({properties.begin(), properties.end()})) << " |\n";
  }
}

void print_growth(std::ostringstream& out, const std::vector<GrowthRow>& growth) {
  if (growth.empty()) return;
  out << "\n## Growth\n\nExponents of time and workspace, measured in fresh processes.\n\n"
      << "| mechanism | implementation | of | claimed | tolerance | measured | verdict |\n"
      << "|---|---|---|---:|---:|---:|---|\n";
  for (const GrowthRow& row : growth) {
    out << "| " << cell(row.mechanism) << " | " << cell(row.implementation) << " | " << row.quantity
        << " | " << short_error(row.claimed) << " | " << short_error(row.tolerance) << " | "
        << (row.measured ? short_error(*row.measured) : std::string("not measured")) << " | "
        << row.verdict << (row.reason.empty() ? "" : ": " + cell(row.reason)) << " |\n";
  }
}

/// "NVIDIA H100 (cuda:1), compute capability 9.0, driver …", as far as the card says so.
std::string card_text(const std::string& word, const result::DeviceCard& card) {
  std::string text = (card.name.empty() ? "a card without a name" : card.name) + " (" + word + ")";
  if (!card.compute_capability.empty()) text += ", compute capability " + card.compute_capability;
  if (!card.driver.empty()) text += ", driver " + card.driver;
  if (!card.driver_cuda.empty()) text += ", CUDA " + card.driver_cuda;
  return text;
}

/// What the checks ran on: a device's card, where it is not the processor, and the machine.
void print_machine(std::ostringstream& out, const result::MachineCard& machine) {
  for (const auto& [word, card] : machine.devices) fact(out, "device", card_text(word, card));
  fact(out, "processor", machine.cpu_model);
  fact(out, "machine", machine.host);
  fact(out, "system", machine.os);
}

void print_provenance(std::ostringstream& out, const Document& document) {
  const result::Provenance& build = document.build;
  out << "\n## Where it comes from\n\n";
  if (!document.command.empty()) out << "    " << document.command << "\n\n";
  fact(out, "date", document.date);
  fact(out, "attnbench",
       document.stamp.attnbench +
           (build.commit.empty()
                ? ""
                : ", commit " + build.commit + (build.dirty.value_or(false) ? ", changed" : "")));
  fact(out, "fingerprint of programs and plugins", build.binary);
  fact(out, "compiler", build.compiler);
  fact(out, "LibTorch", document.stamp.torch);
  print_machine(out, document.machine);
}

}  // namespace

std::string check_markdown(const Json& json) {
  const Document document = json.get<Document>();
  std::ostringstream out;
  out << "# attnbench check: " << document.verdict << "\n";
  for (const MechanismFacts& mechanism : document.mechanisms) print_mechanism(out, mechanism);
  print_failures(out, document.checks);
  print_checks(out, document.checks);
  print_growth(out, document.growth);
  print_left_out(out, document.checks);
  print_provenance(out, document);
  return out.str();
}

}  // namespace attnbench::reports
