#include "core/result/record.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace attnbench::result {
namespace {

bool has_status(const Json& cell, Status status) {
  const auto found = cell.find("status");
  return found != cell.end() && *found == to_string(status);
}

}  // namespace

const std::vector<std::string>& status_words() {
  static const std::vector<std::string> words{"ok",          "wrong",   "disturbed",
                                              "unsupported", "skipped", "out_of_memory",
                                              "timeout",     "crashed", "error"};
  return words;
}

const char* to_string(Status status) {
  return status_words()[static_cast<std::size_t>(status)].c_str();
}

std::optional<Status> status_from(const std::string& word) {
  const auto& words = status_words();
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end()) return std::nullopt;
  return static_cast<Status>(found - words.begin());
}

bool is_disturbed_round(const Json& round) {
  if (!round.is_object()) return false;
  if (round.contains("disturbed")) return round["disturbed"] == true;
  const auto lengths = round.find("lengths");
  if (lengths == round.end() || !lengths->is_array()) return false;
  std::ptrdiff_t compared = 0;
  std::ptrdiff_t stopped = 0;
  for (const Json& length : *lengths) {
    if (!length.is_object() || !length.contains("stop")) continue;  // not tried
    ++compared;
    stopped += length["stop"] == "disturbed";
  }
  return 2 * stopped > compared;
}

bool is_ok(const Json& cell) { return has_status(cell, Status::ok); }

bool is_disturbed(const Json& cell) { return has_status(cell, Status::disturbed); }

std::string preempted_words(std::size_t disturbed, std::size_t rounds) {
  return std::to_string(disturbed) + " of " + std::to_string(rounds) +
         (rounds == 1 ? " round was" : " rounds were") + " preempted: repeat on a quiet machine";
}

std::size_t count_disturbed(const Json& rounds) {
  return static_cast<std::size_t>(std::count_if(rounds.begin(), rounds.end(), is_disturbed_round));
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Roofline, floor_seconds, share, bound)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Segment, questions, wrong_from_context,
                                                wrong_from_elsewhere)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(LookBack, distances, questions, right)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ReachLine, keys, state_bytes, reach)

std::optional<Timing> timing_of(const Json& cell, const std::string& what) {
  if (!cell.contains("timing")) return std::nullopt;
  const std::string name = what.empty() ? cell["primary"].get<std::string>() : what;
  const auto found = cell["timing"].find(name);
  if (found == cell["timing"].end()) return std::nullopt;
  const Json& rounds = found->at("rounds");
  return Timing{found->at("median_seconds"),
                found->at("low_seconds"),
                found->at("high_seconds"),
                found->value("interval", ""),
                rounds.size(),
                count_disturbed(rounds)};
}

std::optional<Roofline> roofline_of(const Json& cell) {
  const auto found = cell.find("roofline");
  if (found == cell.end()) return std::nullopt;
  return found->get<Roofline>();
}

std::optional<Training> training_of(const Json& cell) {
  const auto found = cell.find("training");
  if (found == cell.end()) return std::nullopt;
  Training training;
  training.converged = found->value("converged", false);
  training.disturbed = found->value("disturbed", false);
  training.guess = found->value("guess", 0.0);
  training.chance = found->value("chance", 0.0);
  if (found->contains("reach")) training.reach = found->at("reach").get<double>();
  training.stacked = found->value("stacked", 1.0);
  training.test = found->value("test", std::vector<Segment>{});
  training.look_back = found->value("look_back", LookBack{});
  if (found->contains("reach_line")) training.reach_line = found->at("reach_line").get<ReachLine>();
  return training;
}

const char* const disturbed_note =
    "disturbed: other programs had the CPU, such a time is never ranked; `--retry disturbed` "
    "measures it again";

}  // namespace attnbench::result
