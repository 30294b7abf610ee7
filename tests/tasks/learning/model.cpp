#include "tasks/learning/model.hpp"

#include <cmath>

#include "attention/draw.hpp"
#include "attention/registry.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using namespace attnbench::tasks::learning;

namespace {

Problem small(Pattern pattern = Pattern::causal) {
  Problem problem;
  problem.batch = 2;
  problem.heads = 2;
  problem.kv_heads = 2;
  problem.length = problem.key_length = 7;
  problem.head_dim = problem.value_dim = 4;
  problem.pattern = pattern;
  problem.dtype = Dtype::float64;
  return problem;
}

const Registry& registry() {
  static const Registry builtins = Registry::with_builtins();
  return builtins;
}

std::shared_ptr<Model> model_of(const char* name, const Problem& problem,
                                const ModelOptions& options, std::uint64_t seed = 1) {
  const Entry& entry = registry().entry(name);
  const Options chosen = entry.derive(Options::resolve(entry.options, {}), problem);
  return std::make_shared<Model>([&] { return entry.make(chosen, problem); },
                                 entry.implementations.front(), options, seed);
}

at::Tensor some_ids(std::int64_t vocabulary = 11) {
  return (at::arange(14, at::kLong) * 5 + 3).remainder(vocabulary).view({2, 7});
}

std::int64_t weights_in(const torch::nn::Module& module) {
  std::int64_t sum = 0;
  for (const at::Tensor& tensor : module.parameters()) sum += tensor.numel();
  return sum;
}

/// Adds the mean of its latents to the query, and one to each latent; remembers what it was given.
class Streaming final : public Mechanism {
 public:
  using Mechanism::Mechanism;
  std::vector<Role> roles() const override {
    return {{"query", Source::query_tokens, problem.head_dim, Feed::projected},
            {"latents", Source::latent_stream, problem.head_dim, Feed::slice}};
  }
  Inputs given;
};

Implementation streaming() {
  Implementation implementation;
  implementation.name = "composite";
  implementation.mix = [](Mechanism& mechanism, const Inputs& inputs, State*) {
    static_cast<Streaming&>(mechanism).given = inputs;
    return Mixed{inputs["query"] + inputs["latents"].mean(2, true), inputs["latents"] + 1};
  };
  return implementation;
}

}  // namespace

TEST_CASE("a model gives logits of every token", "[model]") {
  ModelOptions options;
  options.vocabulary = 11;
  for (const Mlp mlp : {Mlp::plain, Mlp::gated}) {
    for (const Norm norm : {Norm::layer, Norm::rms}) {
      options.mlp = mlp;
      options.norm = norm;
      const at::Tensor logits = model_of("softmax", small(), options)->forward(some_ids());
      CHECK(logits.sizes() == at::IntArrayRef({2, 7, 11}));
      CHECK(at::isfinite(logits).all().item<bool>());
    }
  }
}

TEST_CASE("the weights around the layers are counted as they are made", "[model]") {
  for (const Mlp mlp : {Mlp::plain, Mlp::gated}) {
    for (const Norm norm : {Norm::layer, Norm::rms}) {
      for (const bool tied : {true, false}) {
        const ModelOptions options{3, 11, mlp, mlp == Mlp::plain ? 0 : 20, norm, tied};
        const auto model = model_of("softmax", small(), options);
        const std::int64_t projections = 3 * 4 * 8 * 8;
        CHECK(weights_in(*model) == weights_around(options, small()) + projections);
      }
    }
  }
}

