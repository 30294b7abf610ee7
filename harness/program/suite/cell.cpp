#include "harness/program/suite/cell.hpp"

#include <re2/re2.h>
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/errors.hpp"
#include "core/failure.hpp"
#include "core/hash.hpp"
#include "core/option_json.hpp"
#include "core/process/python_word.hpp"
#include "core/sequence_lengths.hpp"
#include "core/sizes.hpp"
#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "harness/program/suite/values.hpp"

namespace attnbench::suite {
namespace {

using Point = std::map<std::string, const Term*>;

class CellMaker {
 public:
  CellMaker(const Point& point, const std::string& place, Problems& problems)
      : point_(point), place_(place), problems_(problems) {}

  void declare(const std::vector<Option>& options) {
    for (const Option& option : options) {
      if (option.type != OptionType::integer || sizes_.has(option.name)) continue;
      const Term* term = find(option.name);
      if (term == nullptr) {
        sizes_.add(option.name, std::get<std::int64_t>(option.fallback));
      } else if (term->value.is_string()) {
        sizes_.add(option.name, term->value.get<std::string>());
      } else {
        sizes_.add(option.name, term->value.get<std::int64_t>());
      }
    }
  }

  const Term* find(const std::string& name) const {
    const auto found = point_.find(name);
    return found == point_.end() ? nullptr : found->second;
  }

  OptionValue resolved(const Option& option, const Term& term) {
    try {
      if (option.type == OptionType::integer) {
        const std::int64_t size = sizes_.given(option.name);
        const std::string complaint = range_complaint(option, static_cast<double>(size));
        if (!complaint.empty()) file(term.place, complaint);
        return size;
      }
      if (option.type == OptionType::window) return window(term);
    } catch (const ExpressionError& error) {
      file(term.place, error.what());
      return option.fallback;  // the suite is refused: any value will do
    }
    return value_from(term.value, option.name);
  }

  void check_sizes() {
    try {
      for (const SizeFault& fault : sizes_.contradictions()) {
        file(place_of(fault.size), fault.reason + hint());
      }
      check_whole();
    } catch (const ExpressionError& error) {
      file(place_, error.what());
    }
  }

  /// Of a ragged batch `lengths` becomes the shortest text of them, `batch` their number and
  /// `length` the longest: what is said otherwise is refused, but for a shape's.
  void take_lengths(const std::vector<Option>& settings) {
    const auto declared = [&](const char* name) {
      return std::any_of(settings.begin(), settings.end(),
                         [&](const Option& one) { return one.name == name; });
    };
    const Term* const lengths = find("lengths");
    if (!declared("lengths") || lengths == nullptr) return;
    try {
      const std::vector<std::int64_t> each = sequence_lengths(lengths->value.get<std::string>());
      if (each.empty()) return;
      taken_["lengths"] = sequence_lengths_text(each);
      take_size("batch", static_cast<std::int64_t>(each.size()), "the number of them");
      take_size("length", *std::max_element(each.begin(), each.end()), "the longest of them");
    } catch (const UsageError& error) {
      file(lengths->place, error.what());
    } catch (const ExpressionError& error) {
      file(lengths->place, error.what());
    }
  }

  /// What take_lengths made of the setting; null where it is as it was said.
  const OptionValue* taken(const std::string& setting) const {
    const auto found = taken_.find(setting);
    return found == taken_.end() ? nullptr : &found->second;
  }

  bool good() const { return good_; }
  bool causal = true;

 private:
  void file(const std::string& place, const std::string& what) {
    problems_.add(place, what);
    good_ = false;
  }

  /// What to do about sizes of which some are a shape's.
  std::string hint() const {
    const bool shaped = std::any_of(point_.begin(), point_.end(),
                                    [](const auto& one) { return one.second->of_shape; });
    return shaped ? "; some of these sizes are the shape's: say the others to go with it, or all"
                  : "";
  }

  void take_size(const char* name, std::int64_t size, const std::string& meaning) {
    const Term* const said = find(name);
    if (said != nullptr && !said->of_shape && sizes_.given(name) != size) {
      file(said->place, "is " + std::to_string(sizes_.given(name)) + ", and lengths \"" +
                            plain_text(taken_.at("lengths")) + "\" make it " +
                            std::to_string(size) + ", " + meaning +
                            "; expected one of both settings, or the same of them");
    }
    sizes_.add(name, size);
    taken_[name] = size;
  }

  std::string place_of(const std::string& name) const {
    const Term* term = find(name);
    return term == nullptr ? place_ : term->place;
  }

