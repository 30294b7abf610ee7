#include "harness/measure/card_noise_sources.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace attnbench::measure {
namespace {

using Json = nlohmann::json;

/// A card at rest is said to be busy for a few hundredths now and then.
constexpr double idle_share = 0.05;
constexpr std::size_t most_told = 5;

std::string whole(double value) { return std::to_string(std::lround(value)); }

void look_at_others(const std::string& word, const Json& condition,
                    std::vector<std::string>& found) {
  const Json processes = condition.value("processes", Json::array());
  const double busy = condition.value("busy_share", 0.0);
  if (!processes.empty()) {
    std::string numbers;
    for (std::size_t i = 0; i < std::min(processes.size(), most_told); ++i) {
      numbers += (i == 0 ? "" : ", ") + processes[i].at("pid").dump();
    }
    if (processes.size() > most_told) {
      numbers += " and " + std::to_string(processes.size() - most_told) + " more";
    }
    found.push_back(std::string("Other processes use ") + word + " (" + numbers +
                    "): they take its time, its memory and its clock.");
  } else if (busy > idle_share) {
    found.push_back(word + " is " + whole(100 * busy) +
                    " % busy with work that is not seen from here, such as another container's.");
  }
}

void look_at_modes(const std::string& word, const Json& condition,
                   std::vector<std::string>& found) {
  if (!condition.value("persistence", true)) {
    found.push_back("The driver leaves " + word +
                    " between processes (persistence mode is off), so that each begins slowly and "
                    "with a low clock: nvidia-smi -pm 1.");
  }
  if (condition.value("mig", false)) {
    found.push_back(word +
                    " is divided (MIG is on): what is measured is a slice of the card that "
                    "it is named after.");
  }
  const bool ecc = condition.value("ecc", true);
  if (!ecc) {
    found.push_back("ECC of " + word +
                    " is off, which most others leave on: bandwidth is not that of other cards.");
  }
  if (condition.value("ecc_pending", ecc) != ecc) {
    found.push_back("ECC of " + word +
                    " changes at the next reset: numbers from before it will "
                    "not hold after it.");
  }
}

void look_at_clocks(const std::string& word, const Json& condition,
                    std::vector<std::string>& found) {
  const double limit = condition.value("power_limit_watts", 0.0);
  const double usual = condition.value("power_limit_usual_watts", limit);
  if (limit < usual) {
    found.push_back(word + " may take " + whole(limit) + " W where " + whole(usual) +
                    " W are usual: its clock falls under load.");
  }
  std::string reasons;
  for (const Json& reason : condition.value("slowed_by", Json::array())) {
    reasons += (reasons.empty() ? "" : ", ") + reason.get<std::string>();
  }
  if (!reasons.empty())
    found.push_back("The clock of " + word + " is held down by " + reasons + ".");
}

}  // namespace

std::vector<std::string> card_spoilers(const std::string& word, const Json& condition) {
  std::vector<std::string> found;
  look_at_others(word, condition, found);
  look_at_modes(word, condition, found);
  look_at_clocks(word, condition, found);
  return found;
}

}  // namespace attnbench::measure
