#include "reports/verdict/ranking.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include "reports/verdict/headline.hpp"
#include "reports/verdict/sentences.hpp"

namespace attnbench::reports::verdict {
namespace {

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
    row.mechanism = cell.mechanism;
    if (is_ranked(cell) && cell.x) row.along.emplace_back(*cell.x, cell.time->median);
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
      row.least_seconds = cell.least_seconds;
    }
    if (cell.status == Status::ok || cell.status == Status::disturbed) {
      row.workspace_bytes = cell.workspace_bytes;
      row.state_bytes = cell.state_bytes;
    }
  }
  for (RankedRow& row : ranking.rows) std::sort(row.along.begin(), row.along.end());
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
    row.least_step_seconds = cell.least_seconds;
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
    ranking.headline = time_headline(answer, *compared_last(answer), ranking);
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

}  // namespace attnbench::reports::verdict
