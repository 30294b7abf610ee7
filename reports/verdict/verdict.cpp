#include "reports/verdict/verdict.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "core/text/printable.hpp"
#include "reports/verdict/ranking.hpp"
#include "reports/verdict/sentences.hpp"

namespace attnbench::reports::verdict {
namespace {

/// Ascending; the first is empty where cells have no place.
std::vector<std::optional<double>> places_of(const PanelQuestion& question) {
  std::set<std::optional<double>> places;
  for (const Candidate& cell : question.cells) places.insert(cell.x);
  return {places.begin(), places.end()};
}

/// Those among which things are compared: what has no place stands at each of the others.
std::vector<std::optional<double>> compared_places(const PanelQuestion& question) {
  std::vector<std::optional<double>> places = places_of(question);
  if (places.size() > 1) std::erase(places, std::optional<double>());
  return places;
}

/// The cells of one kind that stand at a place, as if it were their own.
std::vector<Candidate> cells_at(const PanelQuestion& question, const std::optional<double>& x,
                                const std::string& kind) {
  std::vector<Candidate> cells;
  for (const Candidate& cell : question.cells) {
    if (cell.kind != kind || (cell.x && cell.x != x)) continue;
    cells.push_back(cell);
    cells.back().x = x;
  }
  return cells;
}

/// The kind that is ranked at a place: that of exact attention, else of the first cell.
std::string ranked_kind(const PanelQuestion& question, const std::optional<double>& x) {
  const Candidate* first = nullptr;
  for (const Candidate& cell : question.cells) {
    if (cell.x && cell.x != x) continue;
    if (cell.exact) return cell.kind;
    if (first == nullptr) first = &cell;
  }
  return first == nullptr ? "" : first->kind;
}

/// The cells that have a time, or should.
std::vector<Entrant> entrants_of(const std::vector<Candidate>& cells, const std::string& kind) {
  std::vector<Entrant> entrants;
  for (const Candidate& cell : cells) {
    if (cell.kind != kind || (cell.status == Status::ok && !cell.time)) continue;
    entrants.push_back({cell.label, cell.x, cell.status,
                        is_ranked(cell) ? cell.time : std::optional<Time>(), cell.unchecked});
  }
  return entrants;
}

/// Whether a time grows with the place, so that a shorter length bounds it.
bool rises(const PanelQuestion& question) { return question.axis == "length"; }

/// The fastest exact attention at a place: the least of each bound.
struct Exact {
  std::optional<Time> time;
  std::string implementation;
  std::vector<Missing> missing;  ///< exact attention that may be faster

  void add(const Candidate& cell);
};

void Exact::add(const Candidate& cell) {
  if (!time || cell.time->median < time->median) implementation = cell.implementation;
  if (!time) time = cell.time;
  time->median = std::min(time->median, cell.time->median);
  time->low = std::min(time->low, cell.time->low);
  time->high = std::min(time->high, cell.time->high);
}

using PlaceAndKind = std::pair<std::optional<double>, std::string>;

/// By place and kind, for those at which any was asked for.
std::map<PlaceAndKind, Exact> exact_lines(const PanelQuestion& question) {
  std::set<std::string> kinds;
  for (const Candidate& cell : question.cells) {
    if (cell.exact) kinds.insert(cell.kind);
  }
  std::map<PlaceAndKind, Exact> lines;
  for (const std::string& kind : kinds) {
    std::vector<Candidate> all;
    for (const std::optional<double>& x : compared_places(question)) {
      for (const Candidate& cell : cells_at(question, x, kind)) {
        if (!cell.exact) continue;
        all.push_back(cell);
        Exact& exact = lines[{x, kind}];
        if (is_ranked(cell)) exact.add(cell);
      }
    }
    const std::vector<Entrant> entrants = entrants_of(all, kind);
    for (auto& [at, exact] : lines) {
      if (at.second != kind) continue;
      const double bound = exact.time ? exact.time->high : std::numeric_limits<double>::infinity();
      exact.missing = missing_at(entrants, at.first, bound, rises(question)).below;
    }
  }
  return lines;
}

/// The entrants of one kind, each at every place where it stands.
std::vector<Entrant> entrants_everywhere(const PanelQuestion& question, const std::string& kind) {
  std::vector<Candidate> all;
  for (const std::optional<double>& x : compared_places(question)) {
    for (Candidate& cell : cells_at(question, x, kind)) all.push_back(std::move(cell));
  }
  return entrants_of(all, kind);
}

std::vector<Fastest> rank(const PanelQuestion& question) {
  const std::map<PlaceAndKind, Exact> exact = exact_lines(question);
  std::vector<Fastest> all;
  for (const std::optional<double>& x : compared_places(question)) {
    const std::string kind = ranked_kind(question, x);
    std::vector<Candidate> cells = cells_at(question, x, kind);
    std::erase_if(cells, [](const Candidate& cell) { return !is_ranked(cell); });
    if (cells.size() < 2) continue;
    std::vector<Time> times;
    for (const Candidate& cell : cells) times.push_back(*cell.time);
    Fastest fastest;
    fastest.x = x;
    fastest.kind = kind;
    for (const std::size_t i : least_of(times)) {
      if (fastest.labels.empty()) {
        fastest.time = times[i];
        fastest.implementation = cells[i].implementation;
      }
      fastest.labels.push_back(cells[i].label);
    }
    fastest.missing =
        missing_at(entrants_everywhere(question, kind), x, fastest.time.high, rises(question));
    if (!fastest.missing.below.empty()) fastest.labels.clear();
    const auto line = exact.find({x, kind});
    if (line != exact.end() && line->second.missing.empty()) {
      fastest.exact = line->second.time;
      fastest.exact_implementation = line->second.implementation;
    }
    all.push_back(fastest);
  }
  return all;
}

/// A mechanism's times beside exact attention's.
struct Beside {
  std::map<double, const Candidate*> own;
  std::vector<Gap> gaps;

