#include "tasks/crossover/work.hpp"

#include <nlohmann/json.hpp>
#include <optional>

#include "tasks/crossover/pairwise_timing.hpp"
#include "tasks/crossover/efficiency.hpp"

namespace attnbench::tasks::crossover {
namespace {

/// CAB's lengths begin here.
constexpr std::int64_t shortest_fitted = 256;

/// Where a verdict is to be shown: at the length from which on the mechanism is faster; else at the
/// longest that was compared.
const Fought* shown_of(const Found& found, const Duels& duels) {
  if (found.high) return &duels.fought().at(*found.high);
  const Fought* longest = nullptr;
  for (const auto& [length, fought] : duels.fought()) {
    if (fought.trial.faster != Faster::untried) longest = &fought;
  }
  return longest;
}

Json crossings_of(const Found& found) {
  Json list = Json::array();
  for (const Crossing& crossing : found.crossings) {
    const Faster to = crossing.from == Faster::exact ? Faster::mechanism : Faster::exact;
    list.push_back(
        {{"low", crossing.low}, {"high", crossing.high}, {"faster_from_high", to_string(to)}});
  }
  return list;
}

void add_efficiency(Json& section, const Duels& duels, const Range& range) {
  std::vector<double> lengths;
  std::vector<double> exact;
  std::vector<double> mechanism;
  for (const std::int64_t length : coarse_lengths(range.minimum, range.maximum)) {
    const auto found = duels.fought().find(length);
    if (length < shortest_fitted || found == duels.fought().end()) continue;
    if (found->second.trial.faster == Faster::untried) continue;
    lengths.push_back(static_cast<double>(length));
    exact.push_back(found->second.times.first_seconds);
    mechanism.push_back(found->second.times.second_seconds);
  }
  const auto efficiency = efficiency_length(lengths, exact, mechanism);
  if (!efficiency) return;
  section["efficiency"] = {{"length", efficiency->length},
                           {"r2_exact", efficiency->r2_exact},
                           {"r2_mechanism", efficiency->r2_mechanism}};
}

class CrossoverWork final : public Work {
 public:
  CrossoverWork(const Registry& registry, const Cell& cell)
      : registry_(registry), settings_(settings_from(registry, cell)) {}

  void prepare(Context& context) override { duels_.emplace(registry_, settings_, context); }

  /// The length to be checked at is the one that the search finds, so it comes first.
  Json check(Context&) override {
    seek();
    return duels_->check(*shown_);
  }

  Json run(Context&) override {
    seek();
    Json section = {{"verdict", found_->verdict},
                    {"crossings", crossings_of(*found_)},
                    {"implementation", shown_->implementation},
                    {"against", shown_->exact.mechanism + "/" + shown_->exact.implementation},
                    {"length_minimum", found_->trials.front().length},
                    {"length_maximum", found_->trials.back().length},
                    {"lengths", Json::array()}};
    if (found_->low) section["low"] = *found_->low;
    if (found_->high) section["high"] = *found_->high;
    if (!duels_->stopped().empty()) section["stopped"] = duels_->stopped();
    for (const auto& [length, fought] : duels_->fought()) {
      section["lengths"].push_back(fought.to_json());
    }
    add_efficiency(section, *duels_, settings_.range);
    return {{"chosen",
             {{"implementation", shown_->implementation},
              {"reason", "at length " + std::to_string(shown_->trial.length) +
                             ", where the verdict is shown"}}},
            {"crossover", std::move(section)},
            {"timed_check", duels_->timed_check()}};
  }

 private:
  void seek() {
    if (found_) return;
    found_ = search(settings_.range, [this](std::int64_t length) { return duels_->at(length); });
    shown_ = shown_of(*found_, *duels_);
    if (shown_ != nullptr) return;
    throw UnsupportedError(duels_->stopped().empty()
                               ? "no length can be compared: " + reason_untried()
                               : "no length could be compared: " + duels_->stopped());
  }

  std::string reason_untried() const {
    return duels_->fought().empty() ? "none was tried" : duels_->fought().begin()->second.reason;
  }

  const Registry& registry_;
  const Settings settings_;
  std::optional<Duels> duels_;
  std::optional<Found> found_;
  const Fought* shown_ = nullptr;
};

}  // namespace

std::unique_ptr<Work> make_work(const Registry& registry, const Cell& cell) {
  return std::make_unique<CrossoverWork>(registry, cell);
}

}  // namespace attnbench::tasks::crossover
