#include "reports/verdict/document.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/verdict/ranking.hpp"
#include "reports/verdict/sentences.hpp"

namespace attnbench::reports::verdict {
namespace {

using Json = nlohmann::json;

constexpr TableStyle plain_style{100, text::Letters::utf8, false};

void add(Json& json, const char* key, const std::optional<double>& value) {
  if (value) json[key] = *value;
}

Json lines_json(const std::vector<Line>& lines) {
  Json list = Json::array();
  for (const Line& line : lines) list.push_back({{"topic", line.topic}, {"text", line.text}});
  return list;
}

Json names_of_missing(const MissingAt& missing) {
  Json list = Json::array();
  for (const Missing& one : missing.below) {
    list.push_back({{"label", one.series}, {"status", to_string(one.status)}});
  }
  return list;
}

/// Without labels nothing is told, because of what is missing there.
Json fastest_json(const std::string& axis, const Fastest& one) {
  Json json = {{"labels", one.labels}};
  if (!axis.empty()) add(json, axis.c_str(), one.x);
  if (one.labels.empty()) {
    json["missing"] = names_of_missing(one.missing);
    return json;
  }
  json["implementation"] = one.implementation;
  json["median_seconds"] = one.time.median;
  json["low_seconds"] = one.time.low;
  json["high_seconds"] = one.time.high;
  return json;
}

const char* word_of(CrossingKind kind) {
  switch (kind) {
    case CrossingKind::found:
      return "found";
    case CrossingKind::below:
      return "below";
    case CrossingKind::none:
      return "none";
    case CrossingKind::reverse:
      return "reverse";
    case CrossingKind::several:
      return "several";
    case CrossingKind::undecided:
      return "undecided";
    case CrossingKind::missing:
      break;
  }
  return "missing";
}

Json crossing_json(const CrossingStatement& one) {
  Json json = {{"label", one.label},
               {"implementation", one.implementation},
               {"against", one.against},
               {"crossing", word_of(one.crossing)},
               {"text", text_of(one)}};
  if (one.crossing == CrossingKind::found) {
    json["length"] = one.length;
    add(json, "low", one.low);
    json["high"] = one.high;
  }
  return json;
}

Json amounts_json(const std::vector<Amount>& amounts) {
  Json list = Json::array();
  for (const Amount& one : amounts) list.push_back({{"label", one.label}, {"bytes", one.bytes}});
  return list;
}

Json accuracy_json(const std::string& axis, const Accuracy& one) {
  Json json = {{"label", one.label},
               {"mean", one.mean},
               {"low", one.low},
               {"high", one.high},
               {"seeds", one.seeds}};
  if (!axis.empty()) add(json, axis.c_str(), one.x);
  add(json, "state_bytes", one.state_bytes);
  return json;
}

Json task_json(const Answer& answer) {
  Json json = {{"task", answer.task},
               {"what", answer.what},
               {"axis", answer.axis},
               {"conditions", answer.conditions},
               {"lines", lines_json(lines_of(answer))},
               {"fastest", Json::array()},
               {"crossings", Json::array()},
               {"workspaces", amounts_json(answer.workspaces)},
               {"states", amounts_json(answer.states)},
               {"accuracies", Json::array()}};
  for (const Fastest& one : answer.fastest) {
    json["fastest"].push_back(fastest_json(answer.axis, one));
  }
  for (const CrossingStatement& one : answer.crossings) {
    json["crossings"].push_back(crossing_json(one));
  }
  add(json, "bytes_at", answer.bytes_at);
  if (!answer.accuracies.empty()) json["judged_by"] = answer.measure.words;
  for (const Accuracy& one : answer.accuracies) {
    json["accuracies"].push_back(accuracy_json(answer.axis, one));
  }
  return json;
}

void add_times(Json& json, const std::string& prefix, const std::optional<Estimate>& time) {
  if (!time) return;
  json[prefix + "median_seconds"] = time->median;
  json[prefix + "low_seconds"] = time->low;
  json[prefix + "high_seconds"] = time->high;
}

Json row_json(const RankedRow& row) {
  Json json = {{"label", row.label},
               {"implementation", row.implementation},
               {"exact", row.exact},
               {"fastest", row.fastest},
               {"fastest_step", row.fastest_step},
               {"best_quality", row.best_quality}};
  if (!row.faster_from.empty()) json["faster_from"] = row.faster_from;
  add_times(json, "", row.time);
  if (row.ended) json["status"] = to_string(*row.ended);
  if (row.speedup) {
    json["speedup"] = {
        {"median", row.speedup->median}, {"low", row.speedup->low}, {"high", row.speedup->high}};
  }
  add(json, "workspace_bytes", row.workspace_bytes);
  add(json, "state_bytes", row.state_bytes);
  add_times(json, "step_", row.step);
  if (row.quality) json["quality"] = accuracy_json("", *row.quality);
  return json;
}

Json ranking_json(const Ranking& ranking) {
  Json json = {{"headline", ranking.headline}, {"conditions", ranking.conditions},
               {"timed", ranking.timed},       {"axis", ranking.axis},
               {"task", ranking.task},         {"rows", Json::array()}};
  for (const auto& [key, text] :
       {std::pair("against", ranking.against), std::pair("step_place", ranking.step_place),
        std::pair("step_conditions", ranking.step_conditions),
        std::pair("quality_of", ranking.quality_of)}) {
    if (!text.empty()) json[key] = text;
  }
  const bool learned = std::any_of(ranking.rows.begin(), ranking.rows.end(),
                                   [](const RankedRow& row) { return row.quality.has_value(); });
  if (learned) json["judged_by"] = ranking.measure.words;
  add(json, "at", ranking.at);
  for (const RankedRow& row : ranking.rows) json["rows"].push_back(row_json(row));
  return json;
}

}  // namespace

Json document_of(const Verdict& verdict) {
  Json json = {{"text", text_of(verdict, plain_style)},
               {"headline", headline_of(verdict)},
               {"sentence", verdict.sentence},
               {"rankings", Json::array()},
               {"tasks", Json::array()},
               {"exceptions", Json::array()}};
  for (const Ranking& one : verdict.rankings) json["rankings"].push_back(ranking_json(one));
  for (const Answer& answer : verdict.answers) json["tasks"].push_back(task_json(answer));
  for (const Exception& one : verdict.exceptions) {
    json["exceptions"].push_back(
        {{"status", to_string(one.status)}, {"count", one.count}, {"labels", one.labels}});
  }
  return json;
}

}  // namespace attnbench::reports::verdict
