#include "reports/spec.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "harness/result/format.hpp"

namespace attnbench::reports {
namespace {

/// Distinguishable for colour-blind readers, and legible on white; the page has a lighter one of
/// each for dark backgrounds.
constexpr std::array<const char*, 10> palette{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                              "#b8860b", "#56a0d3", "#7f3c8d", "#6b7280",
                                              "#8c564b", "#3d7a1f"};
constexpr std::array<const char*, 7> shapes{
    "circle", "square", "triangle-up", "diamond", "triangle-down", "triangle-right", "cross"};

std::size_t index_of(const std::vector<std::string>& order, const std::string& series) {
  const auto found = std::find(order.begin(), order.end(), series);
  return static_cast<std::size_t>(found - order.begin());
}

template <std::size_t count>
Json scale_of(const std::vector<std::string>& series, const std::vector<std::string>& order,
              const std::array<const char*, count>& range) {
  Json chosen = Json::array();
  for (const std::string& name : series) chosen.push_back(range[index_of(order, name) % count]);
  return {{"domain", series}, {"range", chosen}};
}

/// Lines of at most `width` columns, broken at ", ".
Json wrapped(const std::string& text, std::size_t width) {
  Json lines = Json::array();
  std::string line;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t comma = text.find(", ", begin);
    const std::size_t end = comma == std::string::npos ? text.size() : comma + 2;
    const std::string piece = text.substr(begin, end - begin);
    if (!line.empty() && result::display_width(line + piece) > width) {
      lines.push_back(line);
      line.clear();
    }
    line += piece;
    begin = end;
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

}  // namespace

Json legend_selection() {
  return Json::array({{{"name", "shown"},
                       {"select", {{"type", "point"}, {"fields", {"series"}}}},
                       {"bind", "legend"}}});
}

Json legend_opacity(double shown) {
  return {{"condition", {{"param", "shown"}, {"value", shown}}}, {"value", faded * shown}};
}

Json colour_encoding(const std::vector<std::string>& series,
                     const std::vector<std::string>& order) {
  return {{"field", "series"},
          {"type", "nominal"},
          {"title", nullptr},
          {"scale", scale_of(series, order, palette)}};
}

Json shape_encoding(const std::vector<std::string>& series, const std::vector<std::string>& order) {
  return {{"field", "series"},
          {"type", "nominal"},
          {"title", nullptr},
          {"scale", scale_of(series, order, shapes)}};
}

bool grows_by_factors(const std::vector<double>& values) {
  if (values.size() < 2 || values.front() <= 0) return false;
  double least = values[1] / values[0];
  double most = least;
  for (std::size_t i = 2; i < values.size(); ++i) {
    least = std::min(least, values[i] / values[i - 1]);
    most = std::max(most, values[i] / values[i - 1]);
  }
  return least >= 1.4 && most / least <= 2.1;
}

std::vector<double> numeric_axis(const result::Panel& panel) {
  std::vector<double> values;
  for (const Json* value : result::axis_values(panel)) {
    if (value->is_number()) values.push_back(value->get<double>());
  }
  return values;
}

bool is_logarithmic(const result::Panel& panel) { return grows_by_factors(numeric_axis(panel)); }

Json x_encoding(const result::Panel& panel) {
  Json x = {{"field", "x"}, {"title", axis_title(panel.axis)}};
  const std::vector<double> values = numeric_axis(panel);
  if (values.empty() || values.size() != result::axis_values(panel).size()) {
    x["type"] = "ordinal";
    x["sort"] = nullptr;
    return x;
  }
  x["type"] = "quantitative";
  x["axis"] = {{"values", values}, {"format", ","}, {"labelOverlap", "greedy"}, {"grid", false}};
  if (is_logarithmic(panel)) {
    x["scale"] = {{"type", "log"}, {"base", 2}, {"nice", false}, {"padding", 14}};
  } else {
    x["scale"] = {{"zero", false}, {"nice", false}, {"padding", 14}};
  }
  return x;
}

Json y_encoding(const result::Panel& panel, const std::string& title) {
  Json y = {{"field", "y"}, {"type", "quantitative"}, {"title", title}};
  if (is_logarithmic(panel)) {
    y["scale"] = {{"type", "log"}, {"nice", false}, {"padding", 18}};
    y["axis"] = {{"format", ",~r"}, {"tickCount", 6}};
  } else {
    y["scale"] = {{"zero", true}, {"padding", 18}};
    y["axis"] = {{"format", ",~r"}};
  }
  return y;
}

std::vector<Json> places(const result::Panel& panel, const result::Placed& placed) {
  if (placed.x) return {*placed.x};
  std::vector<Json> all;
  for (const Json* value : result::axis_values(panel)) all.push_back(*value);
  if (all.empty()) all.push_back("all");
  return all;
}

std::string axis_title(const std::string& axis) {
  static const std::map<std::string, std::string> words{
      {"length", "length T (tokens)"},
      {"latents_total", "latents, all heads together"},
      {"latents_per_head", "latents per head"},
      {"batch", "batch B (sequences)"},
      {"heads", "heads H"},
      {"head_dim", "width of a head D"},
      {"width", "width C = H·D"}};
  const auto found = words.find(axis);
  if (found != words.end()) return found->second;
  std::string text = axis;
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string file_name(const result::Panel& panel, const std::string& what) {
  std::string name = panel.task_label + "_" + what;
  for (const auto& [key, value] : panel.facet) name += "_" + value;
  for (char& letter : name) {
    if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
  }
  return name;
}

Json failure_layers(const result::Panel& panel) {
  static const std::vector<std::string> shown{"wrong", "out_of_memory", "timeout", "crashed",
                                              "error"};
  Json rows = Json::array();
  std::map<std::string, int> stacked;
  int most = 0;
  for (const result::Placed& placed : panel.cells) {
    const std::string status = (*placed.cell)["status"].get<std::string>();
    if (std::find(shown.begin(), shown.end(), status) == shown.end()) continue;
    for (const Json& x : places(panel, placed)) {
      Json row = provenance_row(*placed.cell);
      row.update({{"x", x},
                  {"series", placed.series},
                  {"status", status},
                  {"reason", placed.cell->value("reason", "")},
                  {"slot", stacked[x.dump()]++}});
      most = std::max(most, stacked[x.dump()]);
      rows.push_back(std::move(row));
    }
  }
  if (rows.empty()) return rows;
  const Json slot_scale = {{"domain", {0, std::max(30, most)}}, {"reverse", true}, {"nice", false}};
  return Json::array(
      {{{"data", {{"name", "failed"}, {"values", rows}}},
        {"mark",
         {{"type", "point"}, {"shape", "M-1,-1L1,1M-1,1L1,-1"}, {"size", 45}, {"strokeWidth", 2}}},
        {"encoding",
         {{"y",
           {{"field", "slot"}, {"type", "quantitative"}, {"scale", slot_scale}, {"axis", nullptr}}},
          {"opacity", legend_opacity(1)},
          {"tooltip",
           tooltip({{"series", "label"}, {"status", "status"}, {"reason", "reason"}})}}}}});
}

Figure framed(const result::Panel& panel, const std::string& what, const std::string& title,
              const std::string& caption, const std::vector<std::string>& order, Json layers) {
  Figure figure;
  figure.name = file_name(panel, what);
  figure.title = title;
  figure.subtitle = shared_settings(panel);
  const std::string facet = panel.facet_text();
  if (!facet.empty()) figure.subtitle += (figure.subtitle.empty() ? "" : ", ") + facet;
  figure.caption = caption;
  Json all = Json::array({{{"layer", std::move(layers)}}});
  for (const Json& layer : failure_layers(panel)) all.push_back(layer);
  figure.spec = {
      {"$schema", "https://vega.github.io/schema/vega-lite/v5.json"},
      {"title", {{"text", title}, {"subtitle", wrapped(figure.subtitle, 90)}}},
      {"width", "container"},
      {"height", 340},
      {"autosize", {{"type", "fit-x"}, {"contains", "padding"}}},
      {"encoding", {{"x", x_encoding(panel)}, {"color", colour_encoding(panel.series, order)}}},
      {"layer", std::move(all)},
      {"resolve", {{"scale", {{"y", "independent"}}}}},
      {"config",
       {{"font", "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"},
        {"view", {{"continuousWidth", 640}, {"stroke", nullptr}}},
        {"title",
         {{"anchor", "start"}, {"fontSize", 15}, {"subtitleFontSize", 11}, {"offset", 12}}},
        {"axis", {{"labelFontSize", 11}, {"titleFontSize", 12}, {"titleFontWeight", "normal"}}},
        {"legend",
         {{"orient", "bottom"},
          {"columns", 3},
          {"labelLimit", 260},
          {"labelFontSize", 11},
          {"symbolSize", 70}}}}}};
  return figure;
}

}  // namespace attnbench::reports
