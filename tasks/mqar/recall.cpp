#include "tasks/mqar/recall.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/random.hpp"
#include "tasks/settings.hpp"

namespace attnbench::tasks::mqar {
namespace {

constexpr Names<Variant, 4> variants = {{"plain", Variant::plain},
                                        {"forgetting", Variant::forgetting},
                                        {"compositional", Variant::compositional},
                                        {"stacked", Variant::stacked}};
constexpr Names<Filler, 2> fillers = {{"zeros", Filler::zeros}, {"random", Filler::random}};

using Tokens = std::vector<std::int64_t>;

/// `count` different slots, drawn one by one by their weights among those left. Exponential clocks
/// give that order: slot g has the rate g^(power - 1).
Tokens drawn_slots(Random& random, std::int64_t slots, std::int64_t count, double power) {
  std::vector<std::pair<double, std::int64_t>> rings;
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    const double weight = std::pow(static_cast<double>(slot + 1), power - 1);
    rings.emplace_back(-std::log(random.uniform()) / weight, slot);
  }
  std::partial_sort(rings.begin(), rings.begin() + count, rings.end());
  Tokens chosen;
  for (std::int64_t i = 0; i < count; ++i) {
    chosen.push_back(rings[static_cast<std::size_t>(i)].second);
  }
  return chosen;
}

std::int64_t third_of(std::int64_t vocabulary) { return vocabulary / 3; }

std::int64_t square_root(std::int64_t number) {
  const auto root = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(number))));
  return root * root == number ? root : 0;
}

/// Builds one example.
class ExampleBuilder {
 public:
  ExampleBuilder(const Recall& recall, const RecallSegment& shape, Random& random)
      : recall_(recall), shape_(shape), random_(random) {
    example_.tokens.assign(static_cast<std::size_t>(shape.length * tokens_per_position(recall)), 0);
    used_.assign(example_.tokens.size(), false);
  }

  Example pairs(std::int64_t updates) {
    const std::int64_t half = recall_.vocabulary / 2;
    const std::int64_t n = shape_.pairs;
    Tokens keys = random_.distinct(1, half, n);
    const Tokens values = random_.distinct(half, recall_.vocabulary, n + updates);
    Tokens again(static_cast<std::size_t>(n));
    std::iota(again.begin(), again.end(), 0);
    if (updates > 0) random_.shuffle(again);
    Tokens answers(static_cast<std::size_t>(n));
    Tokens places(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n + updates; ++i) {
      const auto key = static_cast<std::size_t>(i < n ? i : again[static_cast<std::size_t>(i - n)]);
      put(2 * i, keys[key]);
      put(2 * i + 1, values[static_cast<std::size_t>(i)]);
      answers[key] = values[static_cast<std::size_t>(i)];
      places[key] = 2 * i + 1;
    }
    const std::int64_t context = 2 * (n + updates);
    const Tokens slots = drawn_slots(random_, (shape_.length - context) / 2, n, recall_.power);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const std::int64_t position = context + 2 * slots[i];
      put(position, keys[i]);
      ask(position, answers[i], places[i]);
    }
    fill(context);
    example_.candidates = values;
    return finished();
  }

  Example compositions() {
    const std::int64_t third = third_of(recall_.vocabulary);
    const std::int64_t n = shape_.pairs;
    const std::int64_t side = square_root(n);
    const Tokens first = random_.distinct(1, third, side);
    const Tokens second = random_.distinct(third, 2 * third, side);
    const Tokens values = random_.distinct(2 * third, recall_.vocabulary, n);
    Tokens order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    random_.shuffle(order);
    const Tokens slots = drawn_slots(random_, (shape_.length - 3 * n) / 3, n, recall_.power);
    for (std::int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const std::int64_t one = first[static_cast<std::size_t>(order[at] / side)];
      const std::int64_t two = second[static_cast<std::size_t>(order[at] % side)];
      put(3 * i, one);
      put(3 * i + 1, two);
      put(3 * i + 2, values[at]);
      const std::int64_t position = 3 * n + 3 * slots[at];
      put(position, one);
      put(position + 1, two);
      ask(position + 1, values[at], 3 * i + 2);
    }
    fill(3 * n);
    example_.candidates = values;
    return finished();
  }

  Example stack() {
    const std::int64_t half = recall_.vocabulary / 2;
    const std::int64_t n = shape_.pairs;
    const Tokens keys = random_.distinct(1, half, n);
    const Tokens values = random_.distinct(half, recall_.vocabulary, n);
    Tokens order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    random_.shuffle(order);
    for (std::int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const auto asked = static_cast<std::size_t>(order[at]);
      put(2 * i, keys[at]);
      put(2 * i + 1, values[at]);
      put(2 * (n + i), keys[asked]);
      ask(n + i, values[asked], order[at]);
    }
    example_.candidates = values;
    return finished();
  }

 private:
  void put(std::int64_t place, std::int64_t token) {
    example_.tokens[static_cast<std::size_t>(place)] = token;
    used_[static_cast<std::size_t>(place)] = true;
  }

  void ask(std::int64_t position, std::int64_t answer, std::int64_t stands_at) {
    example_.questions.push_back({position, answer, position - stands_at});
  }

  void fill(std::int64_t from) {
    if (recall_.filler == Filler::zeros) return;
    for (auto i = static_cast<std::size_t>(from); i < example_.tokens.size(); ++i) {
      if (!used_[i]) example_.tokens[i] = random_.below(recall_.vocabulary);
    }
  }

  Example finished() {
    std::sort(example_.questions.begin(), example_.questions.end(),
              [](const Question& a, const Question& b) { return a.position < b.position; });
    return std::move(example_);
  }

  const Recall& recall_;
  const RecallSegment& shape_;
  Random& random_;
  Example example_;
  std::vector<bool> used_;
};

}  // namespace

