#include "reports/tables/conditions.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "core/text/format.hpp"

namespace attnbench::reports {
namespace {

using result::CellRecord;

const std::string missing = "–";

std::string text_of(const std::optional<Json>& value) {
  return value ? text::human_value(*value) : missing;
}

/// The dtype of the weights, and that of products where it is another.
std::string dtype_of(const CellRecord& cell) {
  const std::string dtype = text_of(size_of(cell, "dtype"));
  const auto autocast = value_of(cell, "autocast");
  if (!autocast || *autocast == "off") return dtype;
  return dtype + " with autocast to " + text::human_value(*autocast);
}

/// A provenance row with what most cells do not have: "2,048 tokens" before theirs, lengths of
/// their own.
Json full_row(const CellRecord& cell) {
  Json row = provenance_row(cell);
  const auto past = value_of(cell, "past");
  row["past"] = past && *past != 0 ? text_of(past) + " tokens" : "";
  const auto lengths = value_of(cell, "lengths");
  row["lengths"] = lengths && *lengths != "" ? text_of(lengths) : "";
  return row;
}

/// "B·T=2048" where batch and length both vary and their product does not.
std::string constant_tokens(const Panel& panel) {
  std::set<double> batches;
  std::set<double> products;
  for (const Placed& placed : panel.cells) {
    const auto batch = number_of(placed.cell->problem, "batch");
    const auto length = number_of(placed.cell->problem, "length");
    if (!batch || !length) return "";
    batches.insert(*batch);
    products.insert(*batch * *length);
  }
  if (batches.size() < 2 || products.size() != 1) return "";
  return "B·T=" + text::human_value(Json(static_cast<std::int64_t>(*products.begin())));
}

}  // namespace

std::string implementation_of(const CellRecord& cell) {
  const std::string asked = cell.implementation.empty() ? missing : cell.implementation;
  const std::string ran = cell.chosen ? cell.chosen->implementation : asked;
  return ran == asked ? ran : ran + " (" + asked + ")";
}

const std::vector<std::pair<std::string, std::string>>& provenance_columns() {
  static const std::vector<std::pair<std::string, std::string>> columns{
      {"mechanism", "mechanism"},
      {"implementation", "implementation"},
      {"batch", "B"},
      {"heads", "H"},
      {"length", "T"},
      {"head_dim", "D"},
      {"latents", "latents per head"},
      {"pattern", "pattern"},
      {"pass", "pass"},
      {"scope", "scope"},
      {"dtype", "dtype"},
      {"device", "device"},
      {"id", "cell"}};
  return columns;
}

Json provenance_row(const CellRecord& cell) {
  Json row = {{"mechanism", cell.mechanism},
              {"implementation", implementation_of(cell)},
              {"latents", text_of(value_of(cell, "latents_per_head"))},
              {"dtype", dtype_of(cell)},
              {"device", cell.device},
              {"id", cell.id}};
  for (const char* size : {"batch", "heads", "length", "head_dim", "pattern"}) {
    row[size] = text_of(size_of(cell, size));
  }
  for (const char* setting : {"pass", "scope"}) {
    row[setting] = text_of(value_of(cell, setting));
  }
  return row;
}

std::string shared_settings(const Panel& panel) {
  static const std::vector<std::pair<std::string, std::string>> named{
      {"batch", "B="},
      {"heads", "H="},
      {"length", "T="},
      {"past", "after "},
      {"lengths", "lengths "},
      {"head_dim", "D="},
      {"latents", "latents per head "},
      {"pattern", ""},
      {"scope", "scope "},
      {"dtype", ""},
      {"device", ""}};
  std::vector<std::set<std::string>> values(named.size());
  for (const Placed& placed : panel.cells) {
    const Json row = full_row(*placed.cell);
    for (std::size_t i = 0; i < named.size(); ++i) {
      values[i].insert(row.at(named[i].first).get<std::string>());
    }
  }
  std::string text = constant_tokens(panel);
  for (std::size_t i = 0; i < named.size(); ++i) {
    values[i].erase(missing);  // softmax has no latents; those that do may still share theirs
    if (values[i].size() != 1 || values[i].begin()->empty()) continue;
    if (!text.empty()) text += ", ";
    text += named[i].second;
    text += *values[i].begin();
  }
  return text;
}

std::string axis_title(const std::string& axis) {
  static const std::map<std::string, std::string> words{
      {"length", "length T (tokens)"},
      {"past", "tokens before"},
      {"latents_total", "latents, all heads together"},
      {"latents_per_head", "latents per head"},
      {"size_per_head", "size per head"},
      {"state_bytes", "state (bytes)"},
      {"batch", "batch B (sequences)"},
      {"heads", "heads H"},
      {"steps", "generated tokens"},
      {"head_dim", "width of a head D"},
      {"width", "width C = H·D"}};
  const auto found = words.find(axis);
  if (found != words.end()) return found->second;
  std::string text = axis;
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string interval_words(const std::string& interval, std::size_t rounds, std::size_t disturbed) {
  const bool all = disturbed == rounds;  // then they are all that there is to show
  const std::size_t number = all ? rounds : rounds - disturbed;
  std::string count = std::to_string(number) + (number == 1 ? " round" : " rounds");
  if (disturbed > 0) {
    count += all ? ", disturbed" : ", " + std::to_string(disturbed) + " disturbed left out";
  }
  if (interval == "order") return "95 % over " + count;
  return (interval == "range" ? "range of " : "samples of ") + count;
}

}  // namespace attnbench::reports
