// A model fed through its state computes what the whole forward pass computes.
#include <malloc.h>
#include <limits>
#include <set>

#include "core/random.hpp"
#include "tasks/training/stream.hpp"
#include "tests/tasks/training/model_of.hpp"

using namespace attnbench;
using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

using Overrides = std::map<std::string, OptionValue>;

std::string text_value(const char* text) { return text; }

/// A mechanism with options that a state has to carry.
struct StateCase {
  std::string mechanism;
  Overrides said;

  std::string text() const {
    std::string all = mechanism;
    for (const auto& [name, value] : said) all += " " + name + "=" + to_string(value);
    return all;
  }
};

/// States of every kind: keys that grow, rings, sums, what came before the projections, a latent
/// stream. That steps of every mechanism and option are the whole is the conformance kit's.
std::vector<StateCase> state_cases() {
  const Window few{9, 0};
  return {{"softmax", {}},
          {"luna", {}},
          {"performer", {{"kernel", text_value("relu")}}},
          {"lavo", {{"window", few}}},
          {"longshort", {{"window", few}, {"segment", std::int64_t{8}}}},
          {"latte", {{"before", text_value("conv")}, {"taps", std::int64_t{5}}, {"vapor", true}}},
          {"window", {{"window", few}, {"before", text_value("rg_lru")}, {"before_norm", true}}},
          {"macchiato", {{"window", few}, {"rotary", true}, {"vapor", true}}},
          {"delta", {{"gate", text_value("scalar")}, {"output", text_value("gated")}}},
          {"rg_lru", {{"first_input", text_value("plain")}}},
          {"fox", {{"output", text_value("gated")}}},
          {"mamba", {{"output", text_value("gated")}, {"before", text_value("conv")}}},
          {"mla", {{"latent", std::int64_t{6}}}},
          {"moba", {{"block", std::int64_t{8}}}},
          {"nsa", {{"block", std::int64_t{8}}, {"window", few}}}};
}

constexpr std::int64_t kTokens = 61;
constexpr std::int64_t kSymbols = 256;

Problem of_length(std::int64_t tokens, Dtype dtype = Dtype::float64) {
  Problem problem = small();
  problem.batch = 1;
  problem.length = problem.key_length = tokens;
  problem.dtype = dtype;
  return problem;
}

/// Nothing where the mechanism has no causal form.
std::shared_ptr<Model> model_of_variant(const StateCase& variant, ModelOptions options,
                                        const Problem& problem,
                                        const std::string& implementation = "auto") {
  const Entry& entry = registry().entry(variant.mechanism);
  const auto& patterns = entry.patterns;
  if (std::find(patterns.begin(), patterns.end(), problem.pattern) == patterns.end()) return {};
  const Options chosen = entry.derive(Options::resolve(entry.options, variant.said), problem);
  if (!entry.supports(chosen, problem)) return {};
  const auto make = [&] { return entry.make(chosen, problem); };
  if (options.positions == Positions::rotary && !rotary_support(*make())) {
    options.positions = Positions::sinusoidal;
  }
  options.vocabulary = kSymbols;
  options.tied_head = false;
  const auto model = std::make_shared<Model>(
      everywhere(make, *Registry::choose(entry, implementation, chosen, problem).implementation),
      options, 3);
  // Far from the initial calm, in which tokens hardly differ.
  const at::NoGradGuard no_grad;
  for (auto& item : model->named_parameters()) {
    const std::string& weight = item.key();
    if (weight == "embedding" || weight == "head") item.value().mul_(40);
  }
  return model;
}

at::Tensor random_bytes(std::int64_t rows, std::int64_t tokens) {
  Random random(5, 6);
  at::Tensor ids = at::empty({rows, tokens}, at::kLong);
  auto* const first = ids.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < ids.numel(); ++i) first[i] = random.below(kSymbols);
  return ids;
}

