// The papers' claims held against stored results, or against runs.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/program/gallery/index.hpp"
#include "reports/claims/claim.hpp"
#include "reports/claims/evaluate.hpp"

namespace attnbench::gallery {

struct HeldClaim {
  reports::claims::PaperClaim claim;
  reports::claims::Evidence evidence;
  std::string measured;  ///< "2026-11-24, 1a2b3c4, profile quick"; empty where nothing was
  std::string command;   ///< that may decide it; empty where it is decided, or no suite is about it
  std::string hours;     ///< of that command, in words
};

/// Holds the claims of SUITES/claims against the stored results of the index or, where `runs` names
/// some, against those alone and without the claims about other suites. `words` are papers,
/// figures, suites or claims (PAPER.NAME); none for all. Throws UsageFailure for other words, files
/// of claims of another form, and a claim about a paper, suite, label, setting or metric that is
/// not there.
std::vector<HeldClaim> hold_claims(const Index& index, const std::vector<std::string>& words,
                                   const std::vector<std::filesystem::path>& runs);

/// Writes a claim as `attnbench figures --claims --json` has it.
void to_json(nlohmann::json& json, const HeldClaim& held);

/// "58 claims: 20 seen, 6 opposite seen, 25 cannot tell, 7 not run".
std::string counted_words(const std::vector<HeldClaim>& all);

}  // namespace attnbench::gallery
