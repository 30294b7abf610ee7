#include "tasks/stack.hpp"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>

#include "core/option_json.hpp"
#include "tasks/forecast.hpp"
#include "tasks/settings.hpp"

namespace attnbench::tasks {
namespace {

constexpr const char* own = "self";
constexpr const char* form =
    "expected the form \"3 self + 1 softmax\" or \"self + window(window=64)\"";

std::string without_spaces(const std::string& text) {
  const auto first = text.find_first_not_of(' ');
  return first == std::string::npos ? ""
                                    : text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

/// The value of an option as a suite's JSON has it, or as text: 64, 0.5, true, gated.
OptionValue value_of(const Option& option, const std::string& text, bool causal) {
  const Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (option.type == OptionType::text || value.is_discarded()) return text;
  if (option.type == OptionType::window && value.is_number_integer() &&
      value.get<std::int64_t>() > 0) {
    return window_of(value.get<std::int64_t>(), causal);
  }
  return value_from(value, option.name);
}

std::map<std::string, OptionValue> options_of(const Entry& entry, const std::string& text,
                                              bool causal) {
  std::map<std::string, OptionValue> options;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const auto option = std::find_if(entry.options.begin(), entry.options.end(),
                                     [&](const Option& one) { return one.name == name; });
    if (option == entry.options.end() || equals == std::string::npos) {
      std::vector<std::string> known;
      for (const Option& one : entry.options) known.push_back(one.name);
      throw UsageError(entry.name + " has no option \"" + name + "\"" + did_you_mean(name, known));
    }
    if (options.contains(name)) throw UsageError(entry.name + " has two values of " + name);
    options[name] = value_of(*option, word.substr(equals + 1), causal);
  }
  return options;
}

bool is_causal(const Options& settings) {
  return !settings.has("pattern") || settings.text("pattern") == "causal";
}

/// What stands between the signs +, those in brackets apart.
std::vector<std::string> parts_of(const std::string& stack) {
  std::vector<std::string> parts(1);
  bool inside = false;
  for (const char letter : stack) {
    inside = letter == '(' || (inside && letter != ')');
    if (letter == '+' && !inside) {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  return parts;
}

/// The words of a stack, a word a block: "2 self + softmax" is self, self, softmax.
std::vector<std::string> words_of(const std::string& stack) {
  const auto refuse = [&](const std::string& why) {
    return UsageError("stack \"" + stack + "\": " + why + "; " + form);
  };
  std::vector<std::string> words;
  for (const std::string& part : parts_of(stack)) {
    std::string word = without_spaces(part);
    std::int64_t count = 1;
    const std::size_t digits = word.find_first_not_of("0123456789");
    if (digits != 0) {
      count = std::strtoll(word.c_str(), nullptr, 10);
      word = digits == std::string::npos ? "" : without_spaces(word.substr(digits));
    }
    if (word.empty()) throw refuse("it names no mechanism at one place");
    if (count < 1 || count > 1000) throw refuse("a count is from 1 to 1000");
    words.insert(words.end(), static_cast<std::size_t>(count), word);
  }
  if (std::find(words.begin(), words.end(), own) == words.end()) {
    throw refuse("it has no block of self, the mechanism that is measured");
  }
  return words;
}

/// Adds `share` times a cost; `backward_flops`, a factor, is averaged, too.
void add(Cost& sum, const Cost& one, double share) {
  for (double Cost::*const number :
       {&Cost::model_flops, &Cost::executed_flops, &Cost::minimal_bytes, &Cost::exponentials,
        &Cost::workspace_bytes, &Cost::saved_bytes, &Cost::state_bytes, &Cost::backward_flops}) {
    sum.*number += share * (one.*number);
  }
}

Growth greater_of(Growth growth, const Growth& other) {
  for (double Growth::*const exponent :
       {&Growth::time_in_length, &Growth::workspace_in_length, &Growth::time_in_latents,
        &Growth::workspace_in_latents, &Growth::time_in_head_dim}) {
    growth.*exponent = std::max(growth.*exponent, other.*exponent);
  }
  growth.workspace_in_head_dim.reset();
  growth.from_length = std::max(growth.from_length, other.from_length);
  return growth;
}

Cost no_cost() {
  Cost none;
  none.backward_flops = 0;
  return none;
}

/// `mean`, with the costs of the mean over its stack. A training keeps something of each block; the
/// peak of other calls is that of one block, here of the largest.
void average(TaskForecast& mean) {
  mean.cost = mean.calls_cost = no_cost();
  if (mean.prefill_cost) mean.prefill_cost = no_cost();
  mean.peak_bytes = 0;
  const double share = 1 / static_cast<double>(mean.stack.size());
  for (const StackedMechanism& one : mean.stack) {
    add(mean.cost, one.forecast->cost, share);
    add(mean.calls_cost, one.forecast->calls_cost, share);
    if (mean.prefill_cost && one.forecast->prefill_cost) {
      add(*mean.prefill_cost, *one.forecast->prefill_cost, share);
    }
    const double peak = one.forecast->peak_bytes;
    mean.peak_bytes = mean.once ? mean.peak_bytes + share * peak : std::max(mean.peak_bytes, peak);
    mean.growth = greater_of(mean.growth, one.forecast->growth);
  }
}

}  // namespace

Option stack_setting() {
  return text_setting(
      "stack", "",
      "the mechanisms of a model's blocks, a pattern that repeats, such as \"3 self "
      "+ 1 softmax\" or \"self + window(window=64)\", self the one that is measured; "
      "empty = self alone");
}

bool has_stack(const Options& settings) {
  if (!settings.has("stack") || settings.text("stack").empty()) return false;
  if (settings.has("scope") && settings.text("scope") != "model") {
    throw UsageError("stack is of models, and the scope is " + settings.text("scope") +
                     ": say scope model");
  }
  return true;
}

ResolvedCell with_mechanism(const Registry& registry, const ResolvedCell& cell,
                            const std::string& word) {
  const std::size_t bracket = word.find('(');
  if (bracket != std::string::npos && word.back() != ')') {
    throw UsageError("\"" + word + "\" lacks its closing bracket");
  }
  const std::string name = word.substr(0, bracket);
  if (name.find(':') != std::string::npos) {
    throw UsageError("\"" + name + "\": a mechanism in Python is in a stack as self alone");
  }
  const std::size_t slash = name.find('/');
  const Resolved found = registry.resolve(name.substr(0, slash));
  ResolvedCell other = cell;
  other.mechanism = found.entry->name;
  other.implementation = slash == std::string::npos ? found.implementation : name.substr(slash + 1);
  if (other.implementation != "auto") found.entry->implementation(other.implementation);
  other.said = found.options;
  if (bracket != std::string::npos) {
    const std::string options = word.substr(bracket + 1, word.size() - bracket - 2);
    for (auto& [key, value] : options_of(*found.entry, options, is_causal(cell.settings))) {
      other.said[key] = value;
    }
  }
  if (other.settings.has("stack")) other.settings.set("stack", std::string());
  return other;
}

TaskForecast forecast_stack(const Registry& registry, const ResolvedCell& cell, std::int64_t blocks,
                            const std::function<TaskForecast(const ResolvedCell&)>& alone) {
  if (!has_stack(cell.settings)) return alone(cell);
  const std::string& said = cell.settings.text("stack");
  const std::vector<std::string> words = words_of(said);
  if (blocks % static_cast<std::int64_t>(words.size()) != 0) {
    throw UsageError("stack \"" + said + "\" has " + std::to_string(words.size()) +
                     " blocks, which do not divide the " + std::to_string(blocks) +
                     " of the model that hold a mechanism: set layers");
  }
  std::map<std::string, StackedMechanism> kinds;
  for (const std::string& word : words) {
    if (kinds.contains(word)) continue;
    ResolvedCell one = cell;
    one.settings.set("stack", std::string());
    if (word != own) one = with_mechanism(registry, one, word);
    kinds[word] = {one, std::make_shared<const TaskForecast>(alone(one))};
  }
  TaskForecast forecast = *kinds.at(own).forecast;
  std::int64_t stream = 0;
  for (const auto& [word, kind] : kinds) {
    if (!kind.forecast->support) {
      forecast.support = kind.forecast->support;
      if (word != own) forecast.support.reason = word + ": " + forecast.support.reason;
      return forecast;
    }
    const SingleThread one_thread;
    const std::int64_t passed = stream_tokens(*make_on_cpu(registry, kind.cell, *kind.forecast));
    if (stream != 0 && passed != 0 && passed != stream) {
      forecast.support =
          Support::no("blocks pass on one stream of latents, and those of " + word + " ask for " +
                      std::to_string(passed) + ", others for " + std::to_string(stream));
      return forecast;
    }
    stream = std::max(stream, passed);
    if (word != own) forecast.choice_reason += "; " + word + ": " + kind.forecast->implementation;
  }
  for (const std::string& word : words) forecast.stack.push_back(kinds.at(word));
  average(forecast);
  return forecast;
}

BlockMechanism mechanism_of(const ResolvedCell& cell, const TaskForecast& forecast,
                            std::size_t index) {
  if (forecast.stack.empty()) return {cell, forecast};
  const StackedMechanism& one = forecast.stack[index % forecast.stack.size()];
  return {one.cell, *one.forecast};
}

std::vector<std::size_t> blocks_to_check(const TaskForecast& forecast, std::size_t blocks) {
  std::set<const TaskForecast*> seen;
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < std::max<std::size_t>(1, forecast.stack.size()) && i < blocks; ++i) {
    const TaskForecast* const one =
        forecast.stack.empty() ? &forecast : forecast.stack[i].forecast.get();
    if (seen.insert(one).second) chosen.push_back(i);
  }
  if (blocks > 0 && chosen.back() != blocks - 1) chosen.push_back(blocks - 1);
  return chosen;
}

MakeMixer mixers(const Registry& registry, const ResolvedCell& cell, const TaskForecast& forecast) {
  return [&](std::size_t index) {
    const auto [own_cell, own_forecast] = mechanism_of(cell, forecast, index);
    return Mixer{registry.entry(own_cell.mechanism).make(own_forecast.options, forecast.problem),
                 chosen(registry, own_cell, own_forecast)};
  };
}

}  // namespace attnbench::tasks
