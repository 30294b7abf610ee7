#include "reports/figures/spec.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "reports/figures/kinds.hpp"
#include "reports/figures/legend.hpp"
#include "reports/figures/ticks.hpp"
#include "reports/tables/conditions.hpp"

namespace attnbench::reports {
namespace {

/// The encoding of a channel by series; `range` has a value for each.
Json by_series(const std::vector<std::string>& series, Json range) {
  return {{"field", "series"},
          {"type", "nominal"},
          {"title", nullptr},
          {"legend", {{"symbolOpacity", 1}}},
          {"scale", {{"domain", series}, {"range", std::move(range)}}}};
}

/// "tiled: softmax, window; fused: latte": which implementations ran, and for which series.
std::string implementations(const Panel& panel) {
  std::vector<std::pair<std::string, std::vector<std::string>>> all;  // in the series' order
  for (const std::string& series : panel.series) {
    std::set<std::string> ran;
    for (const Placed& placed : panel.cells) {
      const CellRecord& cell = *placed.cell;
      if (placed.series == series && (result::is_ok(cell) || result::is_disturbed(cell))) {
        ran.insert(implementation_of(cell));
      }
    }
    for (const std::string& name : ran) {
      const auto known =
          std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.first == name; });
      auto& names = known == all.end() ? all.emplace_back(name, std::vector<std::string>()).second
                                       : known->second;
      names.push_back(text::name_in_sentence(series));
    }
  }
  std::string text;
  for (const auto& [name, names] : all) {
    text += (text.empty() ? "" : "; ") + name + ": ";
    for (std::size_t i = 0; i < names.size(); ++i) text += (i > 0 ? ", " : "") + names[i];
  }
  return text;
}

/// "Grey: the others. Thin: exact attention (softmax).", for a figure of small multiples.
std::string background_words(const Panel& panel) {
  std::string exact;
  for (const std::string& series : exact_series(panel)) {
    exact += (exact.empty() ? "" : ", ") + text::name_in_sentence(series);
  }
  return "Grey: the others." +
         (exact.empty() ? "" : " Thin in every panel: exact attention (" + exact + ").");
}

/// Pixels that values on a logarithmic axis keep from the frame, so that marks of failures have
/// room.
int y_padding(const Panel& panel) { return std::min(16 + 10 * failure_height(panel), 66); }

}  // namespace

Json legend_selection() {
  return Json::array({{{"name", "shown"},
                       {"select", {{"type", "point"}, {"fields", {"series"}}}},
                       {"bind", "legend"}}});
}

Json legend_opacity(double shown) {
  return {{"condition", {{"param", "shown"}, {"value", shown}}}, {"value", faded * shown}};
}

Json colour_encoding(const std::vector<std::string>& series, const Palette& palette,
                     std::size_t grey_from) {
  Json colours = Json::array();
  for (const std::string& name : series) {
    colours.push_back(colours.size() < grey_from ? palette.of(name).colour : "#888888");
  }
  return by_series(series, std::move(colours));
}

Json shape_encoding(const std::vector<std::string>& series, const Palette& palette) {
  Json shapes = Json::array();
  for (const std::string& name : series) shapes.push_back(palette.of(name).shape);
  return by_series(series, std::move(shapes));
}

Json dash_encoding(const std::vector<std::string>& series, const Palette& palette) {
  Json dashes = Json::array();
  bool any = false;
  for (const std::string& name : series) {
    const std::vector<int>& dash = palette.of(name).dash;
    any = any || !dash.empty();
    dashes.push_back(dash.empty() ? std::vector<int>{1, 0} : dash);
  }
  return any ? without_legend(by_series(series, std::move(dashes))) : Json();
}

Json without_legend(Json encoding) {
  encoding["legend"] = nullptr;
  return encoding;
}

std::vector<double> numeric_axis(const Panel& panel) {
  std::vector<double> values;
  for (const Json& value : axis_values(panel)) {
    if (value.is_number()) values.push_back(value.get<double>());
  }
  return values;
}

bool is_logarithmic(const Panel& panel) {
  return panel.logarithmic.value_or(grows_by_factors(numeric_axis(panel)));
}

