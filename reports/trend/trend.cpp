#include "reports/trend/trend.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>
#include <utility>

#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "reports/figures/spec.hpp"

namespace attnbench::reports::trend {
namespace {

/// "1.082".
std::string ratio_text(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", ratio);
  return text;
}

std::string interval_text(const Change& change) {
  return "× " + ratio_text(change.ratio) + " (" + ratio_text(change.low) + " to " +
         ratio_text(change.high) + ")";
}

/// Seven digits of a commit, or the day where there is none.
std::string short_commit(const HistoryLine& line) {
  return line.commit.empty() ? line.date.substr(0, 10) : line.commit.substr(0, 7);
}

/// The moments at which a figure's series have values, in order; a date may have several commits.
std::vector<std::string> moments_of(const std::vector<const Series*>& series) {
  std::map<std::string, std::string> by_date;
  for (const Series* one : series) {
    for (const HistoryLine& line : one->lines) by_date[line.date] = short_commit(line);
  }
  std::vector<std::string> moments;
  for (const auto& [date, commit] : by_date) moments.push_back(date + " " + commit);
  return moments;
}

std::string moment_of(const HistoryLine& line) { return line.date + " " + short_commit(line); }

Json rows_of(const std::vector<const Series*>& series) {
  Json rows = Json::array();
  for (const Series* one : series) {
    for (std::size_t i = 0; i < one->lines.size(); ++i) {
      const HistoryLine& line = one->lines[i];
      rows.push_back({{"x", moment_of(line)},
                      {"y", one->values[i] / one->values.front()},
                      {"series", one->label},
                      {"cell", one->name + ", " + one->what},
                      {"said", text::human_seconds(line.median_seconds)},
                      {"commit", line.commit},
                      {"rounds", line.rounds}});
    }
  }
  return rows;
}

Json change_rows(const std::vector<const Series*>& series) {
  Json rows = Json::array();
  for (const Series* one : series) {
    for (const Change& change : one->changes) {
      const HistoryLine& line = one->lines[change.at];
      const double y = one->values[change.at] / one->values.front();
      rows.push_back({{"x", moment_of(line)},
                      {"y", y},
                      // The interval of the change, around the value that it ends at.
                      {"low", y * change.low / change.ratio},
                      {"high", y * change.high / change.ratio},
                      {"series", one->label},
                      {"cell", one->name + ", " + one->what},
                      {"changed", interval_text(change)},
                      {"commit", line.commit}});
    }
  }
  return rows;
}

Json tooltips(const std::vector<std::pair<std::string, std::string>>& fields) {
  Json list = Json::array();
  for (const auto& [field, title] : fields) {
    list.push_back({{"field", field}, {"title", title}, {"type", "nominal"}});
  }
  return list;
}

std::string plain_name(std::string text) {
  for (char& letter : text) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
  }
  return text;
}

Json layers_of(const std::vector<std::string>& labels, const Json& changes) {
  const Palette palette(labels);
  const Json colour = colour_encoding(labels, palette);
  Json line = {{"mark", {{"type", "line"}, {"strokeWidth", 1.5}}},
               {"encoding", {{"color", colour}, {"opacity", legend_opacity(0.7)}}}};
  Json points = {{"mark", {{"type", "point"}, {"filled", true}, {"size", 30}}},
                 {"params", legend_selection()},
                 {"encoding",
                  {{"color", colour},
                   {"shape", shape_encoding(labels, palette)},
                   {"opacity", legend_opacity(1)},
                   {"tooltip", tooltips({{"cell", "cell"},
                                         {"x", "run"},
                                         {"commit", "commit"},
                                         {"said", "median"},
                                         {"rounds", "rounds"}})}}}};
  Json layers = Json::array({std::move(line), std::move(points)});
  if (changes.empty()) return layers;
  const Json data = {{"name", "changes"}, {"values", changes}};
  layers.push_back({{"data", data},
                    {"mark", {{"type", "rule"}, {"strokeWidth", 3}, {"opacity", 0.5}}},
                    {"encoding",
                     {{"y", {{"field", "low"}, {"type", "quantitative"}}},
                      {"y2", {{"field", "high"}}},
                      {"color", colour}}}});
  layers.push_back({{"data", data},
                    {"mark",
                     {{"type", "point"},
                      {"shape", "diamond"},
                      {"size", 160},
                      {"filled", false},
                      {"strokeWidth", 2}}},
                    {"encoding",
                     {{"color", colour},
                      {"tooltip", tooltips({{"cell", "cell"},
                                            {"x", "from this run on"},
                                            {"commit", "commit"},
                                            {"changed", "time, interval"}})}}}});
  return layers;
}

Figure figure_of(const std::vector<const Series*>& series) {
  const Series& first = *series.front();
  std::vector<std::string> labels;
  bool calibrated = true;
  for (const Series* one : series) {
    calibrated = calibrated && one->calibrated;
    if (std::find(labels.begin(), labels.end(), one->label) == labels.end()) {
      labels.push_back(one->label);
    }
  }
  const std::vector<std::string> moments = moments_of(series);
  Figure figure;
  figure.name = "trend_" + plain_name(first.task) + "_" + first.machine.substr(0, 8);
  figure.title = "Time over commits: " + first.task;
  figure.subtitle = first.machine_name;
  figure.caption =
      std::string("Each line is a cell, relative to its first run") +
      (calibrated ? ", in units of the run's calibration probe"
                  : "; not calibrated where a run has no probe") +
      ". Diamonds: the level changed, with the change's interval; they describe and gate nothing.";
  Json x = {
      {"field", "x"},
      {"type", "ordinal"},
      {"sort", moments},
      {"title", "run (date, commit)"},
      {"axis",
       {{"labelAngle", -45}, {"labelOverlap", true}, {"labelExpr", "split(datum.label, ' ')[1]"}}}};
  Json y = {{"field", "y"},
            {"type", "quantitative"},
            {"title", "time / first run"},
            {"scale", {{"type", "log"}, {"zero", false}}}};
  figure.spec = bare_spec(figure, rows_of(series));
  fill_width(figure.spec);
  figure.spec.update(
      {{"description", figure.title + ". " + figure.subtitle + ". " + figure.caption},
       {"encoding", {{"x", x}, {"y", y}, {"detail", {{"field", "cell"}, {"type", "nominal"}}}}},
       {"layer", layers_of(labels, change_rows(series))}});
  return figure;
}

}  // namespace

