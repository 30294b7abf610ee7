#include "tasks/data/lra/pathfinder.hpp"

#include <array>
#include <tuple>

#include "tasks/data/lra/pathfinder_painting.hpp"

namespace attnbench::tasks::data::lra {
namespace {

constexpr int distractor_attempts = 5;

}  // namespace

struct PathfinderPainter::Prepared {
  tasks::data::lra::pathfinder::Recipe recipe;
  int dashes;
  std::vector<tasks::data::lra::pathfinder::Geometry> geometries;  ///< one for each margin
  Canvas marker;

  int distractor_length() const { return dashes / 3; }
  int distractors() const { return recipe.distractor_dashes / distractor_length(); }
};

PathfinderPainter::PathfinderPainter(const PathfinderRules& rules) {
  const tasks::data::lra::pathfinder::Recipe& recipe =
      tasks::data::lra::pathfinder::recipe_of(rules.side);
  auto prepared = std::make_unique<Prepared>(
      Prepared{recipe,
               tasks::data::lra::pathfinder::dashes_of(rules.difficulty),
               {},
               tasks::data::lra::pathfinder::marker_of(recipe.marker_radius)});
  for (const int margin : recipe.margins) {
    prepared->geometries.emplace_back(recipe, margin, rules.compat);
  }
  prepared_ = std::move(prepared);
}

PathfinderPainter::~PathfinderPainter() = default;

PathfinderImage PathfinderPainter::paint(Random& draws) const {
  const Prepared& with = *prepared_;
  PathfinderImage image;
  image.label = static_cast<int>(draws.below(2));
  const tasks::data::lra::pathfinder::Geometry& geometry =
      with.geometries[draws.below(static_cast<std::uint32_t>(with.geometries.size()))];
  tasks::data::lra::pathfinder::Painting painting(with.recipe, geometry, draws);
  std::array<tasks::data::lra::pathfinder::Path, 2> paths;
  do {
    ++image.attempts;
  } while (!painting.paths(with.dashes, paths));
  for (int i = 0; i < with.distractors(); ++i) {
    for (int attempt = 0; attempt < distractor_attempts; ++attempt) {
      if (!painting.distractor(with.distractor_length())) continue;
      ++image.distractors;
      break;
    }
  }
  const std::size_t from = draws.below(2);
  const std::size_t to = image.label == 1 ? from : 1 - from;
  image.pixels = painting.render(with.marker, paths[from].origin, paths[to].tip);
  return image;
}

PathfinderGenerator::PathfinderGenerator(const PathfinderRules& rules)
    : rules_(rules), painter_(rules), description_(pathfinder_description(rules.side)) {
  if (rules.rows.total() == 0) throw UsageError("lra.pathfinder: no rows are asked for");
  description_.set_generated({{"generator", "pathfinder 1"},
                              {"source", "generated"},
                              {"side", rules.side},
                              {"difficulty", rules.difficulty},
                              {"compat", rules.compat},
                              {"train_examples", rules.rows.train},
                              {"validation_examples", rules.rows.validation},
                              {"test_examples", rules.rows.test},
                              {"data_seed", rules.seed}});
}

std::uint64_t PathfinderGenerator::cache_bytes() const {
  return rows() * (static_cast<std::uint64_t>(rules_.side * rules_.side) + 24) + 65'536;
}

PathfinderImage PathfinderGenerator::image(std::uint64_t number) const {
  const auto [split, order] = rules_.rows.place(number);
  Random draws(key_of({rules_.seed, 0x70617468 /* "path" */, static_cast<std::uint64_t>(split)}),
               order);
  return painter_.paint(draws);
}

void PathfinderGenerator::make(std::uint64_t number, Row& row) {
  std::tie(row.split, row.order) = rules_.rows.place(number);
  const PathfinderImage made = image(number);
  row.tokens.assign(made.pixels.begin(), made.pixels.end());
  row.second.clear();
  row.label = made.label;
}

DataDescription pathfinder_description(int side) {
  DataDescription description;
  description.task = "lra.pathfinder";
  description.classes = {"apart", "connected"};
  description.vocabulary = 256;
  description.width = side;
  return description;
}

std::string pathfinder_folder(const std::string& difficulty) {
  const int dashes = tasks::data::lra::pathfinder::dashes_of(difficulty);
  return dashes == 6 ? "curv_baseline" : "curv_contour_length_" + std::to_string(dashes);
}

}  // namespace attnbench::tasks::data::lra