Json x_encoding(const Panel& panel, const std::vector<double>& further) {
  const std::vector<double> values = numeric_axis(panel);
  const std::vector<Json> all = axis_values(panel);
  if (values.empty() || values.size() != all.size()) {
    return {{"field", "x"},
            {"title", axis_title(panel.axis)},
            {"type", "ordinal"},
            {"sort", all},  // layers would sort by letters
            {"axis", {{"labelAngle", 0}, {"labelExpr", "split(datum.label, '_')"}}}};
  }
  std::set<double> ticks(values.begin(), values.end());
  ticks.insert(further.begin(), further.end());
  const Json domain = {*ticks.begin(), *ticks.rbegin()};
  Json axis = {{"labelOverlap", "greedy"}, {"labelSeparation", 6}, {"grid", false}};
  const bool of_states = panel.axis == state_bytes;
  if (is_logarithmic(panel)) ticks = without_gaps(ticks);
  if (of_states) {  // wherever mechanisms happen to lie, which is not a place for a tick
    axis.update({{"format", ".3~s"}});
  } else {
    // A precision of its own: Vega would choose one by the distance of ticks, and say 1e+2 for 100.
    axis.update({{"values", ticks}, {"format", ",.12~g"}});
  }
  Json scale = {{"nice", false}, {"padding", 14}, {"domain", domain}};
  if (of_states || is_logarithmic(panel)) {
    scale.update({{"type", "log"}, {"base", 2}});
  } else {
    scale.update({{"zero", false}});
  }
  return {{"field", "x"},
          {"title", axis_title(panel.axis)},
          {"type", "quantitative"},
          {"axis", std::move(axis)},
          {"scale", std::move(scale)}};
}

Json y_encoding(const Panel& panel, const std::string& title, const std::vector<double>& values) {
  Json axis = {{"format", ",~r"}};
  Json scale = {{"nice", false}};
  if (is_logarithmic(panel)) {
    // Without a domain of its own, each of several small multiples would have another.
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    const double room = *most > *least ? 1 : 1.5;
    scale.update({{"type", "log"},
                  {"padding", y_padding(panel)},
                  {"domain", {*least / room, *most * room}}});
    axis.update({{"values", decade_ticks(values)}});
  } else {
    const double top = values.empty() ? 1 : *std::max_element(values.begin(), values.end());
    const double room = 1.06 + 0.035 * failure_height(panel);
    scale.update({{"domain", {0, top > 0 ? top * room : 1}}});
  }
  return {{"field", "y"},
          {"type", "quantitative"},
          {"title", title},
          {"axis", std::move(axis)},
          {"scale", std::move(scale)}};
}

std::vector<Json> places(const Panel& panel, const Placed& placed) {
  if (placed.x) return {*placed.x};
  std::vector<Json> all = axis_values(panel);
  if (all.empty()) all.push_back("all");
  return all;
}

std::string file_name(const Panel& panel, const std::string& what) {
  std::string name = panel.task_label + "_" + what;
  for (const auto& [key, value] : panel.facet) name += "_" + value;
  for (char& letter : name) {
    if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
  }
  return name;
}

Json with_field(Json encoding, const char* field) {
  encoding.update({{"field", field}});
  return encoding;
}

Figure framed(Framing framing, const Panel& panel, const Palette& palette) {
  Figure figure;
  figure.name = file_name(panel, framing.what);
  figure.what = framing.what;
  figure.title = framing.title;
  figure.caption = framing.caption;
  figure.group = panel.task_label;
  figure.subtitle = shared_settings(panel);
  const std::string facet = panel.facet_text();
  if (!facet.empty()) {
    figure.group.append(", ").append(facet);
    if (!figure.subtitle.empty()) figure.subtitle += ", ";
    figure.subtitle += facet;
  }
  const std::string ran = implementations(panel);
  if (!ran.empty()) figure.subtitle += ". Implementations: " + ran;
  figure.subtitle += framing.note;
  Json encoding = {{"x", framing.x.is_null() ? x_encoding(panel) : std::move(framing.x)}};
  if (framing.coloured) {
    Json colour = colour_encoding(panel.series, palette, framing.grey_from);
    if (framing.labelled) colour = without_legend(std::move(colour));
    encoding.update({{"color", std::move(colour)}});
  }
  figure.spec = bare_spec(figure, std::move(framing.rows));
  figure.spec["encoding"] = std::move(encoding);
  fill_width(figure.spec);
  if (framing.grouping == Grouping::flat) {
    figure.spec.update({{"layer", std::move(framing.layers)}});
  } else {
    Json all = Json::array({{{"layer", std::move(framing.layers)}}});
    if (framing.grouping == Grouping::with_failures) {
      for (const Json& layer : failure_layers(panel)) all.push_back(layer);
    }
    figure.spec.update(
        {{"layer", std::move(all)}, {"resolve", {{"scale", {{"y", "independent"}}}}}});
  }
  if (framing.joins && !framing.labelled && panel.series.size() >= crowded) {
    figure.spec = small_multiples(std::move(figure.spec), panel, palette);
    figure.caption += figure.caption.empty() ? "" : " ";
    figure.caption += background_words(panel);
  }
  return figure;
}

