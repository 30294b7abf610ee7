#include "reports/figures/palette.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

namespace attnbench::reports {
namespace {

constexpr std::array<const char*, 7> shapes{
    "circle", "square", "triangle-up", "diamond", "triangle-down", "triangle-right", "cross"};

/// Of mechanisms that the table lacks: plugins, Python, published models.
constexpr std::array<std::pair<const char*, const char*>, 7> unnamed{{{"#a0522d", "#e0a080"},
                                                                      {"#00838f", "#4dd0e1"},
                                                                      {"#4e6a78", "#90a9b7"},
                                                                      {"#c2185b", "#f06292"},
                                                                      {"#8a8a00", "#d0d04a"},
                                                                      {"#303f9f", "#8c9eff"},
                                                                      {"#3d7a1f", "#8ccf66"}}};

constexpr int variants = 9;  ///< of a colour: three shades, each solid, dashed and dotted

/// `colour` with `share` of white (positive) or of black mixed in.
std::string mixed(const std::string& colour, double share) {
  std::array<char, 8> text{};
  std::array<int, 3> parts{};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const int part = std::stoi(colour.substr(1 + 2 * i, 2), nullptr, 16);
    const double end = share > 0 ? 255 : 0;
    parts[i] = static_cast<int>(part + (end - part) * std::abs(share) + 0.5);
  }
  std::snprintf(text.data(), text.size(), "#%02x%02x%02x", parts[0], parts[1], parts[2]);
  return text.data();
}

/// The look of the `line`-th series of one entry of the table.
Look variant(const Look& base, int line) {
  constexpr std::array<double, 3> shades{0, 0.38, -0.38};
  const std::array<std::vector<int>, 3> dashes{{{}, {9, 3}, {3, 2}}};
  const auto at = static_cast<std::size_t>(line % variants);
  // Black has no darker shade, and its lighter one is the grey of tiled exact attention.
  const bool black = base.colour < "#2" && base.colour.compare(3, 1, "4") < 0;
  const double shade = shades[black ? at / dashes.size() : at % shades.size()];
  Look look = base;
  look.colour = mixed(base.colour, shade);
  look.dark = mixed(base.dark, -shade);
  look.dash = dashes[black ? at % dashes.size() : at / shades.size()];
  const auto shape = std::find(shapes.begin(), shapes.end(), base.shape);
  look.shape = shapes[(static_cast<std::size_t>(shape - shapes.begin()) + at) % shapes.size()];
  return look;
}

/// Its place in the table; the end where the table lacks it.
std::size_t place_of(const std::string& name) {
  const auto& table = table_of_looks();
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  return static_cast<std::size_t>(found - table.begin());
}

const Look* entry_of(const std::string& name) {
  const std::size_t place = place_of(name);
  return place < table_of_looks().size() ? &table_of_looks()[place].second : nullptr;
}

}  // namespace

const std::vector<std::pair<std::string, Look>>& table_of_looks() {
  static const std::vector<std::pair<std::string, Look>> table{
      {"softmax", {"#1b1f24", "#f2f4f7", "circle", {}}},
      {"flash", {"#6b7280", "#a8b0bd", "square", {}}},
      {"fox", {"#391500", "#b33b00", "triangle-up", {}}},
      {"mla", {"#000060", "#5460ae", "triangle-down", {}}},
      {"window", {"#998509", "#dbb92e", "circle", {}}},
      {"longshort", {"#976800", "#eacc8d", "square", {}}},
      {"moba", {"#d800b4", "#d6037d", "triangle-down", {}}},
      {"nsa", {"#480c5c", "#a518d8", "triangle-right", {}}},
      {"latte", {"#0072b2", "#46abea", "circle", {}}},
      {"macchiato", {"#2829c1", "#7787fe", "square", {}}},
      {"luna", {"#183983", "#667be5", "triangle-up", {}}},
      {"perceiver", {"#587aff", "#a5c4fd", "diamond", {}}},
      {"linear", {"#f65c45", "#fea07f", "circle", {}}},
      {"performer", {"#8a1f06", "#fb480e", "square", {}}},
      {"lavo", {"#9f3901", "#fb7b19", "triangle-up", {}}},
      {"cosformer", {"#5b2211", "#c87552", "diamond", {}}},
      {"retention", {"#1a724d", "#26cc6e", "circle", {}}},
      {"gla", {"#3ea682", "#7ad7b5", "square", {}}},
      {"hgrn2", {"#6aa055", "#95f455", "triangle-up", {}}},
      {"mamba", {"#004033", "#0b735c", "cross", {}}},
      {"mamba2", {"#1b603a", "#48a476", "diamond", {}}},
      {"rg_lru", {"#339377", "#21f5c9", "triangle-down", {}}},
      {"delta", {"#a452d9", "#db88fe", "circle", {}}},
      {"gated_delta", {"#73578f", "#bd91cd", "square", {}}},
      {"kda", {"#542e63", "#b778c8", "triangle-up", {}}},
      {"rwkv7", {"#6c08ed", "#9a3cff", "diamond", {}}},
      {"abc", {"#751244", "#fd5190", "circle", {}}},
      {"gsa", {"#b63d5c", "#f87f9d", "square", {}}},
      {"linformer", {"#e961b3", "#fda5e0", "triangle-up", {}}},
      {"nystromformer", {"#773f64", "#ca7aa8", "diamond", {}}},
  };
  return table;
}

