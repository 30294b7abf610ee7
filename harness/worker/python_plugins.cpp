#include "harness/worker/python_plugins.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>

#include "attention/python/bridge.hpp"
#include "core/hash.hpp"
#include "core/json_object.hpp"
#include "core/process/fingerprint.hpp"
#include "core/process/python_word.hpp"
#include "core/protocol.hpp"
#include "harness/worker/catalogue.hpp"
#include "harness/worker/child.hpp"

namespace attnbench::worker {
namespace {

using python::Description;

/// Above this share of a call, the overhead of entering Python is reported.
constexpr double loud_share = 0.05;

std::string hash_of(const std::string& file) {
  try {
    return hash_file(file);
  } catch (const std::exception&) {
    return "missing";
  }
}

/// The plugins in Python among `words`, without what they declare.
std::vector<PythonPlugin> named_in(const std::vector<std::string>& words) {
  std::vector<PythonPlugin> plugins;
  for (const std::string& word : words) {
    if (process::is_python(word)) {
      plugins.push_back({PluginName(word).path, process::mechanism_of(word), {}, {}});
    }
  }
  return plugins;
}

std::string build_text() {
  const Stamp build = stamp();
  return build.attnbench + " " + std::to_string(build.abi) + " " + build.torch;
}

std::map<std::string, std::string> hashes_of(const Description& description) {
  std::map<std::string, std::string> hashes;
  for (const std::string& file : description.files) hashes[file] = hash_of(file);
  return hashes;
}

/// What the word declared the last time, where nothing that it depends on has changed.
std::optional<Description> remembered(const std::string& word) {
  const auto known = process::recalled(process::declaration_file(word));
  if (!known || !known->is_object() || known->value("build", "") != build_text()) {
    return std::nullopt;
  }
  try {
    auto description = known->at("description").get<Description>();
    if (known->at("hashes").get<std::map<std::string, std::string>>() != hashes_of(description)) {
      return std::nullopt;
    }
    return description;
  } catch (const std::exception&) {
    return std::nullopt;  // of an older form
  }
}

void remember(const std::string& word, const Description& description) {
  process::remember(process::declaration_file(word), {{"word", word},
                                                      {"build", build_text()},
                                                      {"description", description},
                                                      {"hashes", hashes_of(description)}});
}

/// Takes one answer of the child: {description} or a failure.
void take(PythonPlugin& plugin, const Json& message) {
  if (message.value("type", "") == "told") {
    plugin.description = message.at("description").get<Description>();
    plugin.outcome = {};
    remember(plugin.word, plugin.description);
  } else {
    plugin.outcome = outcome_from(message.at("outcome"));
  }
}

Json asked(const std::string& word) {
  try {
    return {{"type", "told"}, {"description", Json::parse(python::bridge().describe(word))}};
  } catch (...) {
    return {{"type", "untold"}, {"outcome", to_json(outcome_of(std::current_exception()))}};
  }
}

/// Each file, and each module that is imported, in an interpreter of its own: what one imports or
/// changes is not there for the next.
void ask(const std::vector<PythonPlugin*>& plugins, double limit_seconds,
         const std::function<void(const std::string&)>& on_step) {
  ChildSetup setup;
  setup.limit_seconds = limit_seconds;
  for (std::size_t next = 0; next < plugins.size();) {
    const std::size_t begin = next;
    std::size_t end = begin;
    const std::string home = process::home_of(plugins[begin]->word);
    while (end < plugins.size() && process::home_of(plugins[end]->word) == home) ++end;
    on_step(plugins[begin]->word);
    const Outcome outcome = run_child(
        setup,
        [&](process::Channel& channel) {
          for (std::size_t i = begin; i < end; ++i) channel.send(asked(plugins[i]->word));
        },
        [&](const Json& message) {
          if (next < end) take(*plugins[next++], message);
        });
    if (next >= end) continue;
    PythonPlugin& guilty = *plugins[next++];
    guilty.outcome = outcome;
    if (outcome.status == Status::ok) guilty.outcome.status = Status::crashed;
    guilty.outcome.reason = "while " + guilty.word + " was imported: " + outcome.reason;
  }
}

double shortest_median(const std::map<std::string, result::TimingRound>& timing) {
  double shortest = 0;
  for (const auto& [what, round] : timing) {
    if (shortest == 0 || round.median_seconds < shortest) shortest = round.median_seconds;
  }
  return shortest;
}

double all_samples(const std::map<std::string, result::TimingRound>& timing) {
  double seconds = 0;
  for (const auto& [what, round] : timing) {
    for (const double one : round.samples_seconds) seconds += one;
  }
  return seconds;
}

}  // namespace

void to_json(Json& json, const PythonPlugin& plugin) {
  json = {{"word", plugin.word},
          {"mechanism", plugin.mechanism},
          {"description", plugin.description},
          {"outcome", to_json(plugin.outcome)}};
}

void from_json(const Json& json, PythonPlugin& plugin) {
  json.at("word").get_to(plugin.word);
  json.at("mechanism").get_to(plugin.mechanism);
  json.at("description").get_to(plugin.description);
  plugin.outcome = outcome_from(json.at("outcome"));
}

std::optional<std::vector<PythonPlugin>> remembered_plugins(const std::vector<std::string>& words) {
  std::vector<PythonPlugin> plugins = named_in(words);
  for (PythonPlugin& plugin : plugins) {
    auto known = remembered(plugin.word);
    if (!known) return std::nullopt;
    plugin.description = std::move(*known);
  }
  return plugins;
}

std::vector<PythonPlugin> python_plugins(const std::vector<std::string>& words,
                                         double limit_seconds,
                                         const std::function<void(const std::string&)>& on_step) {
  std::vector<PythonPlugin> plugins = named_in(words);
  std::vector<PythonPlugin*> unknown;
  for (PythonPlugin& plugin : plugins) {
    if (auto known = remembered(plugin.word)) {
      plugin.description = std::move(*known);
    } else {
      unknown.push_back(&plugin);
    }
  }
  std::stable_sort(unknown.begin(), unknown.end(), [](const auto* one, const auto* other) {
    return process::home_of(one->word) < process::home_of(other->word);
  });
  ask(unknown, limit_seconds, on_step);
  return plugins;
}

std::string note_on_reference(const Description& description, double check_seconds,
                              double sampled_seconds) {
  constexpr double short_seconds = 1;
  if (description.reference != "python" ||
      check_seconds <= std::max(sampled_seconds, short_seconds)) {
    return "";
  }
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(),
                "its check took %.1f s, its samples %.1f s: a reference in tensor operations, "
                "without loops over tokens, is faster",
                check_seconds, sampled_seconds);
  return text.data();
}

