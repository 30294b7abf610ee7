#include "tasks/training/examples.hpp"

#include <algorithm>

namespace attnbench::tasks::learning {

Batch batch_of(const std::vector<Sheet>& sheets, std::int64_t tokens_per_position) {
  const auto rows = static_cast<std::int64_t>(sheets.size());
  const std::int64_t length =
      static_cast<std::int64_t>(sheets.front().tokens.size()) / tokens_per_position;
  std::vector<std::int64_t> shape{rows, length};
  if (tokens_per_position > 1) shape.push_back(tokens_per_position);
  std::size_t labels = 0;
  std::size_t most = 0;
  bool placed = true;
  for (const Sheet& sheet : sheets) {
    labels += sheet.questions.size();
    most = std::max(most, sheet.candidates.size());
    for (const Question& question : sheet.questions) placed = placed && question.place >= 0;
  }
  const auto column = [&] { return at::empty({static_cast<std::int64_t>(labels)}, at::kLong); };
  Batch batch{
      at::empty(shape, at::kLong),
      column(),
      column(),
      column(),
      at::full({static_cast<std::int64_t>(labels), static_cast<std::int64_t>(most)}, -1, at::kLong),
      {}};
  if (placed) batch.places = column();
  auto* tokens = batch.tokens.data_ptr<std::int64_t>();
  auto* candidates = batch.candidates.data_ptr<std::int64_t>();
  std::int64_t i = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const Sheet& sheet = sheets[static_cast<std::size_t>(row)];
    tokens = std::copy(sheet.tokens.begin(), sheet.tokens.end(), tokens);
    for (const Question& question : sheet.questions) {
      batch.positions.data_ptr<std::int64_t>()[i] = row * length + question.position;
      batch.labels.data_ptr<std::int64_t>()[i] = question.answer;
      batch.distances.data_ptr<std::int64_t>()[i] = question.distance;
      if (placed) batch.places.data_ptr<std::int64_t>()[i] = question.place;
      std::copy(sheet.candidates.begin(), sheet.candidates.end(), candidates);
      candidates += most;
      ++i;
    }
  }
  return batch;
}

}  // namespace attnbench::tasks::learning
