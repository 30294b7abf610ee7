#include "attention/layer.hpp"

#include "attention/registry.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;

namespace {

Problem small() {
  Problem problem;
  problem.batch = 2;
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.length = problem.key_length = 5;
  problem.head_dim = 8;
  problem.value_dim = 6;
  problem.dtype = Dtype::float64;
  return problem;
}

const Registry& builtins() {
  const static Registry registry = Registry::with_builtins();
  return registry;
}

std::shared_ptr<Mechanism> made(const std::string& name, const Problem& problem) {
  const Entry& entry = builtins().entry(name);
  return entry.make(entry.derive(Options::resolve(entry.options, {}), problem), problem);
}

Layer layer(const Problem& problem, Scope scope, std::uint64_t seed = 3) {
  const Entry& entry = builtins().entry("softmax");
  return Layer(made("softmax", problem), entry.implementation("composite"), scope, seed);
}

bool same(const at::Tensor& a, const at::Tensor& b) { return at::equal(a, b); }

}  // namespace

TEST_CASE("layer: random inputs have the roles' shapes and depend on seed and shape alone") {
  const auto mechanism = made("softmax", small());
  const auto inputs = random_inputs(*mechanism, 5, 2.0, true);
  CHECK(inputs["query"].sizes() == at::IntArrayRef({2, 4, 5, 8}));
  CHECK(inputs["key"].sizes() == at::IntArrayRef({2, 2, 5, 8}));
  CHECK(inputs["value"].sizes() == at::IntArrayRef({2, 2, 5, 6}));
  CHECK(inputs["query"].requires_grad());
  CHECK(same(inputs["query"], random_inputs(*mechanism, 5, 2.0, false)["query"]));
  CHECK(!same(inputs["query"], random_inputs(*mechanism, 6, 2.0, false)["query"]));
  Problem single = small();
  single.dtype = Dtype::float32;
  CHECK(same(inputs["value"].to(at::kFloat),
             random_inputs(*made("softmax", single), 5, 2.0, false)["value"]));
}

TEST_CASE("layer: random inputs have the scale asked for") {
  Problem problem = small();
  problem.length = problem.key_length = 2000;
  const auto q = random_inputs(*made("softmax", problem), 1, 3.0, false)["query"];
  CHECK(q.std().item<double>() == Approx(3.0).epsilon(0.01));
  CHECK(std::abs(q.mean().item<double>()) < 0.03);
}

TEST_CASE("layer: projects, mixes and projects out as written by hand") {
  const auto x = at::randn({2, 5, 32}, at::kDouble);
  auto projected = layer(small(), Scope::projected);
  auto whole = layer(small(), Scope::layer);
  const auto weights = whole.named_parameters();
  const auto head = [&](const char* name, std::int64_t h, std::int64_t width) {
    return at::matmul(x, weights[name].narrow(1, h * width, width));
  };
  std::vector<at::Tensor> heads;
  for (std::int64_t h = 0; h < 4; ++h) {
    const auto k = head("weight_key", h / 2, 8);
    const auto scores = at::matmul(head("weight_query", h, 8), k.transpose(1, 2)) / std::sqrt(8.0);
    const auto future = at::ones({5, 5}, at::kBool).triu(1);
    const auto weight = at::softmax(scores.masked_fill(future, -1e300), -1);
    heads.push_back(at::matmul(weight, head("weight_value", h / 2, 6)));
  }
  CHECK(at::allclose(projected.forward(x, x).output, at::stack(heads, 1), 1e-12, 1e-12));
  const auto out = at::matmul(at::cat(heads, 2), weights["weight_out"]);
  CHECK(at::allclose(whole.forward(x, x).output, out, 1e-12, 1e-12));
}

TEST_CASE("layer: weights have variance 1/C, and one role's do not depend on the others") {
  Problem problem = small();
  problem.head_dim = problem.value_dim = 64;
  auto a = layer(problem, Scope::layer);
  problem.value_dim = 32;
  auto b = layer(problem, Scope::projected);
  CHECK(same(a.named_parameters()["weight_query"], b.named_parameters()["weight_query"]));
  CHECK(a.named_parameters()["weight_query"].var().item<double>() ==
        Approx(1.0 / 256).epsilon(0.02));
  CHECK(!a.named_parameters()["weight_query"].requires_grad());
}

