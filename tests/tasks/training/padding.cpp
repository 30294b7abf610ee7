// A model's logits of classes do not depend on how far its sequences are padded.
#include <map>
#include <string>

#include "attention/algorithms/tokens/token_mix.hpp"
#include "tests/tasks/training/model_of.hpp"
#include "tests/tasks/training/synthetic_classes.hpp"

using namespace attnbench;
using namespace attnbench::test;

namespace {

constexpr std::int64_t real_most = 20;
constexpr std::int64_t padded = 33;

using Overrides = std::map<std::string, OptionValue>;

struct Case {
  std::string mechanism;
  Overrides said;
};

/// Mixes that take a mask in different ways, and what comes before them in both directions. That
/// every mechanism leaves padding out is the conformance kit's.
std::vector<Case> bidirectional_cases() {
  const auto word = [](const char* text) { return std::string(text); };
  std::vector<Case> cases{
      {"softmax", {}},
      {"latte", {}},
      {"linformer", {}},
      {"window", {{"window", Window{3, 2}}}},
      {"rg_lru", {{"directions", word("both")}}},
      {"rg_lru", {{"directions", word("both")}, {"first_input", word("plain")}}}};
  for (const char* before : {"conv", "rg_lru"}) {
    for (const char* directions : {"forward", "both"}) {
      cases.push_back(
          {"macchiato",
           {{"window", Window{3, 2}}, {"before", word(before)}, {"directions", word(directions)}}});
    }
  }
  return cases;
}

ModelOptions four_classes(Pooling pooling) {
  ModelOptions options;
  options.vocabulary = SyntheticClasses::vocabulary;
  options.positions = Positions::learned;
  options.projection_bias = true;
  options.classifier.classes = 4;
  options.classifier.pooling = pooling;
  return options;
}

/// For up to 33 tokens, so that linformer's projection covers them all.
std::shared_ptr<Model> classifier_of(const Case& one, Dtype dtype, const ModelOptions& options) {
  Problem problem = small(Pattern::bidirectional);
  problem.dtype = dtype;
  problem.length = problem.key_length = mix_length(options, padded);
  const Entry& entry = registry().entry(one.mechanism);
  const Options chosen = entry.derive(Options::resolve(entry.options, one.said), problem);
  const Support support = entry.supports(chosen, problem);
  INFO(support.reason);
  REQUIRE(support);
  const Implementation& implementation =
      *Registry::choose(entry, "auto", chosen, problem).implementation;
  const auto make = [&] { return entry.make(chosen, problem); };
  return std::make_shared<Model>(everywhere(make, implementation), options, 1);
}

struct Sequences {
  at::Tensor tokens, mask;
};

/// Six examples of 6 to 20 tokens, of which one fills its row, padded to `length`.
Sequences six(std::int64_t length) {
  Batch batch = SyntheticClasses().batch(Split::train, 0, {0, 1, 2, 3, 4, 5});
  batch.lengths[0] = real_most;
  batch.tokens = at::constant_pad_nd(batch.tokens, {0, length - real_most}, 7);
  return {batch.tokens, key_mask_of(batch)};
}

double change(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

}  // namespace

TEST_CASE("padding does not change the classes", "[padding]") {
  const at::NoGradGuard no_grad;
  const Sequences few = six(real_most);
  const Sequences more = six(padded);
  for (const Case& one : bidirectional_cases()) {
    for (const Pooling pooling : {Pooling::mean, Pooling::last, Pooling::cls}) {
      std::string words = one.mechanism + " " + to_string(pooling);
      for (const auto& [name, value] : one.said) words += " " + name + "=" + to_string(value);
      INFO(words);
      for (const Dtype dtype : {Dtype::float32, Dtype::float64}) {
        const auto model = classifier_of(one, dtype, four_classes(pooling));
        const at::Tensor logits = model->forward(few.tokens, few.mask);
        // Relative to the largest logit: another length takes other orders of sums.
        CHECK(change(model->forward(more.tokens, more.mask), logits) <=
              (dtype == Dtype::float32 ? 1e-6 : 1e-12) * logits.abs().max().item<double>());
        // A cls token sees no padding through two narrow windows.
        if (one.mechanism == "window" && pooling == Pooling::cls) continue;
        // Mutant: the mask is not handed on to the mixes, only to the pooling.
        const at::Tensor unmasked = model->features(more.tokens);
        const at::Tensor unmasked_few = model->features(few.tokens);
        CHECK(change(model->classified(unmasked, more.mask),
                     model->classified(unmasked_few, few.mask)) > 1e-5);
      }
    }
  }
}

TEST_CASE("padding would show in pooling over the padded length", "[padding]") {
  const at::NoGradGuard no_grad;
  const Case latte{"latte", {}};
  const auto model = classifier_of(latte, Dtype::float64, four_classes(Pooling::mean_padded));
  const Sequences few = six(real_most);
  const Sequences more = six(padded);
  CHECK(change(model->forward(more.tokens, more.mask), model->forward(few.tokens, few.mask)) >
        1e-3);
}

TEST_CASE("a reversed recurrence begins at the last real token", "[padding]") {
  const at::NoGradGuard no_grad;
  Problem problem = small(Pattern::bidirectional);
  problem.length = problem.key_length = padded;
  const Sequences more = six(padded);
  const at::Tensor x = at::randn({6, padded, 8}, at::kDouble);
  for (const bool recurrent : {false, true}) {
    const auto make = [&] {
      return recurrent ? recurrent_mix(problem, 8) : short_convolution(problem, 3);
    };
    BothDirections both(make(), make());
    both.draw_parameters(5);
    const at::Tensor y = both.forward(x, more.mask);
    for (std::int64_t b = 0; b < 6; ++b) {
      const std::int64_t real = more.mask[b].sum().item<std::int64_t>();
      const at::Tensor alone = both.forward(x.narrow(0, b, 1).narrow(1, 0, real), {});
      CHECK(change(y[b].narrow(0, 0, real), alone[0]) < 1e-14);
    }
    // Mutant: it runs through the padding.
    const at::Tensor through = both.forward(x, {});
    double worst = 0;
    for (std::int64_t b = 0; b < 6; ++b) {
      const std::int64_t real = more.mask[b].sum().item<std::int64_t>();
      worst = std::max(worst, change(through[b].narrow(0, 0, real), y[b].narrow(0, 0, real)));
    }
    CHECK(worst > 1e-3);
    // By its own words: the first direction's output plus that of the other over reversed tokens.
    auto own = both.named_children();
    auto& ahead = dynamic_cast<TokenMix&>(*own["forward"]);
    auto& back = dynamic_cast<TokenMix&>(*own["backward"]);
    const at::Tensor want =
        ahead.forward(x, nullptr) + back.forward(x.flip({1}), nullptr).flip({1});
    CHECK(change(through, want) < 1e-14);
    CHECK(change(ahead.forward(x, nullptr), back.forward(x, nullptr)) > 1e-3);
  }
}
