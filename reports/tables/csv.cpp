#include "reports/tables/csv.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "core/result/record.hpp"
#include "core/text/printable.hpp"
#include "reports/tables/layout.hpp"

namespace attnbench::reports {
namespace {

using result::CellRecord;
using result::TimingRound;

/// A cell, and the form that results publish it in: columns are named after its members.
struct PublishedCell {
  const CellRecord& record;
  Json form;
};

std::vector<PublishedCell> published(const result::Result& result) {
  std::vector<PublishedCell> cells;
  for (const CellRecord& cell : result.cells) cells.push_back({cell, cell});
  return cells;
}

/// Where a column's number (or word) is in a record: part and key.
struct PartColumn {
  const char* name;
  const char* part;
};

constexpr std::array<PartColumn, 16> part_columns{{{"input_bytes", "memory"},
                                                   {"output_bytes", "memory"},
                                                   {"saved_bytes", "memory"},
                                                   {"workspace_bytes", "memory"},
                                                   {"peak_bytes", "memory"},
                                                   {"state_bytes", "metrics"},
                                                   {"crossover_length", "metrics"},
                                                   {"crossover_length_low", "metrics"},
                                                   {"crossover_length_high", "metrics"},
                                                   {"efficiency_length", "metrics"},
                                                   {"verdict", "crossover"},
                                                   {"against", "crossover"},
                                                   {"model_flops", "cost"},
                                                   {"floor_seconds", "roofline"},
                                                   {"share", "roofline"},
                                                   {"bound", "roofline"}}};
constexpr std::array<const char*, 13> size_columns{
    "batch",    "heads",     "kv_heads",      "length",           "key_length",
    "head_dim", "value_dim", "latents_total", "latents_per_head", "pattern",
    "scope",    "dtype",     "autocast"};
constexpr std::array<const char*, 6> time_columns{"median_seconds",  "low_seconds",
                                                  "high_seconds",    "interval",
                                                  "minimum_seconds", "calibrated_median_seconds"};
/// The columns of a training beside its metrics.
constexpr std::array<const char*, 9> training_keys{"converged", "disturbed", "stopped",
                                                   "steps",     "epochs",    "chance",
                                                   "guess",     "reach",     "examples_unique"};

std::string field_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// A line of fields.
class CsvLine {
 public:
  void add(const std::string& text) {
    if (!first_) line_ += ',';
    first_ = false;
    line_ += text::escape_csv(text);
  }
  void add_of(const Json& object, const std::string& key) {
    add(object.is_object() && object.contains(key) && !object[key].is_null()
            ? field_text(object[key])
            : "");
  }
  std::string text() const { return line_ + "\n"; }