TEST_CASE("a decoder is two steps of norm, product and GELU on vector and place", "[model]") {
  ModelOptions options;
  options.vocabulary = 11;
  options.decoder = true;
  const auto model = model_of("softmax", small(), options);
  CHECK(weights_in(*model) == weights_around(options, small()) + 2 * 4 * 8 * 8);
  const at::NoGradGuard no_grad;
  const auto weights = model->named_parameters();
  at::Tensor x = at::sin(at::arange(24, at::kDouble)).view({3, 8});
  const at::Tensor places = at::tensor({6, 0, 2}, at::kLong);
  const at::Tensor got = model->decoded(x, places);
  // By hand: the sinusoid of place p in column c, then the steps.
  at::Tensor want = x.clone();
  for (std::int64_t row = 0; row < 3; ++row) {
    for (std::int64_t column = 0; column < 8; ++column) {
      const double angle =
          places[row].item<double>() / std::pow(10000.0, static_cast<double>(column / 2 * 2) / 8);
      want[row][column] += column % 2 == 0 ? std::sin(angle) : std::cos(angle);
    }
  }
  const auto norm = [](const at::Tensor& y) {
    const at::Tensor centred = y - y.mean(-1, true);
    return centred / (centred.pow(2).mean(-1, true) + 1e-5).sqrt();
  };
  for (const std::string number : {"0", "1"}) {
    want = at::matmul(norm(want), weights["decoder.weight_" + number]);
    want = want * 0.5 * (1 + at::erf(want / std::sqrt(2.0)));
  }
  CHECK((got - norm(want)).abs().max().item<double>() < 1e-12);
  CHECK_THROWS_AS(model_of("softmax", small(), {})->decoded(x, places), std::logic_error);
}

TEST_CASE("blocks that add nothing leave the embedding, normalised", "[model]") {
  ModelOptions options;
  options.vocabulary = 11;
  const auto model = model_of("softmax", small(), options);
  const at::NoGradGuard no_grad;
  at::Tensor table;
  for (const auto& item : model->named_parameters()) {
    const std::string& name = item.key();
    if (name == "embedding") table = item.value();
    const bool last =
        name.find("weight_out") != std::string::npos || name.find("mlp.out") != std::string::npos;
    if (last) item.value().zero_();
  }
  const at::Tensor x = at::embedding(table, some_ids());
  const at::Tensor centred = x - x.mean(-1, true);
  const at::Tensor calm = centred / (centred.pow(2).mean(-1, true) + 1e-5).sqrt();
  const at::Tensor want = at::matmul(calm, table.transpose(0, 1));
  CHECK((model->forward(some_ids()) - want).abs().max().item<double>() < 1e-12);
}

TEST_CASE("a causal model hears nothing of later tokens", "[model]") {
  ModelOptions options;
  options.vocabulary = 11;
  for (const char* name : {"softmax", "latte", "linear"}) {
    INFO(name);
    const auto model = model_of(name, small(), options);
    const at::Tensor before = model->forward(some_ids());
    at::Tensor ids = some_ids().clone();
    ids.select(1, 5).fill_(9);
    const at::Tensor change = (model->forward(ids) - before).abs().amax({0, 2});
    CHECK(change.narrow(0, 0, 5).max().item<double>() == 0);
    CHECK(change.narrow(0, 5, 2).min().item<double>() > 1e-6);
  }
}

TEST_CASE("every weight of a model is learned, and none twice", "[model]") {
  Problem problem = small(Pattern::bidirectional);
  problem.gradient = true;
  for (const bool tied : {true, false}) {
    const ModelOptions options{2, 11, Mlp::gated, 0, Norm::rms, tied};
    const auto model = model_of("latte", problem, options);
    model->forward(some_ids()).pow(2).sum().backward();
    for (const auto& item : model->named_parameters()) {
      INFO(item.key());
      REQUIRE(item.value().grad().defined());
      CHECK(item.value().grad().abs().max().item<double>() > 0);
    }
    CHECK(model->named_parameters().contains("head") == !tied);
  }
}

TEST_CASE("the seed decides the weights, and blocks differ", "[model]") {
  ModelOptions options;
  const auto logits = [&](std::uint64_t seed) {
    return model_of("softmax", small(), options, seed)->forward(some_ids());
  };
  CHECK(at::equal(logits(1), logits(1)));
  CHECK_FALSE(at::equal(logits(1), logits(2)));
  const auto model = model_of("softmax", small(), options);
  CHECK_FALSE(at::equal(model->named_parameters()["block_0.mlp.in"],
                        model->named_parameters()["block_1.mlp.in"]));
}

