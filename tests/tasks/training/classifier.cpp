#include "tasks/training/classifier.hpp"

#include <cmath>

#include "attention/torch/draw.hpp"
#include "tasks/training/evaluation.hpp"
#include "tests/tasks/training/model_of.hpp"
#include "tests/tasks/training/synthetic_classes.hpp"

using namespace attnbench;
using namespace attnbench::test;

namespace {

ModelOptions classifying(Pooling pooling = Pooling::mean, std::int64_t towers = 1) {
  ModelOptions options;
  options.vocabulary = 11;
  options.classifier.classes = 3;
  options.classifier.towers = towers;
  options.classifier.pooling = pooling;
  return options;
}

at::Tensor mask_of_lengths(const std::vector<std::int64_t>& lengths, std::int64_t tokens) {
  Batch batch;
  batch.tokens = at::zeros({static_cast<std::int64_t>(lengths.size()), tokens}, at::kLong);
  batch.lengths = at::tensor(lengths, at::kLong);
  return key_mask_of(batch);
}

double greatest(const at::Tensor& difference) { return difference.abs().max().item<double>(); }

}  // namespace

TEST_CASE("each pooling is what it says", "[classifier]") {
  const Problem problem = small(Pattern::bidirectional);
  const at::Tensor x = at::arange(2 * 7 * 8, at::kDouble).view({2, 7, 8}).sin();
  const at::Tensor mask = mask_of_lengths({3, 7}, 7);
  const auto pooled = [&](Pooling pooling) {
    return Classifier(classifying(pooling).classifier, problem, 1).pooled(x, mask);
  };
  CHECK(greatest(pooled(Pooling::mean)[0] - x[0].narrow(0, 0, 3).mean(0)) < 1e-15);
  CHECK(greatest(pooled(Pooling::mean)[1] - x[1].mean(0)) < 1e-15);
  CHECK(greatest(pooled(Pooling::mean_padded)[0] - x[0].narrow(0, 0, 3).sum(0) / 7) < 1e-15);
  CHECK(at::equal(pooled(Pooling::first), x.select(1, 0)));
  CHECK(at::equal(pooled(Pooling::last), at::stack({x[0][2], x[1][6]})));
  const Classifier all(classifying(Pooling::last).classifier, problem, 1);
  CHECK(at::equal(all.pooled(x, {}), x.select(1, 6)));
  for (const char* word : {"mean", "mean_padded", "first", "last", "cls"}) {
    CHECK(to_string(pooling_from(word)) == std::string(word));
  }
  CHECK_THROWS_AS(pooling_from("max"), UsageError);
}

TEST_CASE("two towers share all weights, and the head joins their vectors", "[classifier]") {
  for (const TowerFeatures features :
       {TowerFeatures::concat, TowerFeatures::concat_difference_product}) {
    ModelOptions options = classifying(Pooling::mean, 2);
    options.classifier.features = features;
    const auto model = model_of("softmax", small(Pattern::bidirectional), options);
    const at::Tensor first = some_ids();
    const at::Tensor second = some_ids().add(4).remainder(11);
    const at::Tensor mask = mask_of_lengths({7, 4, 2, 7}, 7);
    const at::Tensor logits = model->forward(at::cat({first, second}), mask);
    const at::Tensor x =
        model->features(first, mask.narrow(0, 0, 2)).mul(mask.narrow(0, 0, 2).unsqueeze(2)).sum(1) /
        at::tensor({7.0, 4.0}, at::kDouble).unsqueeze(1);
    const at::Tensor y = model->features(second, mask.narrow(0, 2, 2))
                             .mul(mask.narrow(0, 2, 2).unsqueeze(2))
                             .sum(1) /
                         at::tensor({2.0, 7.0}, at::kDouble).unsqueeze(1);
    const at::Tensor joined =
        features == TowerFeatures::concat ? at::cat({x, y}, 1) : at::cat({x, y, x * y, x - y}, 1);
    const auto weights = model->named_parameters();
    const at::Tensor want =
        at::matmul(joined, weights["classifier.weight_0"]) + weights["classifier.bias_0"];
    CHECK(logits.sizes() == at::IntArrayRef({2, 3}));
    CHECK(greatest(logits - want) < 1e-12);
    CHECK(weights_in(*model) ==
          weights_around(options, small(Pattern::bidirectional)) + 2 * 4 * 8 * 8);
  }
}