Figure framed_maps(Framing framing, const Panel& panel, const Palette& palette, const char* field,
                   Json names, Json unit) {
  framing.layers = Json::array();
  framing.grouping = Grouping::flat;
  framing.joins = false;
  Figure figure = framed(std::move(framing), panel, palette);
  for (const char* key : {"layer", "encoding", "width", "height", "autosize"}) {
    figure.spec.erase(key);
  }
  figure.spec["facet"] = {{"field", field},
                          {"type", "nominal"},
                          {"title", nullptr},
                          {"sort", std::move(names)},
                          {"header", {{"labelFontSize", 12}}}};
  figure.spec["spec"] = std::move(unit);
  return figure;
}

void add_published(Json& layers, const Json& rows, const Json& y, const PublishedLook& look) {
  if (rows.empty()) return;
  const Json data = {{"name", "published"}, {"values", rows}};
  Json fields = Json::array({{{"field", "series"}, {"title", "label"}, {"type", "nominal"}},
                             {{"field", "said"}, {"title", "published"}, {"type", "nominal"}}});
  if (look.has_source) {
    fields.push_back({{"field", "source"}, {"title", "source"}, {"type", "nominal"}});
  }
  if (look.joined) {
    layers.push_back(
        {{"data", data},
         {"mark", {{"type", "line"}, {"strokeDash", {5, 4}}, {"strokeWidth", look.width}}},
         {"encoding", {{"y", y}, {"opacity", legend_opacity(look.opacity)}}}});
  }
  Json encoding = {{"y", y}, {"opacity", legend_opacity(1)}, {"tooltip", std::move(fields)}};
  if (!look.shape.is_null()) encoding.update({{"shape", look.shape}});
  layers.push_back({{"data", data},
                    {"mark", {{"type", "point"}, {"filled", false}, {"size", 60}}},
                    {"encoding", std::move(encoding)}});
}

Json bare_spec(const Figure& figure, Json rows) {
  const Json config = {
      {"font", "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"},
      {"view", {{"continuousWidth", 640}, {"stroke", nullptr}}},
      {"title", {{"anchor", "start"}, {"fontSize", 15}, {"subtitleFontSize", 11}, {"offset", 12}}},
      {"axis", {{"labelFontSize", 11}, {"titleFontSize", 12}, {"titleFontWeight", "normal"}}},
      {"legend",
       {{"orient", "bottom"},
        {"columns", 3},
        {"labelLimit", 260},
        {"labelFontSize", 11},
        {"symbolSize", 70}}}};
  return {{"$schema", "https://vega.github.io/schema/vega-lite/v5.json"},
          {"title", {{"text", figure.title}, {"subtitle", wrapped_lines(figure.subtitle)}}},
          {"data", {{"name", "measured"}, {"values", std::move(rows)}}},
          {"config", config}};
}

void fill_width(Json& spec, Json height) {
  spec.update({{"width", "container"},
               {"height", std::move(height)},
               {"autosize", {{"type", "fit-x"}, {"contains", "padding"}}}});
}

Json wrapped_lines(const std::string& text, std::size_t width) {
  Json lines = Json::array();
  std::string line;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t mark = text.find_first_of(",;.", begin);
    const std::size_t end =
        mark == std::string::npos ? text.size() : std::min(mark + 2, text.size());
    const std::string piece = text.substr(begin, end - begin);
    if (!line.empty() && text::display_width(line + piece) > width) {
      lines.push_back(line);
      line.clear();
    }
    line += piece;
    begin = end;
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

}  // namespace attnbench::reports