TEST_CASE("latents go from block to block, and a mix gets what mix_inputs says", "[model]") {
  const Problem problem = small();
  const Options chosen({{"latents_per_head", std::int64_t{3}}});
  ModelOptions options;
  options.vocabulary = 11;
  options.norm = Norm::rms;
  Model model([&] { return std::make_shared<Streaming>("streaming", chosen, problem); },
              streaming(), options, 1);
  REQUIRE(model.named_parameters()["latents"].sizes() == at::IntArrayRef({3, 8}));
  model.forward(some_ids());
  for (std::size_t block : {0, 1}) {
    const Inputs given = static_cast<Streaming&>(model.mechanism(block)).given;
    const Inputs said = model.mix_inputs(block, some_ids());
    for (const auto& [role, tensor] : said.tensors) {
      INFO(block << " " << role);
      CHECK(at::equal(tensor, given[role]));
    }
  }
  // The second block's stream: p + (norm(p) + 1), normalised.
  const at::Tensor start = model.named_parameters()["latents"];
  const auto rms = [](const at::Tensor& x) { return x / (x.pow(2).mean(-1, true) + 1e-5).sqrt(); };
  const at::Tensor want = rms(start + rms(start) + 1);
  const at::Tensor got = model.mix_inputs(1, some_ids())["latents"];
  const at::Tensor merged = got.transpose(1, 2).flatten(2);
  CHECK((merged - want).abs().max().item<double>() < 1e-12);
}

TEST_CASE("what is put around the layers is counted for every layout", "[model]") {
  for (const Mlp mlp : {Mlp::plain, Mlp::gated, Mlp::none, Mlp::identity}) {
    for (const Positions positions : {Positions::none, Positions::learned, Positions::sinusoidal}) {
      ModelOptions options{3, 11, mlp, 0, Norm::layer, true};
      options.layout = Layout::convolution_first;
      options.positions = positions;
      const auto model = model_of("softmax", small(), options);
      CHECK(model->mixes() == 1);
      const std::int64_t projections = 4 * 8 * 8;
      CHECK(weights_in(*model) == weights_around(options, small()) + projections);
    }
  }
}

TEST_CASE("a gated convolution is what its paper says", "[model]") {
  const Problem problem = small();
  GatedConvolution convolution(3, problem, 5);
  const at::NoGradGuard no_grad;
  auto weights = convolution.named_parameters();
  weights["bias"].copy_(at::arange(8) * 0.1);
  weights["gate_bias"].fill_(0.3);
  const at::Tensor x = at::sin(at::arange(2 * 7 * 8, at::kDouble)).view({2, 7, 8});
  const at::Tensor got = convolution.forward(x);
  const at::Tensor taps = weights["taps.weight"];
  for (std::int64_t t = 0; t < 7; ++t) {
    at::Tensor seen = weights["bias"].clone().expand({2, 8}).clone();
    for (std::int64_t i = 0; i <= std::min<std::int64_t>(t, 2); ++i) {
      seen += taps[i] * x.select(1, t - i);
    }
    const at::Tensor gate = at::matmul(x.select(1, t), weights["gate"]) + 0.3;
    const at::Tensor want = x.select(1, t) + seen * gate;
    CHECK((got.select(1, t) - want).abs().max().item<double>() < 1e-12);
  }
  CHECK(convolution.state_bytes(x.options()) == 2 * 8 * 8);
}

TEST_CASE("the identity adds a norm, none adds nothing", "[model]") {
  ModelOptions options;
  options.vocabulary = 11;
  options.layers = 1;
  const at::NoGradGuard no_grad;
  const auto calm = [](const at::Tensor& x) {
    const at::Tensor centred = x - x.mean(-1, true);
    return centred / (centred.pow(2).mean(-1, true) + 1e-5).sqrt();
  };
  for (const Mlp mlp : {Mlp::identity, Mlp::none}) {
    options.mlp = mlp;
    const auto model = model_of("softmax", small(), options);
    auto weights = model->named_parameters();
    weights["block_0.attention.weight_out"].zero_();
    const at::Tensor x = at::embedding(weights["embedding"], some_ids());
    const at::Tensor want = calm(mlp == Mlp::identity ? x + calm(x) : x);
    CHECK((model->features(some_ids()) - want).abs().max().item<double>() < 1e-12);
  }
}