TEST_CASE("layer: rotary positions leave products of queries and keys to their distance") {
  const Problem problem = small();
  auto plain = layer(problem, Scope::projected);
  auto turned = layer(problem, Scope::projected);
  turned.use_rotary_positions();
  const auto x = at::randn({2, 1, 32}, at::kDouble).expand({2, 5, 32});  // one token, five times
  const Inputs before = plain.project(x, x);
  const Inputs after = turned.project(x, x);
  CHECK(same(before["value"], after["value"]));
  const auto one = [](const at::Tensor& tokens, std::int64_t head) {
    return tokens.select(0, 1).select(0, head).select(0, 0);
  };
  const auto q = one(before["query"], 3);
  const auto k = one(before["key"], 1);
  const auto scores = at::matmul(after["query"].select(0, 1).select(0, 3),
                                 after["key"].select(0, 1).select(0, 1).transpose(0, 1));
  for (std::int64_t t = 0; t < 5; ++t) {
    for (std::int64_t s = 0; s < 5; ++s) {
      double want = 0;  // the real part of q k* e^(i (t - s) angle), pair by pair
      for (std::int64_t i = 0; i < 4; ++i) {
        const double angle = double(t - s) * std::pow(10000.0, -double(2 * i) / 8);
        const double a = q[2 * i].item<double>(), b = q[2 * i + 1].item<double>();
        const double c = k[2 * i].item<double>(), d = k[2 * i + 1].item<double>();
        want += (a * c + b * d) * std::cos(angle) - (b * c - a * d) * std::sin(angle);
      }
      CHECK(scores[t][s].item<double>() == Approx(want).margin(1e-12));
    }
  }
}

TEST_CASE("layer: rotary positions are refused where they would mean nothing") {
  Problem problem = small();
  problem.kv_heads = 4;
  problem.value_dim = 8;
  for (const char* name : {"softmax", "window", "linear", "performer", "lavo"}) {
    CHECK(rotary_support(*made(name, problem)));
  }
  for (const char* name : {"latte", "macchiato", "rg_lru"}) {
    INFO(name);
    const Support support = rotary_support(*made(name, problem));
    CHECK_FALSE(support);
    CHECK_THAT(support.reason, Catch::StartsWith(name) && Catch::Contains("query and a key"));
  }
  for (const char* name : {"luna", "perceiver"}) {
    CHECK_THAT(rotary_support(*made(name, problem)).reason, Catch::Contains("latents"));
  }
  Layer latte(made("latte", problem), builtins().entry("latte").implementation("composite"),
              Scope::layer, 1);
  CHECK_THROWS_AS(latte.use_rotary_positions(), UnsupportedError);
}

TEST_CASE("layer: queries and keys of a width of their own, where they are projected") {
  Problem problem = small();
  problem.kv_heads = problem.heads;
  problem.model_width = problem.width();
  problem.value_dim = problem.head_dim;
  problem.head_dim = 3;
  for (const char* name : {"softmax", "linear", "gla", "retention", "performer"}) {
    CAPTURE(name);
    const auto mechanism = made(name, problem);
    REQUIRE(key_dim_support(*mechanism));
    Layer layer(mechanism, builtins().entry(name).implementation("composite"), Scope::layer, 1);
    const auto weights = layer.named_parameters();
    CHECK(weights["weight_query"].sizes() ==
          at::IntArrayRef({problem.model_width, problem.heads * 3}));
    CHECK(weights["weight_out"].sizes() ==
          at::IntArrayRef({problem.heads * problem.value_dim, problem.model_width}));
    const auto x =
        at::randn({2, problem.length, problem.model_width}, weights["weight_out"].options());
    CHECK(layer.forward(x, x).output.sizes() == x.sizes());
  }
  for (const char* name : {"luna", "rg_lru"}) {
    CAPTURE(name);
    Problem alike = problem;
    if (name == std::string("luna")) alike.value_dim = alike.head_dim;
    const auto mechanism = made(name, alike);
    CHECK_THAT(key_dim_support(*mechanism).reason,
               Catch::StartsWith(name) && Catch::Contains("key_dim 3"));
    CHECK_THROWS_AS(
        Layer(mechanism, builtins().entry(name).implementation("composite"), Scope::layer, 1),
        UnsupportedError);
  }
}

