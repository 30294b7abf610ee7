#include "harness/suite/filter.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <memory>

#include "core/failure.hpp"
#include "core/text/printable.hpp"

namespace attnbench::suite {
namespace {

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// RE2 takes time in proportion to the text, whatever the expression.
using Expressions = std::vector<std::unique_ptr<RE2>>;

constexpr std::int64_t most_memory = 16 << 20;

Expressions compiled(const std::string& flag, const std::vector<std::string>& texts) {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(most_memory);
  Expressions expressions;
  for (const std::string& text : texts) {
    expressions.push_back(std::make_unique<RE2>(text, options));
    if (expressions.back()->ok()) continue;
    throw UsageFailure(flag + " '" + result::quotable(text) + "' is no regular expression: " +
                       result::quotable(expressions.back()->error()) +
                       "; expected one of RE2's, as in 'latte|flash' or 'length=(256|512)\\b'");
  }
  return expressions;
}

std::string searched(const Json& cell) {
  std::string text = describe(cell) + "  " + text_of(cell["mechanism"]) + "/" +
                     text_of(cell["implementation"]) + " " + text_of(cell["device"]);
  for (const char* part : {"settings", "options"}) {
    for (const auto& [name, value] : cell[part].items()) {
      text.append(" ").append(name).append("=").append(text_of(value));
    }
  }
  return text;
}

bool any_finds(const Expressions& expressions, const std::string& text) {
  return std::any_of(expressions.begin(), expressions.end(),
                     [&](const auto& expression) { return RE2::PartialMatch(text, *expression); });
}

}  // namespace

std::vector<Json> filtered(std::vector<Json> cells, const Choices& choices) {
  const auto only = compiled("--only", choices.only);
  const auto skip = compiled("--skip", choices.skip);
  if (only.empty() && skip.empty()) return cells;
  const std::size_t count = cells.size();
  std::erase_if(cells, [&](const Json& cell) {
    const std::string text = searched(cell);
    return (!only.empty() && !any_finds(only, text)) || any_finds(skip, text);
  });
  if (cells.empty()) {
    throw UsageFailure("--only and --skip leave nothing of " + std::to_string(count) +
                       " cells; `attnbench plan SUITE --cells` lists them");
  }
  return cells;
}

std::string describe(const Json& cell) {
  std::string text = cell.value("task_label", cell.value("task", ""));
  text.append("  ").append(cell.value("label", cell.value("mechanism", "")));
  std::string separator = "  ";
  for (const Json& json : cell.value("varies", Json::array({"length"}))) {
    const std::string name = json;
    const Json* value = nullptr;
    for (const char* part : {"settings", "options"}) {
      if (value == nullptr && cell.contains(part) && cell[part].contains(name)) {
        value = &cell[part][name];
      }
    }
    if (value == nullptr && cell.contains(name)) value = &cell[name];
    if (value == nullptr) continue;
    text.append(separator).append(name).append("=").append(text_of(*value));
    separator = " ";
  }
  return text.append("  [").append(cell.value("id", "")).append("]");
}

}  // namespace attnbench::suite