/// The logits of `ids` read in parts of these lengths, again and again.
at::Tensor in_parts(Model& model, const at::Tensor& ids, const std::vector<std::int64_t>& lengths) {
  ModelState state = model.empty_state(ids.size(0), ids.size(1));
  std::vector<at::Tensor> logits;
  for (std::size_t i = 0; state.position < ids.size(1); ++i) {
    const std::int64_t count = std::min(lengths[i % lengths.size()], ids.size(1) - state.position);
    logits.push_back(model.step(ids.narrow(1, state.position, count), state));
  }
  return at::cat(logits, 1);
}

double max_apart(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

std::vector<std::int64_t> token_list(const at::Tensor& ids) {
  const at::Tensor flat = ids.flatten().contiguous();
  const auto* const first = flat.data_ptr<std::int64_t>();
  return {first, first + flat.numel()};
}

}  // namespace

TEST_CASE("a model fed in parts or token by token gives the logits of the whole sequence",
          "[model][state]") {
  const at::NoGradGuard no_grad;
  const at::Tensor ids = random_bytes(2, kTokens);
  Problem problem = of_length(kTokens);
  problem.batch = 2;
  constexpr Positions positions[] = {Positions::none, Positions::rotary, Positions::learned,
                                     Positions::sinusoidal};
  std::size_t number = 0;
  std::size_t seen = 0;
  for (const StateCase& variant : state_cases()) {
    for (const Layout layout : {Layout::mechanism, Layout::convolution_first}) {
      ModelOptions options;
      options.layout = layout;
      options.taps = 4;
      options.positions = positions[++number % 4];
      options.norm = number % 3 == 0 ? Norm::rms : Norm::layer;
      options.mlp = number % 5 == 0 ? Mlp::identity : Mlp::gated;
      options.projection_bias = number % 2 == 0;
      const auto model = model_of_variant(variant, options, problem);
      if (!model || !model->state_support()) continue;
      ++seen;
      INFO(variant.text() << ", layout " << to_string(layout) << ", positions "
                          << to_string(options.positions));
      const at::Tensor whole = model->forward(ids);
      const double scale = whole.abs().max().item<double>();
      REQUIRE(scale > 1e-3);
      CHECK(max_apart(in_parts(*model, ids, {1, 5, 1, 17, 2}), whole) < 1e-9 * scale);
      CHECK(max_apart(in_parts(*model, ids, {1}), whole) < 1e-9 * scale);
      // The test would see a state that is not used.
      CHECK(max_apart(model->forward(ids.narrow(1, 20, 8)), whole.narrow(1, 20, 8)) > 1e-6 * scale);
    }
  }
  CHECK(seen == 2 * state_cases().size());
}

TEST_CASE("every built-in mechanism with a causal state has one in a model", "[model][state]") {
  std::set<std::string> without;
  for (const std::string& name : registry().mechanisms()) {
    const auto model = model_of_variant({name, {}}, {}, of_length(16));
    if (!model) continue;
    const Support support = model->state_support();
    if (support) continue;
    without.insert(name);
    CHECK_FALSE(support.reason.empty());
    CHECK_THROWS_AS(model->empty_state(1, 8), UnsupportedError);
  }
  CHECK(without.empty());
}

TEST_CASE("bits of a text are the same by whole pass, parts and single steps", "[model][state]") {
  const at::NoGradGuard no_grad;
  const at::Tensor ids = random_bytes(1, 400);
  const std::vector<std::int64_t> text = token_list(ids);
  for (const char* name : {"softmax", "latte", "delta"}) {
    INFO(name);
    const auto model = model_of_variant({name, {}}, {}, of_length(400));
    const at::Tensor each = at::log_softmax(model->forward(ids).select(0, 0), 1);
    const double nats = -each.narrow(0, 0, 399)
                             .gather(1, ids.select(0, 0).narrow(0, 1, 399).unsqueeze(1))
                             .sum()
                             .item<double>();
    const double want = nats / 399 / std::log(2.0);
    for (const std::size_t part : {400, 7, 1}) {
      ModelState state = model->empty_state(1, 400);
      StreamScore score(*model, state);
      for (std::size_t begin = 0; begin < text.size(); begin += part) {
        const std::size_t end = std::min(begin + part, text.size());
        score.read({text.begin() + static_cast<std::ptrdiff_t>(begin),
                    text.begin() + static_cast<std::ptrdiff_t>(end)});
      }
      CHECK(score.scored() == 399);
      CHECK(std::abs(score.bits_per_token() - want) < 1e-9);
    }
  }
}