TEST_CASE("positions are added to the embedding", "[model]") {
  ModelOptions options;
  options.vocabulary = 11;
  options.layers = 1;
  options.mlp = Mlp::none;
  options.positions = Positions::sinusoidal;
  const at::NoGradGuard no_grad;
  const auto model = model_of("linear", small(), options);
  auto weights = model->named_parameters();
  weights["block_0.attention.weight_out"].zero_();
  at::Tensor x = at::embedding(weights["embedding"], some_ids()).clone();
  for (std::int64_t t = 0; t < 7; ++t) {
    for (std::int64_t c = 0; c < 8; ++c) {
      const double angle = double(t) / std::pow(10000.0, double(c / 2 * 2) / 8);
      x.select(1, t).select(1, c).add_(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  const at::Tensor centred = x - x.mean(-1, true);
  const at::Tensor want = centred / (centred.pow(2).mean(-1, true) + 1e-5).sqrt();
  CHECK((model->features(some_ids()) - want).abs().max().item<double>() < 1e-12);
  // Fewer tokens than there are positions.
  CHECK((model->features(some_ids().narrow(1, 0, 3)) - want.narrow(1, 0, 3))
            .abs()
            .max()
            .item<double>() < 1e-12);
}

TEST_CASE("first weights have the deviation that was asked for", "[model]") {
  Problem problem = small();
  problem.head_dim = problem.value_dim = 64;
  ModelOptions options;
  options.layout = Layout::convolution_first;
  options.initial_deviation = 0.02;
  const auto model = model_of("softmax", problem, options);
  int checked = 0;
  for (const auto& item : model->named_parameters()) {
    if (item.value().dim() != 2 || item.key().find("taps") != std::string::npos) continue;
    INFO(item.key());
    const bool output = item.key().find("weight_out") != std::string::npos ||
                        item.key().find("mlp.out") != std::string::npos;
    const double want = output ? 0.02 / std::sqrt(4.0) : 0.02;
    CHECK(item.value().std().item<double>() == Approx(want).epsilon(0.05));
    ++checked;
  }
  CHECK(checked == 1 + 1 + 4 + 2 * 2);
}

TEST_CASE("dropout zeroes a share and keeps the mean, the same for one seed", "[model]") {
  ModelOptions options;
  options.vocabulary = 11;
  const auto model = model_of("softmax", small(), options);
  const auto features = [&](std::uint64_t seed) {
    return model->features(some_ids(), {}, {0.5, seeded_generator(seed, at::kCPU)});
  };
  CHECK(at::equal(features(1), features(1)));
  CHECK_FALSE(at::equal(features(1), features(2)));
  CHECK_FALSE(at::equal(features(1), model->features(some_ids())));
}

TEST_CASE("tokens that share a position have a part of the width each", "[model]") {
  ModelOptions options;
  options.vocabulary = 11;
  options.tokens_per_position = 2;
  CHECK_THROWS_AS(model_of("softmax", small(), options), UsageError);
  options.tied_head = false;
  const auto model = model_of("softmax", small(), options);
  CHECK(weights_in(*model) == weights_around(options, small()) + 2 * 4 * 8 * 8);
  const at::Tensor ids = at::stack({some_ids(), some_ids().add(1).remainder(11)}, 2);
  CHECK(model->forward(ids).sizes() == at::IntArrayRef({2, 7, 11}));
  options.tokens_per_position = 3;
  CHECK_THROWS_AS(model_of("softmax", small(), options), UsageError);
  options = {};
  options.layers = 1;
  options.layout = Layout::convolution_first;
  CHECK_THROWS_AS(model_of("softmax", small(), options), UsageError);
}

TEST_CASE("a model of one sequence refuses cross attention, and unknown words", "[model]") {
  CHECK_THROWS_AS(model_of("softmax", small(Pattern::cross), {}), UnsupportedError);
  CHECK_THROWS_AS(mlp_from("wide"), UsageError);
  CHECK_THROWS_AS(layout_from("sandwich"), UsageError);
  CHECK_THROWS_AS(positions_from("absolute"), UsageError);
  CHECK_THROWS_AS(norm_from("batch"), UsageError);
}