std::vector<Series> series_of(const std::vector<HistoryLine>& lines) {
  std::vector<Series> all;
  std::map<std::string, std::size_t> places;
  for (const HistoryLine& line : lines) {
    const std::string key = line.machine + "\n" + line.id + "\n" + line.what;
    const auto [place, is_new] = places.try_emplace(key, all.size());
    if (is_new) {
      Series series;
      series.machine = line.machine;
      series.machine_name = line.machine_name.empty() ? line.machine : line.machine_name;
      series.name = line.name.empty() ? line.label + " " + line.id : line.name;
      series.task = series.name.substr(0, series.name.find(' '));
      series.label = line.label;
      series.what = line.what;
      all.push_back(std::move(series));
    }
    all[place->second].lines.push_back(line);
  }
  for (Series& series : all) {
    std::stable_sort(series.lines.begin(), series.lines.end(),
                     [](const HistoryLine& a, const HistoryLine& b) { return a.date < b.date; });
    series.calibrated =
        std::all_of(series.lines.begin(), series.lines.end(),
                    [](const HistoryLine& line) { return line.calibrated_median.has_value(); });
    for (const HistoryLine& line : series.lines) {
      series.values.push_back(series.calibrated ? *line.calibrated_median : line.median_seconds);
    }
    series.changes = changes_of(series.values);
  }
  return all;
}

std::vector<Figure> figures_of(const std::vector<Series>& series) {
  std::vector<std::pair<std::string, std::vector<const Series*>>> groups;
  for (const Series& one : series) {
    const std::string key = one.machine + "\n" + one.task;
    const auto found = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& group) { return group.first == key; });
    if (found == groups.end()) {
      groups.push_back({key, {&one}});
    } else {
      found->second.push_back(&one);
    }
  }
  std::vector<Figure> figures;
  for (const auto& [key, members] : groups) figures.push_back(figure_of(members));
  return figures;
}

std::string changes_markdown(const std::vector<Series>& series) {
  std::vector<std::pair<const Series*, const Change*>> changes;
  for (const Series& one : series) {
    for (const Change& change : one.changes) changes.emplace_back(&one, &change);
  }
  if (changes.empty()) {
    return "No level changed: a change needs at least " + std::to_string(least_side) +
           " runs on either side.\n";
  }
  std::stable_sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) {
    return a.first->lines[a.second->at].date > b.first->lines[b.second->at].date;
  });
  std::string text = "| from | commit | cell | time | machine |\n| --- | --- | --- | --- | --- |\n";
  for (const auto& [one, change] : changes) {
    const HistoryLine& line = one->lines[change->at];
    text += "| " + text::escape_markdown(line.date) + " | " +
            text::escape_markdown(short_commit(line)) + " | " +
            text::escape_markdown(one->name + ", " + one->what) + " | " + interval_text(*change) +
            " | " + text::escape_markdown(one->machine_name) + " |\n";
  }
  return text;
}

}  // namespace attnbench::reports::trend
