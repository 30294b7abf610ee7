#include "harness/program/compare/provenance.hpp"

#include <algorithm>
#include <utility>

#include "core/text/format.hpp"

namespace attnbench::compare {
namespace {

/// The facts in which two results may differ.
Json facts_of(const result::Result& result) {
  return {{"machine", result.machine},
          {"run", result.run},
          {"suite", result.suite},
          {"provenance", result.provenance}};
}

}  // namespace

std::vector<std::string> differences_of(const result::Result& base, const result::Result& changed) {
  static const std::vector<std::pair<const char*, const char*>> facts{
      {"/machine/host", "host"},
      {"/machine/cpu_model", "CPU"},
      {"/machine/devices", "devices"},
      {"/run/threads", "threads"},
      {"/run/seed", "seed"},
      {"/run/rounds", "rounds"},
      {"/suite/hash", "suite"},
      {"/suite/profile", "profile"},
      {"/machine/governor", "governor"},
      {"/provenance/compiler", "compiler"},
      {"/provenance/flags", "compiler flags"},
      {"/machine/version", "LibTorch"},
      {"/machine/blas/library", "BLAS"},
      {"/machine/blas/core_type", "BLAS core type"},
      {"/provenance/commit", "commit"},
      {"/provenance/dirty", "uncommitted changes"},
      {"/provenance/binary", "binary"}};
  const Json before = facts_of(base);
  const Json after = facts_of(changed);
  const auto said = [](const Json& result, const Json::json_pointer& place) {
    return result.contains(place) ? text::human_value(result.at(place)) : "not said";
  };
  std::vector<std::string> sentences;
  for (const auto& [pointer, word] : facts) {
    const Json::json_pointer place(pointer);
    const bool known = before.contains(place) || after.contains(place);
    const bool both = before.contains(place) && after.contains(place);
    if (!known || (both && before.at(place) == after.at(place))) continue;
    std::string sentence = word;
    sentence.append(": ").append(said(before, place));
    sentence.append(", then ").append(said(after, place));
    sentences.push_back(std::move(sentence));
  }
  return sentences;
}

std::string basis_of(const result::Result& result) {
  const result::MachineCard& machine = result.machine;
  std::string text = machine.host.empty() ? "a machine that is not named" : machine.host;
  if (!machine.cpu_model.empty()) text += ", " + machine.cpu_model;
  const auto counted = [&](const std::optional<int>& count, const std::string& one) {
    return std::to_string(*count) + one + (*count == 1 ? "" : "s");
  };
  if (result.run.threads) text += ", " + counted(result.run.threads, " thread");
  return text + "; " +
         (result.run.rounds ? counted(result.run.rounds, " round") : "rounds not said");
}

bool one_machine(const result::Result& base, const result::Result& changed) {
  const result::MachineCard& before = base.machine;
  const result::MachineCard& after = changed.machine;
  const bool known = !before.host.empty() && !before.cpu_model.empty() && base.run.threads;
  if (!known || before.host != after.host || before.cpu_model != after.cpu_model ||
      base.run.threads != changed.run.threads) {
    return false;
  }
  return std::all_of(after.devices.begin(), after.devices.end(), [&](const auto& device) {
    const auto then = before.devices.find(device.first);
    return then == before.devices.end() || Json(then->second) == Json(device.second);
  });
}

}  // namespace attnbench::compare