TEST_CASE("the token of pooling cls stands before the others and is never padding",
          "[classifier]") {
  ModelOptions options = classifying(Pooling::cls);
  options.positions = Positions::learned;
  options.classifier.width = 6;
  options.classifier.layers = 3;
  Problem problem = small(Pattern::bidirectional);
  CHECK_THROWS_AS(model_of("softmax", small(), options), UsageError);
  problem.length = problem.key_length = mix_length(options, 7);
  CHECK(problem.length == 8);
  const auto model = model_of("softmax", problem, options);
  CHECK(weights_in(*model) == weights_around(options, problem) + 2 * 4 * 8 * 8);
  const at::Tensor mask = mask_of_lengths({3, 7}, 7);
  const at::Tensor features = model->features(some_ids(), mask);
  CHECK(features.size(1) == 8);
  CHECK(
      model->mix_inputs(0, some_ids(), mask).key_mask.sum(1).equal(at::tensor({4, 8}, at::kLong)));
  at::Tensor spoiled = some_ids().clone();
  spoiled[0].narrow(0, 3, 4).fill_(9);
  CHECK(at::equal(model->forward(spoiled, mask), model->forward(some_ids(), mask)));
  options.classifier.layers = 5;  // 6, 3, 1, 0
  CHECK_THROWS_AS(model_of("softmax", problem, options), UsageError);
}

TEST_CASE("numbers enter through a linear map", "[classifier]") {
  ModelOptions options = classifying();
  options.input = ModelInput::values;
  options.mlp = Mlp::none;
  options.layers = 1;
  options.final_norm = false;
  const Problem problem = small(Pattern::bidirectional);
  const auto model = model_of("softmax", problem, options);
  CHECK(weights_in(*model) == weights_around(options, problem) + 4 * 8 * 8);
  const at::NoGradGuard no_grad;
  auto weights = model->named_parameters();
  CHECK_FALSE(weights.contains("last_norm.weight"));
  weights["block_0.attention.weight_out"].zero_();
  weights["embedding_bias"].fill_(0.25);
  const at::Tensor values = at::linspace(-1, 1, 14).view({2, 7});
  const at::Tensor want = values.to(at::kDouble).unsqueeze(2) * weights["embedding"][0] + 0.25;
  CHECK(greatest(model->features(values) - want) < 1e-12);
  options.classifier.classes = 0;
  CHECK_THROWS_AS(model_of("softmax", problem, options), UsageError);
}

TEST_CASE("biases of projections are added to all roles and the output", "[classifier]") {
  ModelOptions options = classifying();
  options.projection_bias = true;
  options.layers = 1;
  const auto model = model_of("softmax", small(Pattern::bidirectional), options);
  const at::NoGradGuard no_grad;
  const Inputs before = model->mix_inputs(0, some_ids());
  const at::Tensor features = model->features(some_ids());
  auto weights = model->named_parameters();
  for (const char* role : {"query", "key", "value"}) {
    weights["block_0.attention.bias_" + std::string(role)].copy_(at::arange(8, at::kDouble));
  }
  const Inputs after = model->mix_inputs(0, some_ids());
  for (const char* role : {"query", "key", "value"}) {
    const at::Tensor want = at::arange(8, at::kDouble).view({1, 2, 1, 4});
    CHECK(greatest(after[role] - before[role] - want) < 1e-12);
  }
  weights["block_0.attention.bias_out"].fill_(1);
  CHECK(greatest(model->features(some_ids()) - features) > 1e-3);
}

TEST_CASE("dropout in blocks follows its seed, and processes draw the same masks", "[classifier]") {
  const auto model = model_of("softmax", small(Pattern::bidirectional), classifying());
  Dropout dropout;
  dropout.block_share = 0.5;
  const auto features = [&](std::uint64_t seed) {
    dropout.generator = seeded_generator(seed, at::kCPU);
    return model->features(some_ids(), {}, dropout);
  };
  CHECK(at::equal(features(1), features(1)));
  CHECK_FALSE(at::equal(features(1), features(2)));
  CHECK_FALSE(at::equal(features(1), model->features(some_ids())));
  // Two processes of one example each, of two sequences: their parts are those of the whole.
  const at::Tensor whole = at::ones({4, 5});
  Dropout all{0, seeded_generator(3, at::kCPU), 0, 0, 0, 2};
  const at::Tensor want = all.applied(whole, 0.5);
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    Dropout part{0, seeded_generator(3, at::kCPU), rank, 2, 0, 2};
    const at::Tensor got = part.applied(at::ones({2, 5}), 0.5);
    CHECK(at::equal(got, at::stack({want[rank], want[2 + rank]})));
  }
}