  void add_gap(double length, const std::vector<Missing>& missing);
};

void Beside::add_gap(double length, const std::vector<Missing>& missing) {
  if (missing.empty()) return;
  const auto known = std::find_if(gaps.begin(), gaps.end(),
                                  [&](const Gap& gap) { return gap.missing == missing; });
  Gap& gap = known == gaps.end() ? gaps.emplace_back(Gap{missing, {}}) : *known;
  gap.lengths.insert(std::lower_bound(gap.lengths.begin(), gap.lengths.end(), length), length);
}

Beside beside(const std::map<PlaceAndKind, Exact>& lines, const PanelQuestion& question,
              const std::string& label) {
  Beside all;
  for (const Candidate& cell : question.cells) {
    if (cell.label != label || cell.exact || !cell.x) continue;
    const auto line = lines.find({cell.x, cell.kind});
    if (line == lines.end()) continue;
    const Exact& exact = line->second;
    const auto missing = missing_at(entrants_of({cell}, cell.kind), cell.x, 0, false).below;
    all.add_gap(*cell.x, missing.empty() ? exact.missing : missing);
    if (is_ranked(cell) && exact.time && exact.missing.empty()) all.own[*cell.x] = &cell;
  }
  return all;
}

std::vector<std::string> labels_of(const PanelQuestion& question) {
  std::vector<std::string> labels;
  for (const Candidate& cell : question.cells) {
    if (std::find(labels.begin(), labels.end(), cell.label) == labels.end()) {
      labels.push_back(cell.label);
    }
  }
  return labels;
}

std::vector<CrossingStatement> crossings_of(const PanelQuestion& question) {
  if (question.axis != "length") return {};
  const std::map<PlaceAndKind, Exact> exact = exact_lines(question);
  std::vector<CrossingStatement> all;
  for (const std::string& label : labels_of(question)) {
    Beside lines = beside(exact, question, label);
    CrossingStatement crossover;
    std::vector<double> lengths, without;
    std::vector<Time> own, other;
    for (const auto& [length, cell] : lines.own) {
      lengths.push_back(length);
      own.push_back(*cell->time);
      other.push_back(*exact.at({length, cell->kind}).time);
    }
    for (const Gap& gap : lines.gaps) {
      without.insert(without.end(), gap.lengths.begin(), gap.lengths.end());
    }
    if (lengths.size() >= 2) {
      crossover = cross(lengths, own, other, without);
      const double place =
          crossover.crossing == CrossingKind::found
              ? *std::lower_bound(lengths.begin(), std::prev(lengths.end()), crossover.high)
              : lengths.back();
      crossover.implementation = lines.own.at(place)->implementation;
      crossover.against = exact.at({place, lines.own.at(place)->kind}).implementation;
    } else if (lengths.size() + without.size() >= 2) {
      crossover.crossing = CrossingKind::missing;
    } else {
      continue;
    }
    crossover.label = label;
    crossover.gaps = std::move(lines.gaps);
    all.push_back(crossover);
  }
  return all;
}

/// Bytes of `member` at the greatest place where at least two cells have them, ascending.
std::vector<Amount> amounts(const PanelQuestion& question, std::optional<double> Candidate::*member,
                            const std::optional<double>& x) {
  std::vector<Amount> all;
  for (const Candidate& cell : question.cells) {
    const bool known =
        cell.status == Status::ok || cell.status == Status::disturbed;  // bytes are not disturbed
    if (known && cell.x == x && cell.*member) all.push_back({cell.label, *(cell.*member)});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Amount& a, const Amount& b) { return a.bytes < b.bytes; });
  return all.size() < 2 ? std::vector<Amount>{} : all;
}

void add_bytes(const PanelQuestion& question, Answer& answer) {
  const auto places = places_of(question);
  for (auto x = places.rbegin(); x != places.rend(); ++x) {
    answer.workspaces = amounts(question, &Candidate::workspace_bytes, *x);
    answer.states = amounts(question, &Candidate::state_bytes, *x);
    if (answer.workspaces.empty() && answer.states.empty()) continue;
    answer.bytes_at = *x;
    return;
  }
}

bool is_better(const QualityMeasure& measure, double a, double b) {
  return measure.less_is_better ? a < b : a > b;
}

/// The best training of each label, or the one at the end of an axis which is not a choice of its
/// own.
std::vector<Accuracy> best_of_each(const PanelQuestion& question) {
  std::map<std::string, Accuracy> best;
  const bool by_size = question.axis == "state_bytes";
  for (const Accuracy& one : question.accuracies) {
    const auto [at, is_new] = best.try_emplace(one.label, one);
    if (is_new) continue;
    const bool better =
        by_size ? is_better(question.measure, one.mean, at->second.mean) : one.x > at->second.x;
    if (better) at->second = one;
  }
  std::vector<Accuracy> all;
  for (auto& [label, one] : best) all.push_back(one);
  std::stable_sort(all.begin(), all.end(), [&](const Accuracy& a, const Accuracy& b) {
    return is_better(question.measure, a.mean, b.mean);
  });
  return all;
}

void add_accuracies(const PanelQuestion& question, Answer& answer) {
  answer.accuracies = best_of_each(question);
  answer.measure = question.measure;
  answer.untrained = question.untrained;
  if (answer.accuracies.size() < 2 || !answer.untrained.empty()) return;
  const bool seeds = std::all_of(answer.accuracies.begin(), answer.accuracies.end(),
                                 [](const Accuracy& one) { return one.seeds > 1; });
  if (!seeds) return;
  const Accuracy& best = answer.accuracies.front();
  for (const Accuracy& one : answer.accuracies) {
    const bool overlaps =
        answer.measure.less_is_better ? one.low <= best.high : one.high >= best.low;
    if (overlaps) answer.max_accurate.push_back(one.label);
  }
}

Answer answer_to(const PanelQuestion& question) {
  Answer answer;
  answer.task = question.task;
  answer.what = question.what;
  answer.axis = question.axis;
  answer.place = question.place.empty() ? question.axis : question.place;
  answer.conditions = question.conditions;
  answer.fastest = rank(question);
  answer.crossings = crossings_of(question);
  for (const Candidate& cell : question.cells) {
    if (cell.crossover.empty()) continue;
    const std::string place =
        cell.x ? ", " + question.axis + " " + place_text(question.axis, *cell.x) : "";
    answer.searched.emplace_back(text::name_in_sentence(cell.label) + place, cell.crossover);
  }
  add_bytes(question, answer);
  add_accuracies(question, answer);
  answer.one_process_each =
      answer.fastest.empty() &&
      std::count_if(question.cells.begin(), question.cells.end(), [](const Candidate& cell) {
        return cell.status == Status::ok && cell.time && !cell.over_rounds;
      }) > 1;
  return answer;
}

std::vector<Exception> exceptions_of(const VerdictInput& input) {
  std::map<Status, Exception> all;
  for (const PanelQuestion& question : input.questions) {
    for (const Candidate& cell : question.cells) {
      if (cell.status == Status::ok) continue;
      Exception& one = all.try_emplace(cell.status, Exception{cell.status, 0, {}}).first->second;
      ++one.count;
      const std::string label = text::name_in_sentence(cell.label) + " (" + question.task + ")";
      if (std::find(one.labels.begin(), one.labels.end(), label) == one.labels.end()) {
        one.labels.push_back(label);
      }
    }
  }
  std::vector<Exception> list;
  for (auto& [status, one] : all) list.push_back(one);
  return list;
}

}  // namespace

bool is_ranked(const Candidate& cell) {
  return cell.status == Status::ok && cell.time && cell.over_rounds && cell.time->low > 0;
}

Verdict judge(const VerdictInput& input) {
  Verdict verdict;
  for (const PanelQuestion& question : input.questions)
    verdict.answers.push_back(answer_to(question));
  verdict.rankings = rankings_of(input.questions, verdict.answers);
  verdict.exceptions = exceptions_of(input);
  if (!verdict.rankings.empty()) {
    verdict.sentence = sentence_of(input.machine, verdict.rankings.front());
  }
  return verdict;
}

}  // namespace attnbench::reports::verdict
