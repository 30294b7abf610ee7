#include "harness/compare/provenance.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "core/text/format.hpp"

namespace attnbench::compare {
namespace {

const Json* find(const Json& object, const std::string& pointer) {
  const Json::json_pointer place(pointer);
  return object.contains(place) ? &object[place] : nullptr;
}

}  // namespace

std::vector<std::string> differences_of(const Json& base, const Json& changed) {
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
  std::vector<std::string> sentences;
  for (const auto& [pointer, word] : facts) {
    const Json* before = find(base["attnbench"], pointer);
    const Json* after = find(changed["attnbench"], pointer);
    if ((!before && !after) || (before && after && *before == *after)) continue;
    std::string sentence = word;
    sentence.append(": ").append(before ? result::human_value(*before) : "not said");
    sentence.append(", then ").append(after ? result::human_value(*after) : "not said");
    sentences.push_back(std::move(sentence));
  }
  return sentences;
}

bool one_machine(const Json& base, const Json& changed) {
  for (const char* pointer : {"/machine/host", "/machine/cpu_model", "/run/threads"}) {
    const Json* before = find(base["attnbench"], pointer);
    const Json* after = find(changed["attnbench"], pointer);
    if (!before || !after || *before != *after) return false;
  }
  const Json* before = find(base["attnbench"], "/machine/devices");
  const Json* after = find(changed["attnbench"], "/machine/devices");
  if (!before || !after) return true;
  for (const auto& [word, card] : after->items()) {
    if (before->contains(word) && (*before)[word] != card) return false;
  }
  return true;
}

}  // namespace attnbench::compare
