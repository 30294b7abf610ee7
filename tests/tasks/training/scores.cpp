#include "tasks/training/scores.hpp"

#include "tests/tasks/training/small_training.hpp"

using namespace attnbench;
using namespace attnbench::test;

TEST_CASE("scores are those of the whole logits", "[trainer]") {
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
