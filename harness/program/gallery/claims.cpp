#include "harness/program/gallery/claims.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/failure.hpp"
#include "core/json_file.hpp"
#include "core/text/printable.hpp"
#include "core/text/spelling.hpp"

namespace attnbench::gallery {
namespace {

namespace fs = std::filesystem;
using reports::claims::ClaimedQuantity;
using reports::claims::ClaimOutcome;
using reports::claims::Evidence;
using reports::claims::PaperClaim;
using reports::claims::Predicate;

[[noreturn]] void refuse(const PaperClaim& claim, const std::string& what) {
  throw UsageFailure("the claim " + claim.id() + ": " + what);
}

/// "no suite \"x\"; did you mean \"y\"?"
std::string unknown(const std::string& kind, const std::string& word,
                    const std::vector<std::string>& known) {
  return "no " + kind + " \"" + text::quotable(word) + "\"; " + text::suggestion(word, known);
}

/// The papers, and "ours": what is asked here of suites that follow none.
std::vector<std::string> paper_names() {
  std::set<std::string> names{"ours"};
  for (const suite::PaperFigure& figure : suite::paper_figures()) names.insert(figure.paper);
  return {names.begin(), names.end()};
}

void add_labels(const Predicate& predicate, std::set<std::string>& labels) {
  for (const auto* list :
       {&predicate.less, &predicate.ratio, &predicate.difference, &predicate.crossing}) {
    for (const ClaimedQuantity& quantity : *list) labels.insert(quantity.label);
  }
  for (const auto* one : {&predicate.value, &predicate.slope}) {
    if (*one) labels.insert((*one)->label);
  }
  for (const Predicate& part : predicate.all) add_labels(part, labels);
}

/// The labels of a suite's mechanisms, as its file has them.
std::vector<std::string> labels_of(const IndexedSuite& suite) {
  const Json json = parse_json_file(suite.file, "a suite");
  std::vector<std::string> labels;
  const Json mechanisms = json.value("mechanisms", Json::object());
  for (const auto& [key, value] : mechanisms.items()) {
    labels.push_back(mechanisms.is_array() && value.is_string() ? value.get<std::string>() : key);
  }
  return labels;
}

/// Throws UsageFailure for a paper, suite or label that is not there.
void validate(const PaperClaim& claim, const Index& index) {
  const std::vector<std::string> papers = paper_names();
  if (std::find(papers.begin(), papers.end(), claim.paper) == papers.end()) {
    refuse(claim, unknown("paper", claim.paper, papers));
  }
  if (claim.suite.empty()) return;
  const IndexedSuite* const suite = index.find(claim.suite);
  if (suite == nullptr) {
    std::vector<std::string> names;
    for (const IndexedSuite& one : index.all) names.push_back(one.name);
    refuse(claim, unknown("suite", claim.suite, names));
  }
  if (!claim.predicate) return;
  std::set<std::string> labels;
  add_labels(*claim.predicate, labels);
  const std::vector<std::string> known = labels_of(*suite);
  for (const std::string& label : labels) {
    if (std::find(known.begin(), known.end(), label) != known.end()) continue;
    refuse(claim, unknown("mechanism of the suite " + claim.suite, label, known));
  }
}

bool is_selected(const std::string& word, const PaperClaim& claim, const Index& index) {
  if (word == claim.paper || word == claim.id() || word == claim.suite) return true;
  const IndexedSuite* const suite = index.find(claim.suite);
  return suite != nullptr && !suite->figure.empty() && suite->figure == word;
}

/// Throws UsageFailure for a word that selects no claim.
std::vector<PaperClaim> selected(const std::vector<PaperClaim>& all,
                                 const std::vector<std::string>& words, const Index& index) {
  if (words.empty()) return all;
  std::set<const PaperClaim*> chosen;
  for (const std::string& word : words) {
    std::vector<std::string> known;
    bool found = false;
    for (const PaperClaim& claim : all) {
      for (const std::string& name : {claim.paper, claim.id(), claim.suite}) known.push_back(name);
      if (!is_selected(word, claim, index)) continue;
      chosen.insert(&claim);
      found = true;
    }
    if (!found) {
      throw UsageFailure(unknown("paper, figure, suite, claim or run with claims", word, known));
    }
  }
  std::vector<PaperClaim> kept;
  for (const PaperClaim& claim : all) {
    if (chosen.contains(&claim)) kept.push_back(claim);
  }
  return kept;
}

struct Measured {
  result::Result result;
  std::string words;
};

std::string measured_words(const result::Result& result) {
  std::string words = result.run.finished_at.substr(0, 10);
  const auto add = [&](const std::string& more) { words += (words.empty() ? "" : ", ") + more; };
  if (!result.provenance.commit.empty()) add(result.provenance.commit.substr(0, 8));
  if (!result.suite.profile.empty()) add("profile " + result.suite.profile);
  return words;
}

Measured measured_of(const fs::path& file) {
  Measured measured{result::read_result(file), ""};
  measured.words = measured_words(measured.result);
  return measured;
}

/// What is not decided, the suite in full may decide; what has no result, its quick profile.
void add_command(HeldClaim& one, const IndexedSuite& suite, const Measured* measured) {
  const ClaimOutcome outcome = one.evidence.outcome;
  if (outcome == ClaimOutcome::seen || outcome == ClaimOutcome::opposite) return;
  if (measured == nullptr && one.claim.not_run.empty()) {
    one.command = "attnbench figures --run " + suite.name;
    one.hours = quick_time(suite);
  } else if (measured == nullptr || !measured->result.suite.profile.empty()) {
    one.command = "attnbench run " + suite.name;
    one.hours = full_time(suite);
  }
}

HeldClaim held(const PaperClaim& claim, const Measured* measured, const IndexedSuite* suite) {
  HeldClaim one;
  one.claim = claim;
  if (claim.not_run.empty() && measured != nullptr) {
    one.measured = measured->words;
    try {
      one.evidence = reports::claims::evaluate(claim, measured->result);
    } catch (const UsageError& error) {
      throw UsageFailure(error.what());
    }
  } else {
    one.evidence.reason = claim.not_run.empty() ? "no stored result" : claim.not_run;
  }
  if (suite != nullptr) add_command(one, *suite, measured);
  return one;
}

}  // namespace

std::vector<HeldClaim> hold_claims(const Index& index, const std::vector<std::string>& words,
                                   const std::vector<fs::path>& runs) {
  const std::vector<PaperClaim> all = reports::claims::read_claims(index.suites / "claims");
  for (const PaperClaim& claim : all) validate(claim, index);
  std::map<std::string, Measured> results;
  for (const fs::path& run : runs) {
    Measured measured = measured_of(run);
    const std::string name = measured.result.suite.name;
    const bool claimed = std::any_of(all.begin(), all.end(),
                                     [&](const PaperClaim& claim) { return claim.suite == name; });
    if (!claimed) {
      throw UsageFailure(run.string() + ": a result of the suite \"" + text::quotable(name) +
                         "\", which no claim is about");
    }
    results.insert_or_assign(name, std::move(measured));
  }
  std::vector<HeldClaim> chosen;
  for (const PaperClaim& claim : selected(all, words, index)) {
    if (!runs.empty() && !results.contains(claim.suite)) continue;
    const IndexedSuite* const suite = index.find(claim.suite);
    if (suite != nullptr && !results.contains(claim.suite) && claim.predicate && suite->stored) {
      results.emplace(claim.suite, measured_of(suite->stored->file));
    }
    const auto found = results.find(claim.suite);
    chosen.push_back(held(claim, found == results.end() ? nullptr : &found->second, suite));
  }
  return chosen;
}

void to_json(nlohmann::json& json, const HeldClaim& held) {
  json = held.claim;
  const Evidence& evidence = held.evidence;
  json["evidence"] = {{"outcome", to_string(evidence.outcome)},
                      {"leaning", to_string(evidence.leaning)},
                      {"found", evidence.found},
                      {"reason", evidence.reason},
                      {"size", evidence.size}};
  json["measured"] = held.measured;
  json["command"] = held.command;
  json["hours"] = held.hours;
}

std::string counted_words(const std::vector<HeldClaim>& all) {
  std::string words;
  for (const ClaimOutcome outcome : {ClaimOutcome::seen, ClaimOutcome::opposite,
                                     ClaimOutcome::undecided, ClaimOutcome::not_run}) {
    const auto count = std::count_if(all.begin(), all.end(), [&](const HeldClaim& one) {
      return one.evidence.outcome == outcome;
    });
    words += (words.empty() ? ": " : ", ") + std::to_string(count) + " " + to_string(outcome);
  }
  return std::to_string(all.size()) + (all.size() == 1 ? " claim" : " claims") + words;
}

}  // namespace attnbench::gallery