Json python_section(const PythonPlugin& plugin,
                    const std::map<std::string, result::TimingRound>& timing,
                    double check_seconds) {
  python::Bridge* const bridge = python::started_bridge();
  if (bridge == nullptr) return nullptr;
  const Description& said = plugin.description;
  Json section = {{"word", plugin.word},
                  {"python", said.python},
                  {"torch", said.torch},
                  {"packages", said.packages}};
  const python::Observed seen = bridge->observed();
  std::string contents;
  for (const std::string& file : seen.files) contents += hash_of(file) + "\n";
  if (!contents.empty()) section["file_hash"] = hash_text(contents);
  std::vector<std::string> notes = seen.notes;
  if (seen.compile_seconds) section["compile_seconds"] = *seen.compile_seconds;
  if (seen.call_seconds) {
    section["call_seconds"] = *seen.call_seconds;
    const double median = shortest_median(timing);
    if (median > 0) {
      const double share = *seen.call_seconds / median;
      section["call_share"] = share;
      if (share > loud_share) {
        notes.push_back("getting into Python takes " + std::to_string(std::lround(100 * share)) +
                        " % of the call");
      }
    }
  }
  // The first call compiles, and is in the check.
  const double checked = check_seconds - seen.compile_seconds.value_or(0);
  if (const std::string note = note_on_reference(said, checked, all_samples(timing));
      !note.empty()) {
    notes.push_back(note);
  }
  if (!notes.empty()) section["notes"] = notes;
  return section;
}

}  // namespace attnbench::worker
