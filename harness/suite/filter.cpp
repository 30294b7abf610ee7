#include "harness/suite/filter.hpp"

#include <algorithm>
#include <regex>

#include "harness/errors.hpp"

namespace attnbench::suite {
namespace {

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::vector<std::regex> compiled(const std::string& flag, const std::vector<std::string>& texts) {
  std::vector<std::regex> expressions;
  for (const std::string& text : texts) {
    try {
      expressions.emplace_back(text);
    } catch (const std::regex_error& error) {
      throw UsageFailure(flag + " '" + text + "' is no regular expression: " + error.what());
    }
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

bool any_finds(const std::vector<std::regex>& expressions, const std::string& text) {
  return std::any_of(expressions.begin(), expressions.end(), [&](const std::regex& expression) {
    return std::regex_search(text, expression);
  });
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