  std::int64_t side(const Json& value, const Term& term) {
    if (!value.is_string()) return value.get<std::int64_t>();
    const std::int64_t keys = sizes_.evaluated(value.get<std::string>());
    if (keys < 0 || keys > longest_length) {
      file(term.place, "is a window of " + std::to_string(keys) + "; expected 0 to " +
                           std::to_string(longest_length));
    }
    return keys;
  }

  Window window(const Term& term) {
    if (term.value.is_object()) {
      return {side(term.value["left"], term), side(term.value["right"], term)};
    }
    const std::int64_t keys = side(term.value, term);
    if (keys < 1)
      file(term.place, "is a window of " + std::to_string(keys) + " keys; expected 1 or more");
    return window_of(keys, causal);
  }

  /// Sizes within their bounds can still multiply to a cell that is too large.
  void check_whole() {
    double numbers = 1;
    for (const auto& alike :
         std::initializer_list<std::vector<const char*>>{{"batch"},
                                                         {"heads"},
                                                         {"length", "key_length", "past"},
                                                         {"head_dim", "value_dim", "key_dim"}}) {
      double greater = 1;
      for (const char* name : alike) {
        if (sizes_.has(name)) greater = std::max(greater, static_cast<double>(sizes_.value(name)));
      }
      numbers *= greater;
    }
    if (numbers > static_cast<double>(max_numbers)) {
      file(place_, "batch, heads, length and width make " + text::human_count(numbers) +
                       " numbers of one input; expected at most " +
                       text::human_count(static_cast<double>(max_numbers)) +
                       ": choose smaller sizes");
    }
  }

