#include "tasks/training/model.hpp"

#include <cmath>

#include "attention/torch/draw.hpp"
#include "tests/tasks/training/model_of.hpp"

using namespace attnbench;
using namespace attnbench::test;

namespace {

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

TEST_CASE("blocks with zero outputs leave the normalised embedding", "[model]") {
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

TEST_CASE("every weight of a model has a gradient, and none is registered twice", "[model]") {
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

TEST_CASE("the seed determines the weights, and blocks differ", "[model]") {
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

TEST_CASE("latents pass from block to block, and mix_inputs returns a mix's inputs", "[model]") {
  const Problem problem = small();
  const Options chosen({{"latents_per_head", std::int64_t{3}}});
  ModelOptions options;
  options.vocabulary = 11;
  options.norm = Norm::rms;
  const auto make = [&] { return std::make_shared<Streaming>("streaming", chosen, problem); };
  Model model(everywhere(make, streaming()), options, 1);
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

TEST_CASE("the MLP identity adds a norm, none adds nothing", "[model]") {
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

TEST_CASE("rotary positions distinguish the order of tokens, and add nothing to the embedding",
          "[model]") {
  ModelOptions options;
  options.vocabulary = 11;
  options.layers = 1;
  Problem both = small();
  both.pattern = Pattern::bidirectional;
  const at::NoGradGuard no_grad;
  const auto last_of = [&](Positions positions, const at::Tensor& ids) {
    options.positions = positions;
    return model_of("softmax", both, options)->features(ids).select(1, -1);
  };
  const at::Tensor ids = some_ids();
  const at::Tensor swapped =
      at::cat({ids.narrow(1, 1, 1), ids.narrow(1, 0, 1), ids.narrow(1, 2, ids.size(1) - 2)}, 1);
  REQUIRE_FALSE(at::equal(ids, swapped));
  CHECK(at::allclose(last_of(Positions::none, ids), last_of(Positions::none, swapped)));
  CHECK_FALSE(at::allclose(last_of(Positions::rotary, ids), last_of(Positions::rotary, swapped)));
  const at::Tensor alone = ids.narrow(1, 0, 1);  // where there is no distance
  CHECK(at::allclose(last_of(Positions::none, alone), last_of(Positions::rotary, alone)));
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

TEST_CASE("initial weights have the deviation that was set", "[model]") {
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
