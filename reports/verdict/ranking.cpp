#include "reports/verdict/ranking.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <set>

#include "core/text/printable.hpp"
#include "reports/verdict/sentences.hpp"

namespace attnbench::reports::verdict {
namespace {

/// Two significant digits, or three.
std::string significant(double value, int digits) {
  std::array<char, 32> text{};
  const bool whole = value >= 99.5;
  std::snprintf(text.data(), text.size(), whole ? "%.0f" : digits == 2 ? "%#.2g" : "%#.3g", value);
  std::string written = text.data();
  if (written.ends_with('.')) written.pop_back();
  return written;
}

std::string range_text(double low, double high, int digits) {
  return significant(low, digits) + " to " + significant(high, digits);
}

/// With the digits that the interval supports; three around 1, which it may exclude by little.
std::string times_text(const Estimate& ratio) {
  const bool near_one = ratio.low < 1.25 && ratio.high > 0.8;
  const int digits = near_one ? 3 : text::supported_digits(ratio.median, ratio.low, ratio.high);
  return significant(ratio.median, digits) + " (" + range_text(ratio.low, ratio.high, digits) + ")";
}

std::string share_text(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", value);
  return text.data();
}

/// "0.990", with the least and the greatest seed where there are several.
std::string quality_text(const Accuracy& one) {
  const std::string mean = share_text(one.mean);
  if (one.seeds < 2) return mean;
  return mean + " (" + share_text(one.low) + " to " + share_text(one.high) + ")";
}

/// Where times are set beside each other: the greatest place that has several. None along an axis
/// on which every mechanism has places of its own.
const Fastest* compared_last(const Answer& answer) {
  const bool shared = answer.axis != "state_bytes";
  return answer.fastest.empty() || !shared ? nullptr : &answer.fastest.back();
}

RankedRow& row_of(Ranking& ranking, const std::string& label) {
  const auto found = std::find_if(ranking.rows.begin(), ranking.rows.end(),
                                  [&](const RankedRow& row) { return row.label == label; });
  if (found != ranking.rows.end()) return *found;
  ranking.rows.emplace_back().label = label;
  return ranking.rows.back();
}

bool stands_at(const Candidate& cell, const std::optional<double>& x) {
  return !cell.x || cell.x == x;
}

void add_times(const PanelQuestion& question, const Answer& answer, Ranking& ranking) {
  const Fastest& last = *compared_last(answer);
  ranking.at = last.x;
  ranking.what = answer.what;
  ranking.timed = timed_words(answer);
  ranking.against = last.exact_implementation;
  for (const Candidate& cell : question.cells) {
    RankedRow& row = row_of(ranking, cell.label);
    row.exact = row.exact || cell.exact;
    if (!stands_at(cell, ranking.at)) continue;
    row.implementation = cell.implementation;
    if (is_ranked(cell)) {
      row.time = cell.time;
      if (last.exact && !cell.exact && cell.kind == last.kind) {
        const Time &exact = *last.exact, &own = *cell.time;
        row.speedup =
            Estimate{exact.median / own.median, exact.low / own.high, exact.high / own.low};
      }
    } else if (cell.status != Status::ok || cell.time) {
      row.ended = cell.status;
    }
    if (cell.status == Status::ok || cell.status == Status::disturbed) {
      row.workspace_bytes = cell.workspace_bytes;
      row.state_bytes = cell.state_bytes;
    }
  }
  for (const std::string& label : last.labels) row_of(ranking, label).fastest = true;
  for (const CrossingStatement& one : answer.crossings) {
    row_of(ranking, one.label).faster_from = short_text_of(one);
  }
  std::stable_sort(ranking.rows.begin(), ranking.rows.end(),
                   [](const RankedRow& a, const RankedRow& b) {
                     if (!a.time || !b.time) return a.time.has_value() && !b.time;
                     return a.time->median < b.time->median;
                   });
}

std::vector<std::string> parts_of(const std::string& conditions) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < conditions.size();) {
    const std::size_t end = std::min(conditions.find(", ", begin), conditions.size());
    parts.push_back(conditions.substr(begin, end - begin));
    begin = end + 2;
  }
  return parts;
}

/// The conditions that are not among those of the table.
std::string others(const std::string& conditions, const Ranking& ranking) {
  const std::vector<std::string> known = parts_of(ranking.conditions);
  std::string text;
  for (const std::string& part : parts_of(conditions)) {
    if (std::find(known.begin(), known.end(), part) != known.end()) continue;
    text += (text.empty() ? "" : ", ") + part;
  }
  return text;
}