// By induction both generate the same: the logits at a token do not depend on later ones.
TEST_CASE("greedy generation from the state is that of the whole pass", "[model][state]") {
  const at::NoGradGuard no_grad;
  constexpr std::int64_t count = 150;
  const std::vector<std::int64_t> prompt = token_list(random_bytes(1, 12));
  const auto first = static_cast<std::int64_t>(prompt.size());
  for (const StateCase& variant : state_cases()) {
    ModelOptions options;
    options.layout = Layout::convolution_first;
    options.positions = Positions::sinusoidal;  // without, some repeat few bytes for ever
    const auto model = model_of_variant(variant, options, of_length(first + count));
    INFO(variant.text());
    ModelState state = model->empty_state(1, first + count);
    std::vector<std::int64_t> all = prompt;
    generate(*model, state, prompt, count, {}, [&](std::int64_t token) {
      all.push_back(token);
      return true;
    });
    REQUIRE(static_cast<std::int64_t>(all.size()) == first + count);
    const at::Tensor ids = at::tensor(all, at::kLong).unsqueeze(0);
    const at::Tensor chosen = model->forward(ids).argmax(2).select(0, 0);
    CHECK(at::equal(chosen.narrow(0, first - 1, count), ids.select(0, 0).narrow(0, first, count)));
    // A model that repeats one byte would say nothing.
    CHECK(std::set<std::int64_t>(all.begin() + first, all.end()).size() > 3);
  }
}

