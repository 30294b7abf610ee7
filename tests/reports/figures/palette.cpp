#include "reports/figures/palette.hpp"

#include <array>
#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using namespace attnbench::reports;

namespace {

using Colour3 = std::array<double, 3>;
using Matrix3 = std::array<Colour3, 3>;

Colour3 times(const Matrix3& matrix, const Colour3& vector) {
  Colour3 product{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t k = 0; k < 3; ++k) product[i] += matrix[i][k] * vector[k];
  }
  return product;
}

/// The light of "#rrggbb", by the transfer function of sRGB.
Colour3 light_of(const std::string& hex) {
  Colour3 light{};
  for (std::size_t i = 0; i < 3; ++i) {
    const double value = std::stoi(hex.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
    light[i] = value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
  }
  return light;
}

/// A colour in Oklab (Ottosson 2020), times 100: distances of 2 are just seen.
Colour3 oklab_of(const Colour3& light) {
  Colour3 cones = times({{{0.4122214708, 0.5363325363, 0.0514459929},
                          {0.2119034982, 0.6806995451, 0.1073969566},
                          {0.0883024619, 0.2817188376, 0.6299787005}}},
                        light);
  for (double& cone : cones) cone = std::cbrt(std::max(cone, 0.0));
  Colour3 lab = times({{{0.2104542553, 0.7936177850, -0.0040720468},
                        {1.9779984951, -2.4285922050, 0.4505937099},
                        {0.0259040371, 0.7827717662, -0.8086757660}}},
                      cones);
  for (double& part : lab) part *= 100;
  return lab;
}

/// Normal sight; then protanopia, deuteranopia and tritanopia as Machado et al. (2009) simulate
/// them, of light.
const std::array<Matrix3, 4>& sights() {
  static const std::array<Matrix3, 4> all{{{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
                                           {{{0.152286, 1.052583, -0.204868},
                                             {0.114503, 0.786281, 0.099216},
                                             {-0.003882, -0.048116, 1.051998}}},
                                           {{{0.367322, 0.860646, -0.227968},
                                             {0.280085, 0.672501, 0.047413},
                                             {-0.011820, 0.042940, 0.968881}}},
                                           {{{1.255528, -0.076749, -0.178779},
                                             {-0.078411, 0.930809, 0.147602},
                                             {0.004733, 0.691367, 0.303900}}}}};
  return all;
}

/// The distance to the sight that distinguishes them least.
double least_distance(const std::string& a, const std::string& b) {
  double least = 1e9;
  for (const Matrix3& sight : sights()) {
    const Colour3 x = oklab_of(times(sight, light_of(a))), y = oklab_of(times(sight, light_of(b)));
    least = std::min(least, std::hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2]));
  }
  return least;
}

double luminance(const std::string& hex) {
  const Colour3 light = light_of(hex);
  return 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2];
}

/// The contrast of WCAG 2.
double contrast(const std::string& a, const std::string& b) {
  const double x = luminance(a) + 0.05, y = luminance(b) + 0.05;
  return std::max(x, y) / std::min(x, y);
}

}  // namespace

TEST_CASE("any two mechanisms differ in colour, for colour-blind readers, too", "[reports]") {
  constexpr double least_light = 5.2, least_dark = 4.6;  // of the 30 entries as they are
  const auto& table = table_of_looks();
  for (std::size_t i = 0; i < table.size(); ++i) {
    for (std::size_t k = i + 1; k < table.size(); ++k) {
      INFO(table[i].first << " and " << table[k].first);
      CHECK(least_distance(table[i].second.colour, table[k].second.colour) >= least_light);
      CHECK(least_distance(table[i].second.dark, table[k].second.dark) >= least_dark);
    }
  }
}

TEST_CASE("every colour of a mechanism stands out from the page's backgrounds", "[reports]") {
  for (const auto& [name, look] : table_of_looks()) {
    INFO(name);
    CHECK(contrast(look.colour, "#ffffff") >= 3);  // WCAG 2.1, 1.4.11: graphical objects
    CHECK(contrast(look.dark, "#14171b") >= 3);
    CHECK(dark_colours().at(look.colour) == look.dark);
  }
}

TEST_CASE("a mechanism looks the same in every result, and lines of one mechanism differ",
          "[reports]") {
  const Palette one{"latte", "softmax"}, other{"window", "softmax", "latte"};
  CHECK(one.of("latte").colour == other.of("latte").colour);
  CHECK(one.first() == "latte");
  Palette variants;
  std::set<std::pair<std::string, std::vector<int>>> looks;
  for (const char* label : {"latte, 1", "latte, 2", "latte, 3", "latte, 4", "latte, 5"}) {
    variants.add(label, "latte");
    looks.insert({variants.of(label).colour, variants.of(label).dash});
  }
  CHECK(looks.size() == 5);
  CHECK(variants.of("latte, 1").colour == one.of("latte").colour);
  Palette unknown{"mine", "yours"};
  CHECK(unknown.of("mine").colour != unknown.of("yours").colour);
}

TEST_CASE("a series that is called as its mechanism is has that one's look wherever it stands",
          "[reports]") {
  test::CellBuilder naive("softmax, naive"), plain("softmax");
  naive.mechanism = plain.mechanism = "softmax";
  naive.length(256).took(2);
  plain.length(256).took(1);
  const auto result = test::result_of({naive, plain});
  const Palette palette(panels(result));
  CHECK(palette.of("softmax").colour == table_of_looks().front().second.colour);
  CHECK(palette.of("softmax").dash.empty());
  CHECK_FALSE(palette.of("softmax, naive").dash.empty());  // black has no darker shade
  CHECK(palette.first() == "softmax, naive");
}

TEST_CASE("families stand together, each as it was given, and last what the table lacks",
          "[reports]") {
  Palette palette{"mine", "delta", "latte", "window", "softmax"};
  palette.add("latte, wide", "latte");
  CHECK(palette.by_family({"mine", "latte, wide", "delta", "latte", "window", "stranger",
                           "softmax"}) == std::vector<std::string>{"softmax", "window",
                                                                   "latte, wide", "latte", "delta",
                                                                   "mine", "stranger"});
}