/// Adds the steps of another question, and its states in place of those of calls: a state is that
/// which is carried from token to token.
void add_steps(const PanelQuestion& question, const Answer& answer, Ranking& ranking) {
  const Fastest& last = *compared_last(answer);
  ranking.step_place = answer.place;
  if (last.x) ranking.step_place += " " + place_text(answer.axis, *last.x);
  ranking.step_conditions = others(answer.conditions, ranking);
  for (RankedRow& row : ranking.rows) row.state_bytes.reset();
  for (const Candidate& cell : question.cells) {
    if (!stands_at(cell, last.x)) continue;
    RankedRow& row = row_of(ranking, cell.label);
    if (is_ranked(cell)) row.step = cell.time;
    row.state_bytes = cell.state_bytes;
  }
  for (const std::string& label : last.labels) row_of(ranking, label).fastest_step = true;
}

/// Adds what was learned. The states are those of the trainings where there are no others.
void add_qualities(const Answer& answer, Ranking& ranking) {
  ranking.measure = answer.measure;
  const bool other_states =
      std::any_of(ranking.rows.begin(), ranking.rows.end(),
                  [](const RankedRow& row) { return row.state_bytes.has_value(); });
  for (const Accuracy& one : answer.accuracies) {
    RankedRow& row = row_of(ranking, one.label);
    row.quality = one;
    if (!other_states) row.state_bytes = one.state_bytes;
  }
  if (!answer.untrained.empty()) return;
  for (const std::string& label : answer.max_accurate) row_of(ranking, label).best_quality = true;
}

/// Whether the lines of an answer can stand beside those of the table.
bool joins(const Ranking& ranking, const PanelQuestion& question, const Answer& answer) {
  std::set<std::string> labels;
  for (const Candidate& cell : question.cells) labels.insert(cell.label);
  for (const Accuracy& one : answer.accuracies) labels.insert(one.label);
  return std::all_of(labels.begin(), labels.end(), [&](const std::string& label) {
    return std::any_of(ranking.rows.begin(), ranking.rows.end(),
                       [&](const RankedRow& row) { return row.label == label; });
  });
}

std::string place_words(const Ranking& ranking) {
  if (!ranking.at) return "";
  const std::string place = place_text(ranking.axis, *ranking.at);
  if (ranking.place == "length") return " at " + place + " tokens";
  if (ranking.place == "latents_total") return " at " + place + " latents";
  if (ranking.place == "latents_per_head") return " at " + place + " latents per head";
  return " at " + ranking.place + " " + place;
}

/// "highest accuracy", "fewest bits per byte".
std::string extreme(const QualityMeasure& measure) {
  return measure.less_is_better ? measure.best : "highest " + measure.words;
}

/// What was learned, without a ranking that seeds or missing trainings do not allow.
std::string quality_headline(const Answer& answer) {
  const QualityMeasure& measure = answer.measure;
  const auto with_value = [&](const Accuracy& one) {
    return share_text(one.mean) + " (" + named_list({one.label}, "") + ")";
  };
  if (!answer.untrained.empty()) {
    return "It cannot be told what has the " + extreme(measure) + ": " +
           missing_words(answer.untrained);
  }
  if (answer.accuracies.size() < 2) {
    return "The " + measure.words + ": " + with_value(answer.accuracies.front());
  }
  const std::vector<std::string>& best = answer.max_accurate;
  if (best.size() > 1) {
    return "It cannot be told which of " + named_list(best, " and ") + " has the " +
           extreme(measure) + ": their seeds overlap";
  }
  if (best.size() == 1) {
    return named_list(best, "") + " has the " + extreme(measure) + ": " +
           share_text(answer.accuracies.front().mean);
  }
  return "The " + measure.plural + ", from " + with_value(answer.accuracies.front()) + " to " +
         with_value(answer.accuracies.back()) +
         ", are not ranked: that takes two seeds or more of each";
}

/// Ranks by what was learned, which is what a result asks that has its trainings first.
void lead_by_quality(const Answer& answer, Ranking& ranking) {
  ranking.by_quality = true;
  ranking.headline = quality_headline(answer);
  ranking.task = answer.task;
  std::stable_sort(ranking.rows.begin(), ranking.rows.end(),
                   [&](const RankedRow& a, const RankedRow& b) {
                     if (!a.quality || !b.quality) return a.quality.has_value() && !b.quality;
                     const double x = a.quality->mean, y = b.quality->mean;
                     return answer.measure.less_is_better ? x < y : x > y;
                   });
}

/// "4.0 (3.8 to 4.2) times as fast as exact attention"; of several the bounds of all.
std::string speedups_text(const std::vector<const RankedRow*>& rows) {
  const auto end = " times as fast as exact attention";
  if (rows.size() == 1) return times_text(*rows.front()->speedup) + end;
  double low = rows.front()->speedup->low, high = rows.front()->speedup->high;
  for (const RankedRow* row : rows) {
    low = std::min(low, row->speedup->low);
    high = std::max(high, row->speedup->high);
  }
  return range_text(low, high, low < 1.25 && high > 0.8 ? 3 : 2) + end;
}

