// What Performer's features are: orthogonal where they should be, unbiased, and better the more
// there are.
#include "attention/algorithms/performer/random_features.hpp"

#include <cmath>

#include "attention/algorithms/prefix_pool/prefix_pool.hpp"
#include "attention/algorithms/tokens/operand.hpp"
#include "attention/mechanism.hpp"
#include "tests/attention/fixture.hpp"
#include "tests/support/catch.hpp"

namespace attnbench {
namespace mechanisms {
Entry performer();
}

namespace {

using at::Tensor;

Problem in_double() {
  Problem problem;
  problem.dtype = Dtype::float64;
  return problem;
}

Tensor drawn(std::int64_t count, std::int64_t width, bool orthogonal, bool chi_norms = true,
             std::uint64_t seed = 3) {
  RandomFeatures asked;
  asked.count = count;
  asked.width = width;
  asked.orthogonal = orthogonal;
  asked.chi_norms = chi_norms;
  return draw_features(seed, "omega", asked, in_double());
}

/// The greatest cosine between two rows of one group of `width`.
double max_cosine(const Tensor& omega) {
  const auto width = omega.size(1);
  double most = 0;
  for (const Tensor& group : omega.split(width)) {
    const Tensor unit = group / group.norm(2, {1}, true);
    const Tensor cosines = at::matmul(unit, unit.t()) - at::eye(unit.size(0), at::kDouble);
    most = std::max(most, cosines.abs().max().item<double>());
  }
  return most;
}

}  // namespace

TEST_CASE("random features: orthogonal in groups, with the norms asked for") {
  const Tensor omega = drawn(37, 16, true);
  CHECK(omega.sizes() == at::IntArrayRef({37, 16}));
  CHECK(max_cosine(omega) < 1e-12);
  CHECK(max_cosine(drawn(37, 16, false)) > 0.1);
  CHECK((drawn(37, 16, true, false).norm(2, {1}) - 4).abs().max().item<double>() < 1e-12);
  CHECK((drawn(37, 16, false, false).norm(2, {1}) - 4).abs().max().item<double>() < 1e-12);
  // A chi distribution with 16 degrees of freedom: squares of mean 16 and variance 32.
  const Tensor squares = drawn(4000, 16, true).square().sum(1);
  CHECK(std::abs(squares.mean().item<double>() - 16) < 4 * std::sqrt(32 / 4000.0));
  CHECK(squares.var().item<double>() == Approx(32).epsilon(0.15));
  // Groups differ from one another.
  CHECK(test::relative_error(omega.narrow(0, 0, 16), omega.narrow(0, 16, 16)) > 0.5);
}

TEST_CASE("random features: the seed alone decides them, in every dtype and for every head") {
  CHECK(at::equal(drawn(20, 7, true), drawn(20, 7, true)));
  CHECK_FALSE(at::equal(drawn(20, 7, true), drawn(20, 7, true, true, 4)));
  RandomFeatures asked;
  asked.count = 20;
  asked.width = 7;
  Problem single;
  single.dtype = Dtype::bfloat16;
  const Tensor narrow = draw_features(3, "omega", asked, single);
  CHECK(narrow.scalar_type() == at::kFloat);
  CHECK(at::equal(narrow, drawn(20, 7, true).to(at::kFloat)));
  asked.blocks = 3;
  const Tensor each = draw_features(3, "omega", asked, in_double());
  CHECK(each.sizes() == at::IntArrayRef({3, 20, 7}));
  CHECK(max_cosine(each[2]) < 1e-12);
  CHECK(test::relative_error(each[0], each[1]) > 0.5);
}

TEST_CASE("random features: the estimated kernel has no bias") {
  // Without the sign fix of the QR decomposition the mean is 11 % low here.
  constexpr std::int64_t kWidth = 8, kGroups = 4000;
  const Tensor q = at::full({1, 1, 1, kWidth}, 0.4, at::kDouble);
  const Tensor k = at::linspace(0.1, 0.8, kWidth, at::kDouble).view({1, 1, 1, kWidth});
  const double exact = std::exp((q * k).sum().item<double>() / std::sqrt(8.0));
  for (const bool orthogonal : {true, false}) {
    Features map;
    map.omega = drawn(kWidth * kGroups, kWidth, orthogonal);
    map.scale = std::pow(8, -0.25);
    map.half_square = true;
    const Tensor each = (map.of(q) + map.of(k)).exp().view({kGroups, kWidth}).mean(1);
    const double error = each.std().item<double>() / std::sqrt(static_cast<double>(kGroups));
    const double z = (each.mean().item<double>() - exact) / error;
    CAPTURE(orthogonal, error, z);
    CHECK(std::abs(z) < 4);
    CHECK(error < 0.02 * exact);
  }
}

TEST_CASE("random features: performer comes to softmax as one over the root of their number") {
  // Inputs of deviation 0.25: much larger ones have kernels whose estimates have no such rate.
  constexpr std::int64_t kDraws = 24, kLength = 64, kWidth = 16;
  const auto options = at::TensorOptions(at::kDouble);
  at::manual_seed(7);
  const Tensor q = 0.25 * at::randn({1, kDraws, kLength, kWidth}, options);
  const Tensor k = 0.25 * at::randn({1, kDraws, kLength, kWidth}, options);
  const Tensor v = at::randn({1, kDraws, kLength, kWidth}, options);
  const Tensor exact = at::matmul(at::softmax(at::matmul(q, k.transpose(2, 3)) / 4, -1), v);
  std::vector<double> at_most;
  for (const bool orthogonal : {true, false}) {
    std::vector<double> errors;
    for (const std::int64_t count : {64, 256, 1024}) {
      RandomFeatures asked;
      asked.blocks = kDraws;
      asked.count = count;
      asked.width = kWidth;
      asked.orthogonal = orthogonal;
      Features map;
      map.omega = draw_features(11, "omega", asked, in_double());
      map.scale = 0.5;
      map.half_square = true;
      const Tensor y = prefix_pool::whole({q, map}, prefix_pool::Query::logits_plus_z, {k, map}, v);
      errors.push_back((y - exact).square().mean().sqrt().item<double>());
    }
    const double slope = std::log(errors[2] / errors[0]) / std::log(16);
    CAPTURE(orthogonal, errors[0], errors[1], errors[2], slope);
    CHECK(std::abs(slope + 0.5) < 0.1);
    at_most.push_back(errors[0]);
  }
  CHECK(at_most[0] < at_most[1]);  // orthogonal directions are the better ones
  CHECK(at_most[1] < 0.012);
}

TEST_CASE("performer draws its features anew after so many training forwards") {
  Problem problem;
  problem.length = problem.key_length = 12;
  problem.head_dim = problem.value_dim = 4;
  const auto made = [](const Problem& sizes) {
    const Entry entry = mechanisms::performer();
    const std::map<std::string, OptionValue> said{{"redraw_every", std::int64_t{2}},
                                                  {"features", std::int64_t{6}}};
    return entry.make(entry.derive(Options::resolve(entry.options, said), sizes), sizes);
  };
  const auto one = made(problem);
  const auto other = made(problem);
  one->draw_parameters(5);
  other->draw_parameters(5);
  const auto omega = [](const std::shared_ptr<Mechanism>& each) {
    return each->named_buffers()["omega"].clone();
  };
  const at::Tensor first = omega(one);
  CHECK(at::equal(first, omega(other)));
  const Implementation chunked = mechanisms::performer().implementation("chunked");
  Inputs inputs;
  for (const char* role : {"query", "key", "value"}) {
    inputs.tensors[role] = at::randn({1, 1, 12, 4}).requires_grad_(true);
  }
  const auto forward = [&](const std::shared_ptr<Mechanism>& each) {
    return chunked.mix(*each, inputs, nullptr).output;
  };
  const at::Tensor early = forward(one);
  {
    const at::NoGradGuard no_grad;
    for (int i = 0; i < 5; ++i) forward(one);  // none of them is trained on
  }
  one->eval();
  forward(one);
  one->train();
  forward(one);
  CHECK(at::equal(omega(one), first));
  forward(one);
  const at::Tensor second = omega(one);
  CHECK_FALSE(at::equal(second, first));
  // The backward pass of a forward before the drawing still has that one's features.
  early.sum().backward();
  const at::Tensor gradient = inputs["key"].grad().clone();
  inputs.tensors["key"].mutable_grad().reset();
  forward(other).sum().backward();
  CHECK(at::equal(gradient, inputs["key"].grad()));
  // The seed decides every drawing.
  for (int i = 0; i < 2; ++i) forward(other);
  CHECK(at::equal(omega(other), second));
  other->draw_parameters(5);
  CHECK(at::equal(omega(other), first));
}

}  // namespace attnbench
