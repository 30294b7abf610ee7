#include "tasks/mqar/settings.hpp"

#include "tasks/training/draws.hpp"

namespace attnbench::tasks::mqar {
namespace {

Option count(const char* name, std::int64_t fallback, const char* meaning, double least = 1) {
  return {name, OptionType::integer, fallback, meaning, least, {}, {}};
}

Option text(const char* name, const char* fallback, const char* meaning,
            std::vector<std::string> choices = {}) {
  return {name, OptionType::text, std::string(fallback), meaning, {}, {}, std::move(choices)};
}

/// The mix that was said, else the shapes of `like` with so many examples each.
std::vector<Segment> mix_or(const std::string& said, std::vector<Segment> like,
                            std::int64_t examples) {
  if (!said.empty()) return segments_from(said);
  for (Segment& segment : like) segment.examples = examples;
  return like;
}

}  // namespace

std::vector<Option> data_settings() {
  return {
      count("vocabulary", 8192, "different tokens: the lower half keys, the upper half values", 4),
      count("length", 64, "tokens T, where train_mix says nothing else"),
      count("pairs", 4, "pairs of key and value in a sequence, each asked once; as length"),
      count("train_examples", 100000, "different examples to learn from; as length"),
      count("validation_examples", 1000,
            "of each shape trained on: learning rates and stopping are chosen by them"),
      count("test_examples", 3000, "of each shape trained on, where test_mix says nothing else"),
      text("train_mix", "", "segments LENGTHxPAIRS:EXAMPLES, … in place of the three above"),
      text("validation_mix", "", "likewise, in place of the shapes trained on"),
      text("test_mix", "", "likewise; longer ones than those trained on are extrapolation"),
      text("variant", "plain", "what has to be recalled",
           {"plain", "forgetting", "compositional", "stacked"}),
      text("filler", "random", "what fills the positions between questions", {"random", "zeros"}),
      {"power",
       OptionType::number,
       0.01,
       "a in the weight g^(a - 1) of the g-th slot for a question: 1 = all alike",
       0.0,
       {},
       {}},
      count("updates", 4, "keys that get a new value, for the variant forgetting", 0)};
}

Plan plan_from(const Options& settings, std::uint64_t run_seed) {
  Plan plan;
  plan.recall.variant = variant_from(settings.text("variant"));
  plan.recall.filler = filler_from(settings.text("filler"));
  plan.recall.vocabulary = settings.integer("vocabulary");
  plan.recall.power = settings.number("power");
  plan.recall.updates = settings.integer("updates");
  const Segment one{settings.integer("length"), settings.integer("pairs"), 0};
  plan.train = mix_or(settings.text("train_mix"), {one}, settings.integer("train_examples"));
  plan.validation =
      mix_or(settings.text("validation_mix"), plan.train, settings.integer("validation_examples"));
  plan.test = mix_or(settings.text("test_mix"), plan.train, settings.integer("test_examples"));
  plan.seed =
      learning::key_of({run_seed, static_cast<std::uint64_t>(settings.integer("data_seed"))});
  return plan;
}

}  // namespace attnbench::tasks::mqar