  const Point& point_;
  const std::string& place_;
  Problems& problems_;
  Sizes sizes_;
  OptionValues taken_;  ///< settings that follow from `lengths`
  bool good_ = true;
};

OptionValue fallback_of(const std::string& name, const std::vector<Option>& options) {
  return std::find_if(options.begin(), options.end(),
                      [&](const Option& one) { return one.name == name; })
      ->fallback;
}

Json differing(const OptionValues& values, const std::vector<Option>& options) {
  Json kept = Json::object();
  for (const Option& option : options) {
    const auto found = values.find(option.name);
    if (found == values.end()) continue;
    const Json value = to_json(found->second);
    if (value != to_json(option.fallback)) kept[option.name] = value;
  }
  return kept;
}

// RE2 takes time in proportion to the text, whatever the expression.
using Expressions = std::vector<std::unique_ptr<RE2>>;

constexpr std::int64_t max_memory = 16 << 20;

Expressions compiled(const std::string& flag, const std::vector<std::string>& texts) {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(max_memory);
  Expressions expressions;
  for (const std::string& text : texts) {
    expressions.push_back(std::make_unique<RE2>(text, options));
    if (expressions.back()->ok()) continue;
    throw UsageFailure(flag + " '" + text::quotable(text) + "' is not a regular expression: " +
                       text::quotable(expressions.back()->error()) +
                       "; expected one of RE2's, as in 'latte|flash' or 'length=(256|512)\\b'");
  }
  return expressions;
}

std::string searched(const Cell& cell) {
  std::string text =
      describe(cell) + "  " + cell.mechanism + "/" + cell.implementation + " " + cell.device;
  for (const OptionValues& values : {cell.settings, cell.options}) {
    for (const auto& [name, value] : values) {
      text.append(" ").append(name).append("=").append(plain_text(value));
    }
  }
  return text;
}

/// The cell's value of an axis; nothing where it has none.
std::optional<OptionValue> value_of_axis(const Cell& cell, const std::string& name) {
  for (const OptionValues* values : {&cell.settings, &cell.options}) {
    if (const auto found = values->find(name); found != values->end()) return found->second;
  }
  if (name == "implementation") return cell.implementation;
  if (name == "device") return cell.device;
  return std::nullopt;
}

bool any_finds(const Expressions& expressions, const std::string& text) {
  return std::any_of(expressions.begin(), expressions.end(),
                     [&](const auto& expression) { return RE2::PartialMatch(text, *expression); });
}

}  // namespace

bool has_layers(const Cell& cell) {
  const auto scope = cell.settings.find("scope");
  return cell.settings.contains("layers") &&
         (scope == cell.settings.end() || plain_text(scope->second) == "model");
}

bool is_ragged(const Cell& cell) {
  const auto lengths = cell.settings.find("lengths");
  return lengths != cell.settings.end() && !plain_text(lengths->second).empty();
}

std::optional<Cell> make_cell(const TaskEntry& task, const MechanismEntry& entry,
                              const Point& point, const std::string& device,
                              const std::string& place, Problems& problems) {
  CellMaker maker(point, place, problems);
  maker.declare(task.spec->settings);
  maker.declare(entry.mechanism->options);
  maker.take_lengths(task.spec->settings);
  Cell cell;
  for (const Option& setting : task.spec->settings) {
    const Term* term = maker.find(setting.name);
    if (const OptionValue* const taken = maker.taken(setting.name)) {
      cell.settings[setting.name] = *taken;
    } else {
      cell.settings[setting.name] =
          term == nullptr ? setting.fallback : maker.resolved(setting, *term);
    }
  }
  const auto pattern = cell.settings.find("pattern");
  maker.causal = pattern == cell.settings.end() || plain_text(pattern->second) == "causal";
  for (const Option& option : entry.mechanism->options) {
    const Term* term = maker.find(option.name);
    if (term != nullptr && cell.settings.count(option.name) == 0) {
      cell.options[option.name] = maker.resolved(option, *term);
    }
  }
  cell.options_unknown = entry.mechanism->options_unknown;
  maker.check_sizes();
  if (!maker.good()) return std::nullopt;
  // Said by hand it is kept; a shape has it for those who ask for the whole model.
  if (const Term* layers = maker.find("layers");
      layers != nullptr && layers->of_shape && !has_layers(cell)) {
    cell.settings["layers"] = fallback_of("layers", task.spec->settings);
  }
  const Term* implementation = maker.find("implementation");
  const Term* own_device = maker.find("device");
  cell.label = entry.label;
  cell.task = task.spec->name;
  cell.task_label = task.label;
  cell.mechanism = entry.mechanism->name;
  cell.implementation =
      implementation == nullptr ? entry.implementation : implementation->value.get<std::string>();
  cell.device = own_device == nullptr ? device : own_device->value.get<std::string>();
  return cell;
}

Json identity(const Cell& cell, const TaskEntry& task, const MechanismEntry& entry,
              const std::filesystem::path& folder) {
  // In Python several mechanisms may have one name in turn, and one several.
  const std::string& origin = entry.mechanism->origin;
  const std::string name =
      process::is_python(origin) ? process::portable(origin, folder) : cell.mechanism;
  return {{"task", cell.task},
          {"mechanism", name},
          {"implementation", cell.implementation},
          {"device", cell.device},
          {"settings", differing(cell.settings, task.spec->settings)},
          {"options", differing(cell.options, entry.mechanism->options)}};
}

std::string cell_id(const Json& identity) {
  constexpr std::size_t digits = 12;
  return hash_text(identity.dump()).substr(0, digits);
}

std::vector<Cell> filtered(std::vector<Cell> cells, const Choices& choices) {
  const auto only = compiled("--only", choices.only);
  const auto skip = compiled("--skip", choices.skip);
  if (only.empty() && skip.empty()) return cells;
  const std::size_t count = cells.size();
  std::erase_if(cells, [&](const Cell& cell) {
    const std::string text = searched(cell);
    return (!only.empty() && !any_finds(only, text)) || any_finds(skip, text);
  });
  if (cells.empty()) {
    throw UsageFailure("--only and --skip leave nothing of " + std::to_string(count) +
                       " cells; `attnbench plan SUITE --cells` lists them");
  }
  return cells;
}

std::string describe(const Cell& cell) {
  std::string text = cell.task_label + "  " + cell.label;
  std::string separator = "  ";
  for (const std::string& name : cell.varies.value_or(std::vector<std::string>{"length"})) {
    const auto value = value_of_axis(cell, name);
    if (!value || plain_text(*value).empty()) continue;
    text.append(separator).append(name).append("=").append(plain_text(*value));
    separator = " ";
  }
  return text.append("  [").append(cell.id).append("]");
}

double estimated_call_seconds(const Cost& cost, const AssumedMachine& machine) {
  const double flops =
      std::isfinite(cost.executed_flops) ? cost.executed_flops : known_or_zero(cost.model_flops);
  return std::max(flops / machine.flops_per_second,
                  known_or_zero(cost.minimal_bytes) / machine.bytes_per_second);
}

double estimated_cell_seconds(double call_seconds, const nlohmann::json& measure) {
  // A round's process, its inputs and its share of the check against the definition.
  constexpr double start_seconds = 0.3;
  constexpr double warmup_seconds = 0.05, least_seconds = 0.05;
  constexpr double usual_samples = 22;  // a quiet machine meets a 1 % interval about here
  constexpr double first_round_calls = 3;
  const double rounds = measure.value("rounds", 5);
  const double samples = std::max(usual_samples, measure.value("min_samples", 10.0));
  const double limit = measure.value("max_seconds", 1.0);
  const double warming = std::max(warmup_seconds, 2 * call_seconds);
  const double sampling =
      std::min(std::max(samples * call_seconds, least_seconds), limit + call_seconds);
  return rounds * (start_seconds + warming + sampling) + first_round_calls * call_seconds;
}

}  // namespace attnbench::suite