 private:
  std::string line_;
  bool first_ = true;
};

/// A column that some results have: the name in the table, the part of a record and the key there.
struct FoundColumn {
  std::string name;
  std::string part;
  std::string key;
};

void add_found(std::vector<FoundColumn>& columns, std::set<std::string>& taken,
               const std::vector<PublishedCell>& cells, const std::string& part,
               const std::string& prefix) {
  std::set<std::string> keys;
  for (const PublishedCell& cell : cells) {
    const Json object = cell.form.value(part, Json::object());
    for (const auto& [key, value] : object.items()) {
      if (!value.is_structured()) keys.insert(key);
    }
  }
  for (const std::string& key : keys) {
    if (prefix.empty() && taken.count(key) != 0 && part != "settings") continue;  // fixed already
    std::string name = prefix + key;
    if (part == "settings") {
      const bool is_size =
          std::find(size_columns.begin(), size_columns.end(), key) != size_columns.end();
      if (is_size) continue;
      if (taken.count(name) != 0) name = "setting_" + key;
    }
    taken.insert(name);
    columns.push_back({name, part, key});
  }
}

std::vector<FoundColumn> found_columns(const std::vector<PublishedCell>& cells) {
  const std::vector<std::string> fixed = fixed_csv_columns();
  std::set<std::string> taken(fixed.begin(), fixed.end());
  std::vector<FoundColumn> columns;
  add_found(columns, taken, cells, "metrics", "");
  for (const char* key : training_keys) {
    for (const PublishedCell& cell : cells) {
      if (!cell.form.value("training", Json::object()).contains(key)) continue;
      const std::string name = std::string("training_") + key;
      taken.insert(name);
      columns.push_back({name, "training", key});
      break;
    }
  }
  add_found(columns, taken, cells, "settings", "");
  return columns;
}

std::string line_of_cell(const PublishedCell& published, const std::string& what,
                         const Json& timing, const std::vector<FoundColumn>& found) {
  const Json& cell = published.form;
  const CellRecord& record = published.record;
  CsvLine line;
  for (const char* key : {"id", "label", "task_label", "mechanism"}) line.add_of(cell, key);
  line.add(record.chosen ? record.chosen->implementation : record.implementation);
  line.add(record.device);
  for (const char* key : size_columns) {
    const Json* const size = find_value(record.problem, key);
    const std::optional<Json> value = size ? *size : value_of(record, key);
    line.add(value ? field_text(*value) : "");
  }
  line.add(Json(record.options).dump());
  line.add_of(cell, "status");
  line.add_of(cell, "reason");
  line.add(what);
  for (const char* key : time_columns) line.add_of(timing, key);
  line.add(timing.is_object() ? std::to_string(timing["rounds"].size()) : "");
  for (const PartColumn& column : part_columns) {
    line.add_of(cell.value(column.part, Json::object()), column.name);
  }
  line.add(what.empty() ? "" : what == record.primary ? "true" : "false");
  for (const FoundColumn& column : found) {
    line.add_of(cell.value(column.part, Json::object()), column.key);
  }
  return line.text();
}

bool was_preempted(const TimingRound& round, std::size_t sample) {
  return round.preempted && std::find(round.preempted->begin(), round.preempted->end(), sample) !=
                                round.preempted->end();
}

}  // namespace

std::vector<std::string> fixed_csv_columns() {
  std::vector<std::string> columns{"id", "label", "task", "mechanism", "implementation", "device"};
  columns.insert(columns.end(), size_columns.begin(), size_columns.end());
  for (const char* name : {"options", "status", "reason", "timing"}) columns.emplace_back(name);
  columns.insert(columns.end(), time_columns.begin(), time_columns.end());
  columns.emplace_back("rounds");
  for (const PartColumn& column : part_columns) columns.emplace_back(column.name);
  columns.emplace_back("primary");
  return columns;
}

std::string csv_table(const result::Result& result) {
  const std::vector<PublishedCell> cells = published(result);
  const std::vector<FoundColumn> found = found_columns(cells);
  CsvLine header;
  for (const std::string& name : fixed_csv_columns()) header.add(name);
  for (const FoundColumn& column : found) header.add(column.name);
  std::string text = header.text();
  for (const PublishedCell& cell : cells) {
    for (const auto& [what, timing] : cell.record.timing) {
      text += line_of_cell(cell, what, timing, found);
    }
    if (cell.record.timing.empty()) text += line_of_cell(cell, "", nullptr, found);
  }
  return text;
}

std::string csv_samples(const result::Result& result) {
  std::string text =
      "id,label,task,timing,round,sample,seconds,cpu_share,preempted,round_disturbed\n";
  for (const CellRecord& cell : result.cells) {
    for (const auto& [what, timing] : cell.timing) {
      for (const TimingRound& round : timing.rounds) {
        const std::vector<double> shares = round.samples_cpu_share.value_or(std::vector<double>{});
        for (std::size_t i = 0; i < round.samples_seconds.size(); ++i) {
          CsvLine line;
          for (const std::string& field : {cell.id, cell.label, cell.task_name(), what}) {
            line.add(field);
          }
          line.add(round.round ? std::to_string(*round.round) : "");
          line.add(std::to_string(i));
          line.add(Json(round.samples_seconds[i]).dump());
          line.add(i < shares.size() ? Json(shares[i]).dump() : "");
          line.add(was_preempted(round, i) ? "true" : "false");
          line.add(round.disturbed ? "true" : "false");
          text += line.text();
        }
      }
    }
  }
  return text;
}

}  // namespace attnbench::reports
