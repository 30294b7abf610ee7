#include "tasks/learning/model.hpp"

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

TEST_CASE("a model of one sequence refuses cross attention, and unknown words", "[model]") {
  CHECK_THROWS_AS(model_of("softmax", small(Pattern::cross), {}), UnsupportedError);
  CHECK_THROWS_AS(mlp_from("wide"), UsageError);
  CHECK_THROWS_AS(norm_from("batch"), UsageError);
}
