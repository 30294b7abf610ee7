// Where questions are asked and how far back their answers stand, against the reference's numbers.
#include <algorithm>
#include <cmath>
#include <map>

#include "tasks/mqar/recall.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::tasks;
using namespace attnbench::tasks::mqar;

namespace {

constexpr std::uint64_t statistics_seed = 11;

/// Slot of each pair's question, in the order of the pairs, over many examples.
struct Statistics {
  std::map<std::int64_t, double> used;  ///< share of examples with a question in the slot
  std::vector<double> mean_slot;        ///< of the i-th pair's question
  std::vector<double> first_slot;       ///< share of first pairs' questions there
  std::vector<std::int64_t> distances;

  double within(std::int64_t window) const {
    const auto near = std::count_if(distances.begin(), distances.end(),
                                    [&](std::int64_t distance) { return distance <= window; });
    return static_cast<double>(near) / static_cast<double>(distances.size());
  }
  double mean_distance() const {
    double sum = 0;
    for (const std::int64_t distance : distances) sum += static_cast<double>(distance);
    return sum / static_cast<double>(distances.size());
  }
};

Statistics statistics_of(const RecallSegment& shape, std::int64_t examples) {
  Recall recall;
  recall.filler = Filler::zeros;
  Statistics found;
  const auto pairs = static_cast<std::size_t>(shape.pairs);
  const std::int64_t context = 2 * shape.pairs;
  found.mean_slot.assign(pairs, 0);
  found.first_slot.assign(static_cast<std::size_t>((shape.length - context) / 2), 0);
  const double one = 1.0 / static_cast<double>(examples);
  for (std::int64_t i = 0; i < examples; ++i) {
    const auto number = static_cast<std::uint64_t>(i);
    const Example example = make_example(recall, shape, statistics_seed, Split::train, 0, number);
    for (const Question& question : example.questions) {
      const std::int64_t slot = (question.position - context) / 2;
      const auto pair = static_cast<std::size_t>((question.position - question.distance - 1) / 2);
      found.used[slot] += one;
      found.mean_slot[pair] += static_cast<double>(slot) * one;
      if (pair == 0) found.first_slot[static_cast<std::size_t>(slot)] += one;
      found.distances.push_back(question.distance);
    }
  }
  return found;
}

}  // namespace

TEST_CASE("slots are asked as often as the reference's", "[mqar]") {
  struct Golden {
    RecallSegment shape;
    double first;  ///< probability that the first pair is asked in the first slot
    std::vector<std::pair<std::int64_t, double>> used;
    double mean_first, mean_second, mean_last;
    double mean_distance;
  };
  // Counted in 1e5 to 1e6 draws of slots by the paper's power law: errors are at most 0.002.
  const std::vector<Golden> table{
      {{64, 4, 0},
       .25106,
       {{0, .722}, {1, .477}, {2, .348}, {3, .273}, {7, .146}, {15, .075}, {27, .044}},
       6.20,
       6.84,
       8.08,
       18.3},
      {{128, 8, 0},
       .21307,
       {{0, .894}, {1, .690}, {2, .545}, {3, .446}, {7, .255}, {15, .136}, {55, .041}},
       11.31,
       12.16,
       16.88,
       36.3},
      {{256, 16, 0},
       .18475,
       {{0, .983}, {1, .888}, {2, .772}, {3, .673}, {7, .432}, {15, .245}, {111, .040}},
       20.49,
       21.71,
       34.67,
       72.4},
      {{512, 64, 0},
       .16730,
       {{0, 1}, {1, 1}, {2, 1}, {3, .998}, {7, .956}, {15, .796}, {191, .126}},
       32.7,
       33.9,
       81.0,
       186.7}};
  for (const Golden& golden : table) {
    const std::int64_t examples = golden.shape.length > 256 ? 20000 : 40000;
    INFO(golden.shape.length << "x" << golden.shape.pairs);
    const Statistics found = statistics_of(golden.shape, examples);
    // Four standard errors of ours, and the table's own error and rounding.
    const auto bar = [&](double share) {
      return 4 * std::sqrt(share * (1 - share) / static_cast<double>(examples)) + 0.0025;
    };
    CHECK(std::abs(found.first_slot[0] - golden.first) < bar(golden.first));
    for (const auto& [slot, share] : golden.used) {
      INFO("slot " << slot);
      CHECK(std::abs(found.used.at(slot) - share) < bar(share));
    }
    // A slot's standard deviation is below a third of the slots.
    const double slots = static_cast<double>(golden.shape.length) / 2;
    const double mean_bar = 4 * slots / 3 / std::sqrt(static_cast<double>(examples)) + 0.06;
    CHECK(std::abs(found.mean_slot[0] - golden.mean_first) < mean_bar);
    CHECK(std::abs(found.mean_slot[1] - golden.mean_second) < mean_bar);
    CHECK(std::abs(found.mean_slot.back() - golden.mean_last) < mean_bar);
    CHECK(std::abs(found.mean_distance() - golden.mean_distance) < 0.01 * golden.mean_distance);
  }
}

TEST_CASE("distances of answers are distributed as the reference's", "[mqar]") {
  // The same draws: the share of questions whose answer is at most w tokens before them.
  const std::vector<std::int64_t> windows{8, 16, 32, 64, 128, 256, 512};
  const std::vector<std::pair<RecallSegment, std::vector<double>>> table{
      {{64, 4, 0}, {.331, .581, .806, 1, 1, 1, 1}},
      {{64, 8, 0}, {.083, .394, .758, 1, 1, 1, 1}},
      {{64, 16, 0}, {.001, .038, .593, 1, 1, 1, 1}},
      {{128, 8, 0}, {.078, .323, .590, .812, 1, 1, 1}},
      {{128, 32, 0}, {0, 0, .029, .571, 1, 1, 1}},
      {{256, 16, 0}, {.012, .066, .320, .596, .816, 1, 1}},
      {{256, 32, 0}, {.001, .007, .059, .375, .759, 1, 1}},
      {{256, 64, 0}, {0, 0, 0, .024, .561, 1, 1}},
      {{512, 32, 0}, {.001, .009, .059, .315, .599, .817, 1}},
      {{512, 64, 0}, {0, 0, .006, .055, .370, .759, 1}},
      {{512, 128, 0}, {0, 0, 0, 0, .022, .554, 1}},
      {{1024, 64, 0}, {0, .001, .008, .055, .313, .601, .819}},
      {{1024, 256, 0}, {0, 0, 0, 0, 0, .021, .552}}};
  for (const auto& [shape, shares] : table) {
    const std::int64_t examples = std::max<std::int64_t>(2000, 60000 / shape.pairs);
    const Statistics found = statistics_of(shape, examples);
    for (std::size_t i = 0; i < windows.size(); ++i) {
      INFO(shape.length << "x" << shape.pairs << ", window " << windows[i]);
      // Questions of one example are not independent; as if they were, four standard errors.
      const double share = shares[i];
      const double bar =
          4 * std::sqrt(share * (1 - share) / static_cast<double>(examples * shape.pairs)) + 0.0035;
      CHECK(std::abs(found.within(windows[i]) - share) < bar);
    }
  }
}