const std::map<std::string, std::string>& dark_colours() {
  static const std::map<std::string, std::string> pairs = [] {
    std::map<std::string, std::string> all{{accent_blue, "#46abea"},
                                           {accent_orange, "#ff8a3d"},
                                           {accent_green, "#2ecc9b"},
                                           {accent_grey, "#a8b0bd"}};
    const auto add = [&](const Look& base) {
      for (int line = 0; line < variants; ++line) {
        const Look look = variant(base, line);
        all.emplace(look.colour, look.dark);
      }
    };
    for (const auto& [name, look] : table_of_looks()) add(look);
    for (const auto& [colour, dark] : unnamed) add({colour, dark, "circle", {}});
    return all;
  }();
  return pairs;
}

Palette::Palette(std::initializer_list<std::string> series) {
  for (const std::string& name : series) add(name, name);
}

Palette::Palette(const std::vector<std::string>& series) {
  for (const std::string& name : series) add(name, name);
}

Palette::Palette(const std::vector<Panel>& panels) {
  // A series that is called as its mechanism is has that one's own look, wherever it stands.
  for (const bool own : {true, false}) {
    for (const Panel& panel : panels) {
      for (const std::string& series : panel.series) {
        const auto cell =
            std::find_if(panel.cells.begin(), panel.cells.end(),
                         [&](const Placed& placed) { return placed.series == series; });
        if (own != (entry_of(series) != nullptr)) continue;
        add(series, cell == panel.cells.end() ? series : cell->cell->mechanism);
      }
    }
  }
  std::vector<std::string> order;
  for (const Panel& panel : panels) {
    for (const std::string& series : panel.series) {
      if (std::find(order.begin(), order.end(), series) == order.end()) order.push_back(series);
    }
  }
  order_ = std::move(order);
}

const Look& Palette::of(const std::string& series) const {
  static const Look grey{accent_grey, dark_colours().at(accent_grey), "circle", {}};
  const auto found = looks_.find(series);
  return found == looks_.end() ? grey : found->second;
}

std::vector<std::string> Palette::by_family(std::vector<std::string> series) const {
  const auto place = [&](const std::string& name) {
    const auto found = entries_.find(name);
    return found == entries_.end() ? table_of_looks().size() : found->second;
  };
  std::stable_sort(series.begin(), series.end(),
                   [&](const std::string& a, const std::string& b) { return place(a) < place(b); });
  return series;
}

void Palette::add(const std::string& series, const std::string& mechanism) {
  if (looks_.contains(series)) return;
  const std::string* entry = &series;
  const Look* base = entry_of(series);
  if (base == nullptr) {
    entry = &mechanism;
    base = entry_of(mechanism);
  }
  order_.push_back(series);
  if (base != nullptr) {
    looks_.emplace(series, variant(*base, lines_[*entry]++));
    entries_.emplace(series, place_of(*entry));
    return;
  }
  // Each series of its own, since nothing says which of them belong together.
  const auto at = static_cast<std::size_t>(lines_[""]++);
  const auto& [colour, dark] = unnamed[at % unnamed.size()];
  const Look own{colour, dark, shapes[at % shapes.size()], {}};
  looks_.emplace(series, variant(own, static_cast<int>(at / unnamed.size())));
}

void Palette::add_again(const std::string& series, const std::string& like, std::size_t result) {
  static const std::array<std::vector<int>, 5> dashes{{{}, {8, 4}, {2, 3}, {8, 3, 2, 3}, {14, 4}}};
  if (looks_.contains(series)) return;
  Look look = of(like);
  look.dash = dashes[result % dashes.size()];
  order_.push_back(series);
  looks_.emplace(series, std::move(look));
}

}  // namespace attnbench::reports
