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

/// With the digits that the interval supports.
std::string times_text(const Estimate& ratio) {
  const int digits = ratio.high - ratio.low > 0.05 * ratio.median ? 2 : 3;
  return significant(ratio.median, digits) + " (" + significant(ratio.low, digits) + " to " +
         significant(ratio.high, digits) + ")";
}

bool has_time(const Candidate& cell) {
  return cell.status == Status::ok && cell.time && cell.over_rounds && cell.time->low > 0;
}

/// Where times are set beside each other: the greatest place that ranks something. None along an
/// axis on which every mechanism has places of its own.
const Fastest* told_last(const Answer& answer) {
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

void add_times(const PanelQuestion& question, const Answer& answer, Ranking& ranking) {
  const Fastest& last = *told_last(answer);
  ranking.at = last.x;
  ranking.timed = timed_words(answer);
  const std::optional<Time>& exact = last.exact;
  ranking.against = last.exact_implementation;
  for (const Candidate& cell : question.cells) {
    RankedRow& row = row_of(ranking, cell.label);
    row.exact = row.exact || cell.exact;
    if (cell.x != ranking.at) continue;
    row.implementation = cell.implementation;
    if (has_time(cell)) {
      row.time = cell.time;
      if (exact && !cell.exact) {
        row.speedup = Estimate{exact->median / cell.time->median, exact->low / cell.time->high,
                               exact->high / cell.time->low};
      }
    } else {
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

void add_steps(const PanelQuestion& question, const Answer& answer, Ranking& ranking) {
  const Fastest& last = *told_last(answer);
  if (last.x) ranking.step_place = answer.place + " " + place_text(answer.axis, *last.x);
  for (const Candidate& cell : question.cells) {
    if (cell.x != last.x) continue;
    RankedRow& row = row_of(ranking, cell.label);
    if (has_time(cell)) row.step = cell.time;
    if (cell.state_bytes) row.state_bytes = cell.state_bytes;
  }
  for (const std::string& label : last.labels) row_of(ranking, label).fastest_step = true;
}

void add_qualities(const Answer& answer, Ranking& ranking) {
  ranking.measure = answer.measure;
  for (const Accuracy& one : answer.accuracies) {
    RankedRow& row = row_of(ranking, one.label);
    row.quality = one;
    if (!row.state_bytes) row.state_bytes = one.state_bytes;
  }
  if (!answer.untrained.empty()) return;
  for (const std::string& label : answer.max_accurate) row_of(ranking, label).best_quality = true;
}

/// "highest accuracy", "fewest bits per byte".
std::string extreme(const QualityMeasure& measure) {
  return measure.less_is_better ? measure.best : "highest " + measure.words;
}

std::string quality_headline(const Answer& answer) {
  const QualityMeasure& measure = answer.measure;
  if (!answer.untrained.empty()) {
    return "It cannot be told what has the " + extreme(measure) + ": " +
           missing_words(answer.untrained);
  }
  std::array<char, 32> value{};
  std::snprintf(value.data(), value.size(), "%.3f", answer.accuracies.front().mean);
  const std::vector<std::string>& best = answer.max_accurate;
  if (best.size() > 1) {
    return "It cannot be told which of " + named_list(best, " and ") + " has the " +
           extreme(measure) + ": their seeds overlap";
  }
  if (best.size() == 1) {
    return named_list(best, "") + " has the " + extreme(measure) + ": " + value.data();
  }
  return named_list({answer.accuracies.front().label}, "") + " has the " + extreme(measure) +
         " of one seed each: " + value.data();
}

/// Ranks by what was learned, which is what a result asks that has its trainings first.
void lead_by_quality(const Answer& answer, Ranking& ranking) {
  ranking.by_quality = true;
  ranking.headline = quality_headline(answer);
  std::stable_sort(ranking.rows.begin(), ranking.rows.end(),
                   [&](const RankedRow& a, const RankedRow& b) {
                     if (!a.quality || !b.quality) return a.quality.has_value() && !b.quality;
                     const double x = a.quality->mean, y = b.quality->mean;
                     return answer.measure.less_is_better ? x < y : x > y;
                   });
}

/// Whether the lines of an answer can stand beside those of the table.
bool joins(const Ranking& ranking, const std::vector<std::string>& labels) {
  return std::all_of(labels.begin(), labels.end(), [&](const std::string& label) {
    return std::any_of(ranking.rows.begin(), ranking.rows.end(),
                       [&](const RankedRow& row) { return row.label == label; });
  });
}

std::vector<std::string> labels_at_all(const PanelQuestion& question, const Answer& answer) {
  std::vector<std::string> labels;
  for (const Candidate& cell : question.cells) labels.push_back(cell.label);
  for (const Accuracy& one : answer.accuracies) labels.push_back(one.label);
  return labels;
}

std::string tokens_at(const Ranking& ranking) {
  if (!ranking.at) return "";
  const std::string place = place_text(ranking.axis, *ranking.at);
  if (ranking.place == "length") return " at " + place + " tokens";
  if (ranking.place == "latents_total") return " at " + place + " latents";
  if (ranking.place == "latents_per_head") return " at " + place + " latents per head";
  return " at " + ranking.place + " " + place;
}

/// "3.9", or "3.8 to 4.1" of several.
std::string speedups_text(const std::vector<const RankedRow*>& rows) {
  if (rows.size() == 1) return times_text(*rows.front()->speedup);
  double least = rows.front()->speedup->median, most = least;
  for (const RankedRow* row : rows) {
    least = std::min(least, row->speedup->median);
    most = std::max(most, row->speedup->median);
  }
  const std::string low = significant(least, 2), high = significant(most, 2);
  return low == high ? low : low + " to " + high;
}

std::string time_headline(const Answer& answer, const Ranking& ranking) {
  const Fastest& last = *told_last(answer);
  const std::string at = tokens_at(ranking);
  if (last.labels.empty()) {
    return "It cannot be told what is the fastest" + at + ": " + missing_words(last.missing.below);
  }
  std::vector<const RankedRow*> best;
  bool exact = false;
  for (const RankedRow& row : ranking.rows) {
    if (!row.fastest) continue;
    best.push_back(&row);
    exact = exact || row.exact;
  }
  if (exact && !ranking.against.empty()) {
    return best.size() == 1 ? "Nothing is faster than exact attention" + at
                            : "Nothing can be told to be faster than exact attention" + at;
  }
  std::string text = named_list(last.labels, " and ") +
                     (best.size() == 1 ? " has the fastest " : " have the fastest ") +
                     ranking.timed + at;
  const bool compared = std::all_of(best.begin(), best.end(),
                                    [](const RankedRow* row) { return row->speedup.has_value(); });
  if (compared && !best.empty()) {
    text += ": " + speedups_text(best) + " times as fast as exact attention";
  }
  const auto crossing =
      std::find_if(answer.crossings.begin(), answer.crossings.end(),
                   [&](const CrossingStatement& one) { return one.label == last.labels.front(); });
  if (best.size() == 1 && crossing != answer.crossings.end() &&
      crossing->crossing == CrossingKind::found) {
    text += ", and faster from " + rounded_length(crossing->length) + " tokens on";
  }
  return text;
}

}  // namespace

std::vector<Ranking> rankings_of(const std::vector<PanelQuestion>& questions,
                                 const std::vector<Answer>& answers) {
  std::vector<Ranking> all;
  std::set<std::size_t> done;
  const auto add = [&](std::size_t i) {
    Ranking ranking;
    ranking.conditions = answers[i].conditions;
    ranking.place = answers[i].place;
    ranking.axis = answers[i].axis;
    if (told_last(answers[i]) != nullptr) {
      add_times(questions[i], answers[i], ranking);
      ranking.headline = time_headline(answers[i], ranking);
    }
    if (!answers[i].accuracies.empty()) {
      add_qualities(answers[i], ranking);
      if (ranking.headline.empty()) lead_by_quality(answers[i], ranking);
    }
    done.insert(i);
    all.push_back(std::move(ranking));
  };
  const auto first_of = [&](const std::function<bool(const Answer&)>& wanted) {
    const auto found = std::find_if(answers.begin(), answers.end(), wanted);
    return static_cast<std::size_t>(found - answers.begin());
  };
  std::size_t lead =
      first_of([](const Answer& one) { return told_last(one) != nullptr && one.what != "step"; });
  if (lead == answers.size()) {
    lead = first_of([](const Answer& one) { return told_last(one) != nullptr; });
  }
  if (lead < answers.size()) add(lead);
  bool steps = false, qualities = false;
  for (std::size_t i = 0; i < answers.size() && !all.empty(); ++i) {
    const Answer& one = answers[i];
    if (done.contains(i) || !joins(all.front(), labels_at_all(questions[i], one))) continue;
    if (!steps && one.what == "step" && told_last(one) != nullptr && answers[lead].what != "step") {
      add_steps(questions[i], one, all.front());
      steps = true;
    } else if (!qualities && !one.accuracies.empty()) {
      add_qualities(one, all.front());
      if (i < lead) lead_by_quality(one, all.front());
      qualities = true;
    } else {
      continue;
    }
    done.insert(i);
  }
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (done.contains(i) || (told_last(answers[i]) == nullptr && answers[i].accuracies.empty()))
      continue;
    add(i);
  }
  return all;
}

namespace {

/// "0.990", with the least and the greatest seed where there are several.
std::string quality_text(const Accuracy& one) {
  std::array<char, 48> text{};
  if (one.seeds > 1) {
    std::snprintf(text.data(), text.size(), "%.3f (%.3f to %.3f)", one.mean, one.low, one.high);
  } else {
    std::snprintf(text.data(), text.size(), "%.3f", one.mean);
  }
  return text.data();
}

}  // namespace

std::string headline_of(const Verdict& verdict) {
  return verdict.rankings.empty() ? "" : verdict.rankings.front().headline;
}

bool is_ranked(const Answer& answer) {
  return told_last(answer) != nullptr || !answer.accuracies.empty();
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
  if (!ranking.step_place.empty()) add("steps at " + ranking.step_place);
  if (!ranking.conditions.empty()) add(ranking.conditions);
  return text;
}

Grid grid_of(const Ranking& ranking, text::Letters letters) {
  using Text = std::function<std::string(const RankedRow&)>;
  using Best = std::function<bool(const RankedRow&)>;
  Grid grid;
  grid.note = where_text(ranking);
  for (const RankedRow& row : ranking.rows) grid.rows.push_back({row.label, {}});
  const auto add = [&](const std::string& title, const Text& text, const Best& best) {
    std::vector<std::string> texts;
    for (const RankedRow& row : ranking.rows) texts.push_back(text(row));
    const auto empty = [](const std::string& one) { return one.empty(); };
    if (std::all_of(texts.begin(), texts.end(), empty)) return;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (best(ranking.rows[i])) grid.best.insert({i, grid.columns.size()});
      grid.rows[i].second.push_back(texts[i]);
    }
    grid.columns.push_back(title);
  };
  const auto least = [&](std::optional<double> RankedRow::*bytes) -> Best {
    std::optional<double> found;
    for (const RankedRow& row : ranking.rows) {
      if (row.*bytes && (!found || *(row.*bytes) < *found)) found = row.*bytes;
    }
    return [found, bytes](const RankedRow& row) { return row.*bytes && row.*bytes == found; };
  };
  const auto bytes_text = [](std::optional<double> RankedRow::*bytes) -> Text {
    return [bytes](const RankedRow& row) {
      return row.*bytes ? text::human_bytes(*(row.*bytes)) : std::string();
    };
  };
  const auto seconds = [&](const std::optional<Time>& time) {
    return time ? text::measured_seconds(time->median, time->low, time->high, letters)
                : std::string();
  };
  const Best none = [](const RankedRow&) { return false; };
  const auto add_quality = [&] {
    add(
        ranking.measure.words,
        [](const RankedRow& row) { return row.quality ? quality_text(*row.quality) : ""; },
        [](const RankedRow& row) { return row.best_quality; });
  };
  if (ranking.by_quality) add_quality();
  if (!ranking.timed.empty()) {
    add(
        "time",
        [&](const RankedRow& row) {
          if (row.time) return seconds(row.time);
          return row.ended ? to_string(*row.ended) : std::string();
        },
        [](const RankedRow& row) { return row.fastest; });
    add(
        "x exact",
        [](const RankedRow& row) {
          if (row.exact) return std::string("exact");
          return row.speedup ? times_text(*row.speedup) : std::string();
        },
        none);
    add(
        "faster from", [](const RankedRow& row) { return row.faster_from; }, none);
    add("workspace", bytes_text(&RankedRow::workspace_bytes), least(&RankedRow::workspace_bytes));
  }
  add(
      "step", [&](const RankedRow& row) { return seconds(row.step); },
      [](const RankedRow& row) { return row.fastest_step; });
  if (!ranking.by_quality) add_quality();
  add("state", bytes_text(&RankedRow::state_bytes), least(&RankedRow::state_bytes));
  return grid;
}

}  // namespace attnbench::reports::verdict