/// ", and faster from 410 (400 to 420) tokens on"; empty unless both ends of the crossing are known
/// and nothing was slower since.
std::string from_text(const Answer& answer, const Ranking& ranking, const std::string& label) {
  for (const CrossingStatement& one : answer.crossings) {
    const bool known = one.crossing == CrossingKind::found && one.low && !one.within_gap;
    if (one.label == label && known && one.longest == ranking.at) {
      return ", and faster from " + short_text_of(one) + " tokens on";
    }
  }
  return "";
}

std::string time_headline(const Answer& answer, const Ranking& ranking) {
  const Fastest& last = *compared_last(answer);
  const std::string at = place_words(ranking);
  if (last.labels.empty()) {
    return "It cannot be told what is the fastest" + at + ": " + missing_words(last.missing.below);
  }
  std::vector<const RankedRow*> best;
  bool exact = false, only_exact = true, compared = true;
  for (const RankedRow& row : ranking.rows) {
    if (row.time && !row.exact) only_exact = false;
    if (!row.fastest) continue;
    best.push_back(&row);
    exact = exact || row.exact;
    compared = compared && row.speedup.has_value();
  }
  const std::string pass = "the fastest " + ranking.timed + at;
  if (exact && !only_exact && !ranking.against.empty()) {
    const bool alone =
        std::all_of(best.begin(), best.end(), [](const RankedRow* row) { return row->exact; });
    return alone ? "Nothing is faster than exact attention" + at
                 : "Nothing can be told to be faster than exact attention" + at;
  }
  if (best.size() > 1) {
    return named_list(last.labels, " and ") + ", which cannot be told apart, have " + pass +
           (compared ? ": " + speedups_text(best) : "");
  }
  std::string text = named_list(last.labels, "") + " has " + pass;
  if (!compared) return text;
  return text + ": " + speedups_text(best) + from_text(answer, ranking, last.labels.front());
}

/// The first answer of which `wanted` holds; as many as there are where it holds of none.
std::size_t first_of(const std::vector<Answer>& answers,
                     const std::function<bool(const Answer&)>& wanted) {
  return static_cast<std::size_t>(std::find_if(answers.begin(), answers.end(), wanted) -
                                  answers.begin());
}

Ranking ranking_of(const PanelQuestion& question, const Answer& answer) {
  Ranking ranking;
  ranking.task = answer.task;
  ranking.conditions = answer.conditions;
  ranking.place = answer.place;
  ranking.axis = answer.axis;
  if (compared_last(answer) != nullptr) {
    add_times(question, answer, ranking);
    ranking.headline = time_headline(answer, ranking);
  }
  if (!answer.accuracies.empty()) {
    add_qualities(answer, ranking);
    if (ranking.headline.empty()) lead_by_quality(answer, ranking);
  }
  return ranking;
}

}  // namespace

std::vector<Ranking> rankings_of(const std::vector<PanelQuestion>& questions,
                                 const std::vector<Answer>& answers) {
  const auto timed = [](const Answer& one) { return compared_last(one) != nullptr; };
  std::size_t lead =
      first_of(answers, [&](const Answer& one) { return timed(one) && one.what != "step"; });
  if (lead == answers.size()) lead = first_of(answers, timed);
  std::vector<Ranking> all;
  std::set<std::size_t> done;
  bool steps = false, qualities = false;
  if (lead < answers.size()) {
    all.push_back(ranking_of(questions[lead], answers[lead]));
    done.insert(lead);
    steps = answers[lead].what == "step";
  }
  for (std::size_t i = 0; i < answers.size() && !all.empty(); ++i) {
    const Answer& one = answers[i];
    Ranking& first = all.front();
    if (done.contains(i) || !joins(first, questions[i], one)) continue;
    if (!steps && one.what == "step" && timed(one)) {
      add_steps(questions[i], one, first);
      steps = true;
    } else if (!qualities && !one.accuracies.empty()) {
      const std::string conditions = others(one.conditions, first);
      first.quality_of = one.task + (conditions.empty() ? "" : " (" + conditions + ")");
      add_qualities(one, first);
      if (i < lead) lead_by_quality(one, first);
      qualities = true;
    } else {
      continue;
    }
    done.insert(i);
  }
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (!done.contains(i) && is_in_table(answers[i])) {
      all.push_back(ranking_of(questions[i], answers[i]));
    }
  }
  for (Ranking& one : all) {
    if (all.size() > 1) one.headline = one.task + ": " + one.headline;
  }
  return all;
}

std::string headline_of(const Verdict& verdict) {
  return verdict.rankings.empty() ? "" : verdict.rankings.front().headline;
}

bool is_in_table(const Answer& answer) {
  return compared_last(answer) != nullptr || !answer.accuracies.empty();
}

