#include "reports/verdict/undecided.hpp"

#include <algorithm>

#include "core/text/printable.hpp"
#include "reports/verdict/sentences.hpp"

namespace attnbench::reports::verdict {
namespace {

/// Whether neither of two times is known to be less, nor both to be equal.
bool is_open(const Time& a, const Time& b) {
  const double low = a.low / b.high, high = a.high / b.low;
  const bool overlap = low <= 1 && high >= 1;
  return overlap && (low < 1 / (1 + equal_share) || high > 1 + equal_share);
}

/// What is undecided of one question, in the words of its answer.
class Search {
 public:
  Search(const PanelQuestion& question, const Answer& answer, bool names_task)
      : question_(question), answer_(answer), names_task_(names_task) {}

  std::vector<Undecided> found() {
    for (const Fastest& fastest : answer_.fastest) {
      compare_fastest(fastest);
      compare_with_exact(fastest);
    }
    for (const Candidate& cell : question_.cells) {
      if (cell.status == Status::disturbed && cell.time) {
        add(text::name_in_sentence(cell.label) + " was disturbed", cell.x, {&cell});
      }
    }
    return std::move(found_);
  }

 private:
  using Cells = std::vector<const Candidate*>;

  /// The ranked cells that a place compares.
  Cells ranked_at(const Fastest& place) const {
    Cells cells;
    for (const Candidate& cell : question_.cells) {
      const bool stands = cell.kind == place.kind && (!cell.x || cell.x == place.x);
      if (stands && is_ranked(cell)) cells.push_back(&cell);
    }
    return cells;
  }

  static bool is_named(const Fastest& place, const Candidate& cell) {
    return std::find(place.labels.begin(), place.labels.end(), cell.label) != place.labels.end();
  }

  void compare_fastest(const Fastest& place) {
    if (place.labels.size() < 2) return;
    Cells cells = ranked_at(place);
    std::erase_if(cells, [&](const Candidate* cell) { return !is_named(place, *cell); });
    const auto open = [&](const Candidate* cell) {
      return cell->label != place.labels.front() && is_open(*cell->time, place.time);
    };
    if (std::none_of(cells.begin(), cells.end(), open)) return;
    add("which of " + named_list(place.labels, " and ") + " is fastest", place.x, cells);
  }

  void compare_with_exact(const Fastest& place) {
    if (!place.exact) return;
    const Cells cells = ranked_at(place);
    for (const Candidate* cell : cells) {
      if (cell->exact || !is_open(*cell->time, *place.exact)) continue;
      Cells sides{cell};
      bool told_already = is_named(place, *cell);
      for (const Candidate* other : cells) {
        if (!other->exact || other->time->low > place.exact->high) continue;
        sides.push_back(other);
        told_already = told_already && is_named(place, *other);
      }
      if (told_already) continue;
      add("whether " + text::name_in_sentence(cell->label) + " is faster than exact attention",
          place.x, sides);
    }
  }

  void add(const std::string& what, const std::optional<double>& x, const Cells& cells) {
    Undecided one;
    one.words = (names_task_ ? question_.task + ": " : "") + what;
    if (x) one.words += " at " + answer_.place + " " + place_text(answer_.axis, *x);
    for (const Candidate* cell : cells) {
      if (std::find(one.cells.begin(), one.cells.end(), cell->id) == one.cells.end()) {
        one.cells.push_back(cell->id);
      }
    }
    found_.push_back(std::move(one));
  }

  const PanelQuestion& question_;
  const Answer& answer_;
  bool names_task_;
  std::vector<Undecided> found_;
};

}  // namespace

std::vector<Undecided> undecided_of(const VerdictInput& input, const Verdict& verdict) {
  std::vector<Undecided> all;
  for (std::size_t i = 0; i < input.questions.size(); ++i) {
    Search search(input.questions[i], verdict.answers.at(i), input.questions.size() > 1);
    for (Undecided& one : search.found()) all.push_back(std::move(one));
  }
  return all;
}

}  // namespace attnbench::reports::verdict