const char* to_string(Variant variant) { return name_of(variants, variant); }
const char* to_string(Filler filler) { return name_of(fillers, filler); }
std::vector<std::string> variant_names() { return all_names(variants); }
Variant variant_from(const std::string& name) { return value_named("variant", variants, name); }
Filler filler_from(const std::string& name) { return value_named("filler", fillers, name); }

std::int64_t tokens_per_position(const Recall& recall) {
  return recall.variant == Variant::stacked ? 2 : 1;
}

void check(const Recall& recall, const RecallSegment& segment) {
  const auto refuse = [&](const std::string& rule) {
    throw UsageError("length " + std::to_string(segment.length) + " with " +
                     std::to_string(segment.pairs) + " pairs of the variant " +
                     to_string(recall.variant) + ": " + rule);
  };
  if (segment.pairs < 1) refuse("at least one pair is needed");
  if (recall.vocabulary <= segment.length) {
    refuse("the vocabulary, " + std::to_string(recall.vocabulary) +
           ", must be greater than the length");
  }
  if (recall.vocabulary > std::numeric_limits<std::int32_t>::max()) {
    refuse("the vocabulary, " + std::to_string(recall.vocabulary) + ", must be below 2^31");
  }
  const std::int64_t n = segment.pairs;
  switch (recall.variant) {
    case Variant::plain:
      if (segment.length % 2 != 0) refuse("the length must be even");
      if (4 * n > segment.length) refuse("four positions are needed for each pair");
      return;
    case Variant::forgetting:
      if (segment.length % 2 != 0) refuse("the length must be even");
      if (recall.updates > n) {
        refuse(std::to_string(recall.updates) + " updates need as many pairs");
      }
      if (4 * n + 2 * recall.updates > segment.length) {
        refuse("four positions are needed for each pair, and two for each of the " +
               std::to_string(recall.updates) + " updates");
      }
      return;
    case Variant::compositional:
      if (square_root(n) == 0) refuse("their number must be a square");
      if (6 * n > segment.length) refuse("six positions are needed for each");
      return;
    case Variant::stacked:
      if (segment.length != 2 * n) refuse("the length must be twice the number of pairs");
      return;
  }
}

Example make_example(const Recall& recall, const RecallSegment& shape, std::uint64_t seed,
                     Split split, std::uint64_t segment, std::uint64_t example) {
  Random random(key_of({seed, static_cast<std::uint64_t>(split), segment}), example);
  ExampleBuilder builder(recall, shape, random);
  switch (recall.variant) {
    case Variant::plain:
      return builder.pairs(0);
    case Variant::forgetting:
      return builder.pairs(recall.updates);
    case Variant::compositional:
      return builder.compositions();
    case Variant::stacked:
      return builder.stack();
  }
  return {};
}

}  // namespace attnbench::tasks::mqar