TEST_CASE("layer: scope words") {
  CHECK(scope_from("projected") == Scope::projected);
  CHECK(std::string(to_string(Scope::layer)) == "layer");
  CHECK_THROWS_WITH(scope_from("all"), "scope must be one of mix, projected, layer, not \"all\"");
}

namespace {

/// A mechanism with a stream of latents, whose tokens go through a running sum first.
class Streaming : public Mechanism {
 public:
  using Mechanism::Mechanism;
  std::vector<Role> roles() const override {
    return {{"sums", Source::query_tokens, problem.value_dim, Feed::before},
            {"sums again", Source::query_tokens, problem.value_dim, Feed::before},
            {"latent", Source::latent_stream, problem.value_dim}};
  }
  at::Tensor before(const at::Tensor& x, State* state) override {
    ++calls;
    at::Tensor sums = x.cumsum(1);
    if (state != nullptr) {
      sums = sums + (*state)["sum"];
      (*state)["sum"].copy_(sums.narrow(1, -1 + sums.size(1), 1));
    }
    return sums;
  }
  void draw_parameters(std::uint64_t seed) override { drawn = seed; }
  int calls = 0;
  std::uint64_t drawn = 0;
};

}  // namespace

TEST_CASE("the shape of a role is that of its tokens, and of the key heads for key tokens") {
  Problem problem = small();
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.length = 5;
  problem.key_length = 7;
  problem.head_dim = 3;
  using Shape = std::vector<std::int64_t>;
  const Streaming plain("streaming", Options{}, problem);
  CHECK(plain.shape_of({"query", Source::query_tokens, 6}) == Shape{problem.batch, 4, 5, 6});
  CHECK(plain.shape_of({"key", Source::key_tokens, 6}) == Shape{problem.batch, 2, 7, 6});
  CHECK(plain.shape_of({"latent", Source::latent_stream, 6}) == Shape{problem.batch, 4, 3, 6});
  const auto said = Options::resolve({Option::integer("latents_per_head", 9, "")}, {});
  const Streaming chosen("streaming", said, problem);
  CHECK(chosen.shape_of({"latent", Source::latent_stream, 6}) == Shape{problem.batch, 4, 9, 6});
}

TEST_CASE("layer: what comes before is computed once, from the state, and latents are projected") {
  Problem problem = small();
  problem.kv_heads = 4;
  const auto mechanism = std::make_shared<Streaming>("streaming", Options{}, problem);
  const Implementation none;
  Layer streaming(mechanism, none, Scope::projected, 9);
  CHECK(mechanism->drawn == 9);
  const auto x = at::randn({2, 5, 32}, at::kDouble);
  const auto latents = at::randn({2, 3, 32}, at::kDouble);
  const Inputs whole = streaming.project(x, x, latents);
  CHECK(mechanism->calls == 1);
  CHECK(whole["latent"].sizes() == at::IntArrayRef({2, 4, 3, 6}));
  CHECK_THROWS_AS(streaming.project(x, x), std::logic_error);
  State state;
  state.tensors["sum"] = at::zeros({2, 1, 32}, at::kDouble);
  const auto first = streaming.project(x.narrow(1, 0, 3), {}, latents, &state);
  const auto second = streaming.project(x.narrow(1, 3, 2), {}, latents, &state);
  CHECK(at::allclose(at::cat({first["sums"], second["sums"]}, 2), whole["sums"]));
  CHECK(!same(whole["sums"], whole["sums again"]));
}