// tests/attention/torch/streams.cpp shows that none of them grows or drifts over a million tokens.
TEST_CASE("a stream through a model leaves the heap as it is", "[model][state]") {
  const at::NoGradGuard no_grad;
  const auto allocated = [] {
    const struct mallinfo2 heap = mallinfo2();
    return static_cast<double>(heap.uordblks + heap.hblkhd);
  };
  ModelOptions options;
  options.layout = Layout::convolution_first;
  const auto model = model_of_variant({"latte", {}}, options, of_length(1000, Dtype::float32));
  ModelState state = model->empty_state(1, 20'000);
  StreamScore score(*model, state);
  const std::vector<std::int64_t> part = token_list(random_bytes(1, 1000));
  double early = std::numeric_limits<double>::infinity(), late = early;
  while (state.position < 20'000) {
    score.read(part);
    double& least = state.position <= 10'000 ? early : late;  // temporary tensors come and go
    least = std::min(least, allocated());
  }
  CHECK(score.scored() == 19'999);
  CHECK(std::isfinite(score.bits()));
  CHECK(late < 1.01 * early);
}

TEST_CASE(
    "the states that grow with the tokens are those of softmax, fox, longshort, mla, moba and nsa",
    "[model][state]") {
  const at::NoGradGuard no_grad;
  std::set<std::string> growing;
  std::size_t fixed = 0;
  for (const std::string& name : registry().mechanisms()) {
    ModelOptions options;
    options.layout = Layout::convolution_first;
    const auto model = model_of_variant({name, {}}, options, of_length(1000));
    if (!model) continue;
    const std::int64_t bytes = model->empty_state(1, 4000).bytes();
    if (model->empty_state(1, 8000).bytes() == bytes) {
      ++fixed;
    } else {
      growing.insert(name);
    }
  }
  CHECK(growing == std::set<std::string>{"fox", "longshort", "mla", "moba", "nsa", "softmax"});
  CHECK(fixed >= 15);
  const auto softmax = model_of_variant({"softmax", {}}, {}, of_length(100));
  CHECK(softmax->empty_state(1, 200).bytes() == 2 * softmax->empty_state(1, 100).bytes());
}

TEST_CASE("models without a state say why", "[model][state]") {
  Problem both = of_length(16);
  both.pattern = Pattern::bidirectional;
  const auto why = [](const std::shared_ptr<Model>& model) {
    const Support support = model->state_support();
    CHECK_FALSE(support.yes);
    return support.reason;
  };
  CHECK_THAT(why(model_of_variant({"softmax", {}}, {}, both)), Contains("bidirectional"));
  ModelOptions classes;
  classes.classifier.classes = 3;
  CHECK_THAT(why(model_of("latte", of_length(16), classes)), Contains("classifies"));
  class Stateless : public Mechanism {
   public:
    using Mechanism::Mechanism;
    std::vector<Role> roles() const override {
      return {{"value", Source::key_tokens, problem.value_dim}};
    }
  };
  Implementation copies;
  copies.mix = [](Mechanism&, const Inputs& inputs, State*) { return Mixed{inputs["value"], {}}; };
  const auto stateless = std::make_shared<Model>(
      everywhere([] { return std::make_shared<Stateless>("stateless", Options(), of_length(16)); },
                 copies),
      ModelOptions(), 1);
  CHECK_THAT(why(stateless), Contains("stateless has no decoding state"));
}

TEST_CASE("a model refuses tokens beyond learned positions and beyond its cache",
          "[model][state]") {
  ModelOptions options;
  options.positions = Positions::learned;
  const auto model = model_of_variant({"latte", {}}, options, of_length(16));
  REQUIRE(model->max_tokens() == 16);
  ModelState state = model->empty_state(1, 16);
  model->step(random_bytes(1, 16), state);
  CHECK_THROWS_WITH(model->step(random_bytes(1, 1), state), Contains("learned positions end at"));
  CHECK_THROWS_WITH(model->forward(random_bytes(1, 17)), Contains("learned positions end at"));
  const auto cached = model_of_variant({"softmax", {}}, {}, of_length(16));
  CHECK_FALSE(cached->max_tokens());
  ModelState cache = cached->empty_state(1, 8);
  CHECK_THROWS_WITH(cached->step(random_bytes(1, 9), cache), Contains("room for 8 tokens"));
}

TEST_CASE("a state is copied whole, and copies go on apart", "[model][state]") {
  const at::NoGradGuard no_grad;
  ModelOptions options;
  options.layout = Layout::convolution_first;
  const auto model = model_of_variant({"latte", {}}, options, of_length(kTokens));
  const at::Tensor ids = random_bytes(1, kTokens);
  ModelState state = model->empty_state(1, kTokens);
  model->step(ids.narrow(1, 0, 30), state);
  const ModelState kept = state.clone();
  const at::Tensor once = model->step(ids.narrow(1, 30, 31), state);
  ModelState again = kept.clone();
  CHECK(again.position == 30);
  CHECK(at::equal(model->step(ids.narrow(1, 30, 31), again), once));
}

TEST_CASE("tokens are drawn by temperature and seed", "[model][state]") {
  const at::Tensor logits = at::tensor({0.0, 1.0, 3.0, 3.0}, at::kDouble);
  CHECK(next_token(logits, {0, 9}, 4) == 2);  // the first of equal ones
  CHECK(next_token(logits, {1e-3, 9}, 4) >= 2);
  std::vector<double> counts(4);
  constexpr int draws = 20000;
  for (int i = 0; i < draws; ++i) {
    ++counts[static_cast<std::size_t>(next_token(logits, {2, 9}, i))];
  }
  const at::Tensor want = at::softmax(logits / 2, 0);
  for (std::size_t i = 0; i < 4; ++i) {
    const double share = want[static_cast<std::int64_t>(i)].item<double>();
    // Four standard deviations.
    CHECK(std::abs(counts[i] / draws - share) < 4 * std::sqrt(share * (1 - share) / draws));
  }
  CHECK(next_token(logits, {2, 9}, 4) == next_token(logits, {2, 9}, 4));
  bool differs = false;
  for (int i = 0; i < 50; ++i)
    differs |= next_token(logits, {2, 1}, i) != next_token(logits, {2, 2}, i);
  CHECK(differs);
}
