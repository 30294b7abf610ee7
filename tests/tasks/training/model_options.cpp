#include "tasks/training/model_options.hpp"

#include "tests/tasks/training/model_of.hpp"

using namespace attnbench;
using namespace attnbench::test;

TEST_CASE("weights_around counts the weights of every model and layout", "[model]") {
  const auto check = [](const ModelOptions& options, std::int64_t mixes) {
    const auto model = model_of("softmax", small(), options);
    CHECK(static_cast<std::int64_t>(model->mixes()) == mixes);
    CHECK(weights_in(*model) == weights_around(options, small()) + mixes * 4 * 8 * 8);
  };
  for (const Mlp mlp : {Mlp::plain, Mlp::gated, Mlp::none, Mlp::identity}) {
    for (const Norm norm : {Norm::layer, Norm::rms}) {
      for (const bool tied : {true, false}) {
        check({3, 11, mlp, mlp == Mlp::gated ? 20 : 0, norm, tied}, 3);
      }
    }
    for (const Positions positions :
         {Positions::none, Positions::learned, Positions::sinusoidal, Positions::rotary}) {
      ModelOptions options{3, 11, mlp, 0, Norm::layer, true};
      options.layout = Layout::convolution_first;
      options.positions = positions;
      check(options, 1);
    }
  }
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

TEST_CASE("a model of one sequence refuses cross attention, and unknown names", "[model]") {
  CHECK_THROWS_AS(model_of("softmax", small(Pattern::cross), {}), UnsupportedError);
  CHECK_THROWS_AS(mlp_from("wide"), UsageError);
  CHECK_THROWS_AS(layout_from("sandwich"), UsageError);
  CHECK_THROWS_AS(positions_from("absolute"), UsageError);
  CHECK_THROWS_AS(norm_from("batch"), UsageError);
}
