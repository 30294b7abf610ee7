#include "tasks/data/lra/pathfinder.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>

#include "tasks/data/cache.hpp"
#include "tasks/data/lra/png.hpp"
#include "tasks/data/prepare.hpp"
#include "tests/tasks/data/support.hpp"

using namespace attnbench;
using namespace attnbench::tasks::data;
using namespace attnbench::tasks::data::lra;
using namespace attnbench::test;

namespace {

struct Mean {
  double sum = 0, squares = 0, count = 0;
  void add(double value) {
    sum += value;
    squares += value * value;
    ++count;
  }
  double mean() const { return sum / count; }
  double deviation() const { return std::sqrt(squares / count - mean() * mean()); }
  double error() const { return deviation() / std::sqrt(count); }
};

struct Statistics {
  Mean level, distractors, attempts, bright;
  double zeros = 0;                        ///< share
  std::array<Mean, 2> intensity, nonzero;  ///< of an image, by label
};

Statistics statistics_of(const PathfinderRules& rules) {
  const PathfinderGenerator generator(rules);
  Statistics all;
  for (std::uint64_t number = 0; number < generator.rows(); ++number) {
    const PathfinderImage image = generator.image(number);
    double sum = 0, nonzero = 0, bright = 0;
    for (const std::uint8_t level : image.pixels) {
      all.level.add(level);
      sum += level;
      nonzero += level > 0;
      bright += level >= 200;
    }
    const auto label = static_cast<std::size_t>(image.label);
    all.intensity[label].add(sum);
    all.nonzero[label].add(nonzero);
    all.bright.add(bright);
    all.distractors.add(image.distractors);
    all.attempts.add(static_cast<double>(image.attempts));
  }
  all.zeros = 1 - (all.nonzero[0].sum + all.nonzero[1].sum) / all.level.count;
  std::cout << "Pathfinder-" << rules.side << " " << rules.difficulty
            << (rules.compat ? "" : ", every orientation") << ", " << generator.rows()
            << " images: zeros " << 100 * all.zeros << " %, mean " << all.level.mean()
            << ", deviation " << all.level.deviation() << ", distractors " << all.distractors.mean()
            << ", levels of 200 and more " << all.bright.mean() << ", attempts "
            << all.attempts.mean() << "\n";
  return all;
}

PathfinderRules pathfinder_rules(int side, const char* difficulty, std::uint32_t images) {
  PathfinderRules rules;
  rules.side = side;
  rules.difficulty = difficulty;
  rules.rows = {images, 0, 0};
  return rules;
}

}  // namespace

// The figures are those of the original generator.
TEST_CASE("hard Pathfinder images of 32 pixels have the statistics of the original",
          "[lra][pathfinder][statistics]") {
  const Statistics found = statistics_of(pathfinder_rules(32, "hard", 5'000));
  CHECK(found.zeros == Approx(0.659).margin(0.01));
  CHECK(found.level.mean() == Approx(20.2).margin(0.7));
  CHECK(found.level.deviation() == Approx(51.1).margin(0.7));
  CHECK(found.distractors.mean() == Approx(1.16).margin(0.1));
  // No shortcut: what can be counted tells nothing of the label.
  for (const auto& by_label : {found.intensity, found.nonzero}) {
    const double error = std::hypot(by_label[0].error(), by_label[1].error());
    CHECK(std::abs(by_label[0].mean() - by_label[1].mean()) < 2 * error);
  }
  CHECK(std::abs(found.intensity[0].count / 5'000 - 0.5) < 3 * 0.5 / std::sqrt(5'000));
}

TEST_CASE("the other difficulties and sizes are those of the original, too",
          "[lra][pathfinder][statistics]") {
  const Statistics easy = statistics_of(pathfinder_rules(32, "easy", 2'000));
  CHECK(easy.zeros == Approx(0.772).margin(0.01));
  CHECK(easy.level.mean() == Approx(13.0).margin(0.7));
  CHECK(easy.distractors.mean() == Approx(3.3).margin(0.2));
  const Statistics middle = statistics_of(pathfinder_rules(32, "intermediate", 2'000));
  CHECK(middle.zeros == Approx(0.733).margin(0.01));
  CHECK(middle.distractors.mean() == Approx(1.8).margin(0.15));
  const Statistics large = statistics_of(pathfinder_rules(256, "hard", 60));
  CHECK(large.zeros == Approx(0.961).margin(0.01));
  CHECK(large.distractors.mean() > 6.8);
}

TEST_CASE("without the original's quirk every orientation is there",
          "[lra][pathfinder][statistics]") {
  PathfinderRules rules = pathfinder_rules(32, "hard", 1'000);
  rules.compat = false;
  const Statistics found = statistics_of(rules);
  CHECK(found.zeros == Approx(0.549).margin(0.015));
  CHECK(found.level.mean() == Approx(27.7).margin(0.8));
  CHECK(found.distractors.mean() == Approx(4.65).margin(0.1));
}

TEST_CASE("an image is stretched to all levels and made alone", "[lra][pathfinder]") {
  PathfinderRules rules = pathfinder_rules(32, "hard", 40);
  rules.rows.validation = 40;
  const PathfinderGenerator generator(rules);
  const PathfinderGenerator again(rules);
  for (std::uint64_t number = 0; number < 40; ++number) {
    const PathfinderImage image = generator.image(number);
    CHECK(image.pixels.size() == 32 * 32);
    CHECK(image.pixels[0] == 0);
    CHECK(*std::max_element(image.pixels.begin(), image.pixels.end()) == 255);
    CHECK(*std::min_element(image.pixels.begin(), image.pixels.end()) == 0);
    CHECK(image.pixels != generator.image(number + 40).pixels);  // another split
  }
  CHECK(again.image(17).pixels == generator.image(17).pixels);
  rules.seed = 1;
  CHECK(PathfinderGenerator(rules).image(17).pixels != generator.image(17).pixels);
}

TEST_CASE("Pathfinder rules that are not offered are refused", "[lra][pathfinder]") {
  CHECK(says(refusal([] { PathfinderGenerator(pathfinder_rules(48, "hard", 1)); }),
             {"side is 48", "32"}));
  CHECK(says(refusal([] { PathfinderGenerator(pathfinder_rules(32, "harder", 1)); }),
             {"difficulty is harder", "intermediate"}));
  CHECK(says(refusal([] { PathfinderGenerator(pathfinder_rules(32, "hard", 0)); }), {"no rows"}));
}
