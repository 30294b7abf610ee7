#include "reports/figures/published.hpp"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "core/failure.hpp"
#include "core/json_file.hpp"
#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "reports/tables/quality.hpp"

namespace attnbench::reports {
namespace {

constexpr std::size_t published_most_bytes = 4 * mebibyte;

/// Fields of one CSV line (RFC 4180, without line breaks inside of quotes).
std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char letter = line[i];
    if (letter == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += line[++i];
    } else if (letter == '"') {
      quoted = !quoted;
    } else if (letter == ',' && !quoted) {
      fields.emplace_back();
    } else if (letter != '\r') {
      fields.back() += letter;
    }
  }
  return fields;
}

std::optional<double> number_of(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') return std::nullopt;
  return value;
}

/// A column of numbers: where they go, and what makes them seconds or bytes.
struct PublishedQuantity {
  std::optional<double> PublishedRow::*member;
  double factor;
};

/// Null for a column of settings.
const PublishedQuantity* quantity_of(const std::string& column) {
  static const std::map<std::string, PublishedQuantity> quantities{
      {"seconds", {&PublishedRow::seconds, 1}},
      {"milliseconds", {&PublishedRow::seconds, 1e-3}},
      {"bytes", {&PublishedRow::bytes, 1}},
      {"megabytes", {&PublishedRow::bytes, 1e6}},
      {"mebibytes", {&PublishedRow::bytes, 1024.0 * 1024}},
      {"speedup", {&PublishedRow::speedup, 1}},
      {"accuracy", {&PublishedRow::accuracy, 1}},
      {"bits_per_byte", {&PublishedRow::bits_per_byte, 1}},
      {"perplexity", {&PublishedRow::perplexity, 1}}};
  const auto found = quantities.find(column);
  return found == quantities.end() ? nullptr : &found->second;
}

PublishedRow row_of(const std::vector<std::string>& columns, const std::vector<std::string>& fields,
                    const std::string& place) {
  if (fields.size() != columns.size()) {
    throw UsageFailure(place + "expected " + std::to_string(columns.size()) + " fields, found " +
                       std::to_string(fields.size()));
  }
  PublishedRow row;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string& column = columns[i];
    const PublishedQuantity* quantity = quantity_of(column);
    if (column == "label") {
      row.label = fields[i];
    } else if (!quantity) {
      row.settings[column] = fields[i];
    } else if (!fields[i].empty()) {
      const auto number = number_of(fields[i]);
      if (!number)
        throw UsageFailure(place + text::quotable(column) + " must be a number, found " +
                           text::quotable(fields[i]));
      row.*(quantity->member) = *number * quantity->factor;
    }
  }
  return row;
}

/// Whether a published number belongs in the panel: its task and settings, the axis aside, must not
/// contradict one of the cells with its label. With `others`, the label may be one that no cell
/// has; then any cell will do.
bool holds(const Panel& panel, const PublishedRow& row, const std::string& axis, bool others) {
  const auto of_its_label = [&](const Placed& placed) {
    return placed.series == row.label || (others && placed.cell->label == row.label);
  };
  const bool known = std::any_of(panel.cells.begin(), panel.cells.end(), of_its_label);
  if (!known && !others) return false;
  return std::any_of(panel.cells.begin(), panel.cells.end(), [&](const Placed& placed) {
    if (known && !of_its_label(placed)) return false;
    return std::all_of(row.settings.begin(), row.settings.end(), [&](const auto& setting) {
      if (setting.second.empty() || setting.first == axis) return true;
      if (setting.first == "task") return setting.second == panel.task_label;
      const auto value = value_of(*placed.cell, setting.first);
      return !value || text::human_value(*value) == setting.second;
    });
  });
}

template <typename Member>
std::vector<Published> chosen(const std::vector<PublishedRow>& rows, const Panel& panel,
                              Member member, const std::string& axis, bool others = false) {
  std::vector<Published> numbers;
  for (const PublishedRow& row : rows) {
    if (!(row.*member)) continue;
    const auto x = row.settings.find(axis);
    const auto place = axis.empty()              ? std::make_optional(0.0)
                       : x == row.settings.end() ? std::nullopt
                                                 : number_of(x->second);
    if (!place || !holds(panel, row, axis, others)) continue;
    numbers.push_back({row.label, *place, *(row.*member), row.source});
  }
  return numbers;
}

}  // namespace

std::vector<PublishedRow> read_published(const std::filesystem::path& file) {
  std::istringstream stream(read_file(file, "published numbers, a CSV file", published_most_bytes));
  std::vector<std::string> columns;
  std::vector<PublishedRow> rows;
  const std::string source_mark = "# source: ";
  std::string source;
  std::size_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    const std::string place = file.string() + ":" + std::to_string(++number) + ": ";
    if (line.rfind(source_mark, 0) == 0) {
      source = line.substr(source_mark.size());
      if (!source.empty() && source.back() == '\r') source.pop_back();
    }
    if (line.empty() || line == "\r" || line[0] == '#') continue;
    if (!columns.empty()) {
      rows.push_back(row_of(columns, fields_of(line), place));
      rows.back().source = source;
      continue;
    }
    columns = fields_of(line);
    if (std::find(columns.begin(), columns.end(), "label") == columns.end()) {
      throw UsageFailure(place + "the first line names the columns; one must be label");
    }
  }
  return rows;
}

std::vector<Published> published_times(const std::vector<PublishedRow>& rows, const Panel& panel) {
  return chosen(rows, panel, &PublishedRow::seconds, panel.axis);
}

std::vector<Published> published_speedups(const std::vector<PublishedRow>& rows,
                                          const Panel& panel) {
  return chosen(rows, panel, &PublishedRow::speedup, panel.axis);
}

std::vector<Published> published_bytes(const std::vector<PublishedRow>& rows, const Panel& panel) {
  return chosen(rows, panel, &PublishedRow::bytes, panel.axis);
}

std::vector<Published> published_accuracies(const std::vector<PublishedRow>& rows,
                                            const Panel& panel, const std::string& axis) {
  const std::string metric = quality_of(panel).metric;
  const auto member = metric == "perplexity"      ? &PublishedRow::perplexity
                      : metric == "bits_per_byte" ? &PublishedRow::bits_per_byte
                                                  : &PublishedRow::accuracy;
  return chosen(rows, panel, member, axis, /*others=*/true);
}

}  // namespace attnbench::reports
