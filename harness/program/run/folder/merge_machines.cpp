#include "harness/program/run/folder/merge_machines.hpp"

#include <algorithm>

namespace attnbench::run {
namespace {

using result::MachinePart;

/// What two runs must share to count as made on one machine.
std::string kind_of_machine(const result::Result& result, bool alike) {
  Json cards = Json::object();
  for (const auto& [word, card] : result.machine.devices) {
    cards[word] = alike ? Json(card.name) : Json(card);
  }
  Json kind = {result.machine.cpu_model, cards};
  kind.push_back(result.run.threads ? Json(*result.run.threads) : Json());
  if (!alike) kind.push_back(result.machine.host);
  return kind.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void extend(MachinePart& part, const result::Result& one) {
  part.started_at = std::min(part.started_at, one.run.started_at);
  part.finished_at = std::max(part.finished_at, one.run.finished_at);
  part.ceilings.insert(one.ceilings.begin(), one.ceilings.end());
  const std::string& host = one.machine.host;
  if (std::find(part.hosts.begin(), part.hosts.end(), host) == part.hosts.end()) {
    part.hosts.push_back(host);
  }
}

}  // namespace

MergedMachines::MergedMachines(const std::vector<Share>& shares, bool alike) {
  std::map<std::string, std::size_t> known;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (!shares[i].result || shares[i].result->cells.empty()) continue;
    const result::Result& one = *shares[i].result;
    const auto [place, is_new] = known.try_emplace(kind_of_machine(one, alike), parts_.size());
    of_share_[i] = place->second;
    is_new ? add(one, alike) : extend(parts_[place->second], one);
  }
}

void MergedMachines::add(const result::Result& one, bool alike) {
  MachinePart part;
  const std::string name =
      alike || one.machine.host.empty() ? one.machine.cpu_model : one.machine.host;
  part.name = name;
  const auto taken = [&] {
    return std::any_of(parts_.begin(), parts_.end(),
                       [&](const MachinePart& other) { return other.name == part.name; });
  };
  for (int number = 2; taken(); ++number) part.name = name + " (" + std::to_string(number) + ")";
  part.machine = one.machine;
  part.ceilings = one.ceilings;
  part.provenance = one.provenance;
  part.threads = one.run.threads;
  part.started_at = one.run.started_at;
  part.finished_at = one.run.finished_at;
  part.hosts = {one.machine.host};
  parts_.push_back(std::move(part));
}

}  // namespace attnbench::run