std::string where_text(const Ranking& ranking) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  if (!ranking.timed.empty()) {
    std::string times = "time of the " + ranking.timed;
    if (ranking.at) {
      times += " at " + ranking.place + " " + place_text(ranking.axis, *ranking.at);
    }
    if (!ranking.against.empty()) times += ", over exact attention (" + ranking.against + ")";
    add(times);
  }
  if (!ranking.step_place.empty()) {
    add("steps at " + ranking.step_place +
        (ranking.step_conditions.empty() ? "" : " (" + ranking.step_conditions + ")"));
  }
  if (!ranking.quality_of.empty()) add(ranking.measure.words + " of " + ranking.quality_of);
  if (!ranking.conditions.empty()) add(ranking.conditions);
  return text;
}

namespace {

/// Whether a row is a competitor without a value: what is not supported or does not fit into memory
/// is none.
bool is_missing(const RankedRow& row) {
  return row.ended && *row.ended != Status::ok && *row.ended != Status::disturbed &&
         *row.ended != Status::unsupported && *row.ended != Status::out_of_memory;
}

/// The rows with the least bytes; none where all have the same, or a competitor has none.
std::set<std::size_t> least_bytes(const std::vector<RankedRow>& rows,
                                  std::optional<double> RankedRow::*bytes) {
  std::set<double> values;
  for (const RankedRow& row : rows) {
    if (row.*bytes) values.insert(*(row.*bytes));
    if (!(row.*bytes) && is_missing(row)) return {};
  }
  std::set<std::size_t> least;
  for (std::size_t i = 0; i < rows.size() && values.size() > 1; ++i) {
    if (rows[i].*bytes && *(rows[i].*bytes) == *values.begin()) least.insert(i);
  }
  return least;
}

/// The columns of a grid, of which those without any text are left out.
class Columns {
 public:
  explicit Columns(const std::vector<RankedRow>& rows) : rows_(rows) {
    for (const RankedRow& row : rows) grid_.rows.push_back({row.label, {}});
  }
  void add(const std::string& title, const std::function<std::string(const RankedRow&)>& text,
           const std::set<std::size_t>& best = {}) {
    std::vector<std::string> texts;
    for (const RankedRow& row : rows_) texts.push_back(text(row));
    const auto empty = [](const std::string& one) { return one.empty(); };
    if (std::all_of(texts.begin(), texts.end(), empty)) return;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (best.contains(i)) grid_.best.insert({i, grid_.columns.size()});
      grid_.rows[i].second.push_back(texts[i]);
    }
    grid_.columns.push_back(title);
  }
  void add_bytes(const std::string& title, std::optional<double> RankedRow::*bytes) {
    add(
        title,
        [bytes](const RankedRow& row) {
          return row.*bytes ? text::human_bytes(*(row.*bytes)) : std::string();
        },
        least_bytes(rows_, bytes));
  }
  std::set<std::size_t> marked(bool RankedRow::*mark) const {
    std::set<std::size_t> all;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].*mark) all.insert(i);
    }
    return all;
  }
  Grid take() { return std::move(grid_); }

 private:
  const std::vector<RankedRow>& rows_;
  Grid grid_;
};

}  // namespace

Grid grid_of(const Ranking& ranking, text::Letters letters) {
  const auto seconds = [letters](const std::optional<Time>& time) {
    return time ? text::measured_seconds(time->median, time->low, time->high, letters)
                : std::string();
  };
  Columns columns(ranking.rows);
  const auto add_quality = [&] {
    columns.add(
        ranking.measure.words,
        [](const RankedRow& row) { return row.quality ? quality_text(*row.quality) : ""; },
        columns.marked(&RankedRow::best_quality));
  };
  if (ranking.by_quality) add_quality();
  if (!ranking.timed.empty()) {
    columns.add(
        "time",
        [&](const RankedRow& row) {
          if (row.time || !row.ended) return seconds(row.time);
          return *row.ended == Status::ok ? "one process" : std::string(to_string(*row.ended));
        },
        columns.marked(&RankedRow::fastest));
    columns.add("x exact", [](const RankedRow& row) {
      if (row.exact) return std::string("exact");
      return row.speedup ? times_text(*row.speedup) : std::string();
    });
    columns.add("faster from", [](const RankedRow& row) { return row.faster_from; });
    columns.add_bytes("workspace", &RankedRow::workspace_bytes);
  }
  columns.add(
      "step", [&](const RankedRow& row) { return seconds(row.step); },
      columns.marked(&RankedRow::fastest_step));
  if (!ranking.by_quality) add_quality();
  columns.add_bytes("state", &RankedRow::state_bytes);
  Grid grid = columns.take();
  grid.note = where_text(ranking);
  return grid;
}

}  // namespace attnbench::reports::verdict
