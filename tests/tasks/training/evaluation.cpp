#include "tasks/training/evaluation.hpp"

#include "tasks/training/record.hpp"
#include "tests/tasks/training/small_training.hpp"

using namespace attnbench;
using namespace attnbench::test;

TEST_CASE("scores equal those from the logits of all positions", "[trainer]") {
  const RecallData data = small_data();
  const auto model = small_model("latte", comparison());
  std::vector<std::int64_t> all(20);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  const Batch batch = data.batch(Split::validation, 0, all);
  const at::NoGradGuard no_grad;
  const at::Tensor answers =
      model->forward(batch.tokens).argmax(-1).flatten().index_select(0, batch.positions);
  const Scores scores = evaluate(*model, data, Split::validation, 0, 1000, 7);
  CHECK(scores.questions == 40);
  CHECK(scores.right == answers.eq(batch.labels).sum().item<std::int64_t>());
  std::int64_t known = 0;
  for (std::int64_t i = 0; i < 40; ++i) {
    const auto answer = answers[i].item<std::int64_t>();
    if (answer == batch.labels[i].item<std::int64_t>()) continue;
    for (std::int64_t j = 0; j < batch.candidates.size(1); ++j) {
      known += batch.candidates[i][j].item<std::int64_t>() == answer;
    }
  }
  CHECK(scores.wrong_from_context == known);
  CHECK(scores.right + scores.wrong_from_context + scores.wrong_from_elsewhere == 40);
}

TEST_CASE("a model learns its training data, and the record reports it", "[trainer]") {
  // Two pairs and few tokens: small enough to memorise in a second.
  const RecallData data = small_data();
  const auto model = small_model("softmax", comparison());
  TrainerOptions options = quick();
  options.epochs = 60;
  options.embedding_dropout = 0;
  options.optimiser.learning_rate = 1e-2;
  options.checkpoint_seconds = 1e9;
  Trainer trainer(*model, data, options, nullptr);
  trainer.train();
  const Json sections = training_record(*model, data, trainer, 8, 32);
  const Json& metrics = sections["metrics"];
  CHECK(metrics["train_accuracy"].get<double>() > 0.9);
  const Json& training = sections["training"];
  CHECK(training["steps"] == 300);
  CHECK(training["curve"].size() == 60);
  CHECK(training["curve"].back()["loss"].get<double>() <
        training["curve"].front()["loss"].get<double>() / 4);
  // Keys and values of 32 tokens, of two heads of 8, and the convolution's two tokens of 16.
  CHECK(training["state_bytes"]["mechanism"] == 2 * 32 * 16 * 4);
  CHECK(training["state_bytes"]["convolution"] == 2 * 16 * 4);
  CHECK(metrics["state_bytes"] == 4096 + 128);
  CHECK(training["parameters"]["mechanism"] == 4 * 16 * 16);
  std::int64_t weights = 0;
  for (const auto& item : model->named_parameters()) weights += item.value().numel();
  CHECK(training["parameters"]["total"] == weights);
  REQUIRE(training["test"].size() == 2);
  double mean = 0;
  std::int64_t questions = 0;
  for (const Json& segment : training["test"]) {
    const double right = segment["accuracy"];
    mean += right * segment["examples"].get<double>() / 30;
    questions += segment["questions"].get<std::int64_t>();
    CHECK(right + segment["wrong_from_context"].get<double>() +
              segment["wrong_from_elsewhere"].get<double>() ==
          Approx(1));
  }
  CHECK(metrics["accuracy"].get<double>() == Approx(mean));
  std::int64_t counted = 0;
  for (const Json& count : training["look_back"]["questions"]) counted += count.get<std::int64_t>();
  CHECK(counted == questions);
  CHECK(questions == 20 * 2 + 10 * 4);
}