TEST_CASE("scores of classes have no context, and count what was taken for what", "[classifier]") {
  const SyntheticClasses data;
  ModelOptions options = classifying();
  options.vocabulary = SyntheticClasses::vocabulary;
  options.classifier.classes = data.classes();
  Problem problem = small(Pattern::bidirectional);
  problem.length = problem.key_length = SyntheticClasses::length;
  const auto model = model_of("latte", problem, options);
  const SplitScores all = evaluate_all(*model, data, Split::test, 7);
  const Scores scores = all.sum();
  CHECK(scores.questions == 40);
  CHECK_FALSE(scores.from_context);
  CHECK(scores.by_distance.empty());
  REQUIRE(scores.confusion.size() == 16);
  std::int64_t sum = 0;
  std::int64_t right = 0;
  for (std::size_t i = 0; i < 16; ++i) {
    sum += scores.confusion[i];
    if (i % 5 == 0) right += scores.confusion[i];
  }
  CHECK(sum == 40);
  CHECK(right == scores.right);
  // In whatever batches: padding and neighbours change nothing.
  CHECK(evaluate_all(*model, data, Split::test, 40).sum().confusion == scores.confusion);
}

TEST_CASE("pooling first and last find real tokens where others around them are masked",
          "[classifier]") {
  const Problem problem = small(Pattern::bidirectional);
  const Classifier first(classifying(Pooling::first).classifier, problem, 1);
  const Classifier last(classifying(Pooling::last).classifier, problem, 1);
  const at::Tensor x = at::arange(2 * 6 * 16, at::kDouble).view({2, 6, 16});
  Batch batch;
  batch.tokens = at::zeros({2, 6}, at::kLong);
  batch.real = at::zeros({2, 6}, at::kBool);
  for (const std::int64_t t : {0, 2, 5}) batch.real[0][t].fill_(true);
  for (const std::int64_t t : {2, 4}) batch.real[1][t].fill_(true);
  CHECK(at::equal(first.pooled(x, key_mask_of(batch)), at::stack({x[0][0], x[1][2]})));
  CHECK(at::equal(last.pooled(x, key_mask_of(batch)), at::stack({x[0][5], x[1][4]})));
}

TEST_CASE("padding on the left: pooling cls refuses it, first begins behind it", "[classifier]") {
  const Problem problem = small(Pattern::bidirectional);
  Batch batch;
  batch.tokens = some_ids();
  batch.labels = at::zeros({2}, at::kLong);
  batch.real = at::ones({2, 7}, at::kBool);
  batch.real[1].narrow(0, 0, 3).fill_(false);
  const auto cls_model = [&](bool masks_between) {
    ModelOptions options = classifying(Pooling::cls);
    options.classifier.masks_between = masks_between;
    Problem longer = problem;
    longer.length = longer.key_length = mix_length(options, 7);
    return model_of("softmax", longer, options);
  };
  const auto cls = cls_model(false);
  CHECK_THROWS_AS(labelled_logits(*cls, batch), UsageError);
  CHECK_THROWS_WITH(labelled_logits(*cls, batch),
                    Catch::Contains("pooling cls") && Catch::Contains("sequence 1") &&
                        Catch::Contains("expected padding after the tokens"));
  CHECK(labelled_logits(*cls_model(true), batch).sizes() == at::IntArrayRef({2, 3}));  // of images
  Batch right = batch;
  right.real = at::ones({2, 7}, at::kBool);
  right.real[1].narrow(0, 4, 3).fill_(false);
  CHECK_NOTHROW(labelled_logits(*cls, right));

  // The four real tokens alone, and behind three others that are masked: the same logits, for the
  // model has no positions.
  const auto first = model_of("softmax", problem, classifying(Pooling::first));
  const at::Tensor real = batch.tokens.narrow(0, 1, 1).narrow(1, 3, 4);
  CHECK(greatest(labelled_logits(*first, batch)[1] - first->forward(real)[0]) < 1e-12);
  batch.tokens[1].narrow(0, 0, 3).fill_(9);
  CHECK(greatest(labelled_logits(*first, batch)[1] - first->forward(real)[0]) < 1e-12);
}
