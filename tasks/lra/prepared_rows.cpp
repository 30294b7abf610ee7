#include "tasks/lra/prepared_rows.hpp"

#include <algorithm>

#include "tasks/data/wanted.hpp"

namespace attnbench::tasks::lra {

PreparedRows::PreparedRows(std::shared_ptr<const Cache> cache, const Reading& reading)
    : cache_(std::move(cache)), reading_(reading) {
  const DataDescription& description = cache_->description();
  const std::int64_t pixels = std::int64_t{description.width} * description.width;
  if (pixels > 0 && reading.length != pixels) {
    throw UsageError(description.task + ": length is " + std::to_string(reading.length) +
                     ", but its images have " + std::to_string(pixels) +
                     " pixels: leave length at 0");
  }
  if (reading.values && pixels == 0) {
    throw UsageError(description.task +
                     ": input values is for images; its rows are symbols: set "
                     "input to tokens");
  }
  expect_length(*cache_, static_cast<std::uint64_t>(reading.length), reading.truncate);
  for (const training::Split split : training::every_split) {
    if (count(split) > 0) continue;
    throw UsageError(cache_->file().string() + ": has no rows of " + to_string(rows_of(split)) +
                     (split == training::Split::validation
                          ? ": prepare it with rows held out, or set validation to test"
                          : ": prepare data that have some"));
  }
}

Split PreparedRows::rows_of(training::Split split) const {
  if (split == training::Split::train) return Split::train;
  if (split == training::Split::validation && !reading_.test_as_validation) {
    return Split::validation;
  }
  return Split::test;
}

std::int64_t PreparedRows::count(training::Split split) const {
  const auto all = static_cast<std::int64_t>(cache_->facts(rows_of(split)).rows);
  const std::int64_t wanted = reading_.examples.of(split);
  return wanted > 0 ? std::min(wanted, all) : all;
}

std::vector<training::SegmentSize> PreparedRows::segments(training::Split split) const {
  return {{cache_->description().task, reading_.length, count(split), 1}};
}

training::Batch PreparedRows::batch(training::Split split, std::size_t,
                                    const std::vector<std::int64_t>& examples) const {
  const std::span<const std::uint32_t> index = cache_->index(rows_of(split));
  const std::int64_t rows = count(split);
  const auto size = static_cast<std::int64_t>(examples.size());
  const int documents = cache_->description().towers;
  const bool padded = cache_->description().width == 0;
  training::Batch batch;
  const at::Tensor ids = at::zeros({documents * size, reading_.length}, at::kLong);
  batch.labels = at::empty({size}, at::kLong);
  if (padded) batch.lengths = at::empty({documents * size}, at::kLong);
  auto* tokens = ids.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < size; ++i) {
    const std::uint32_t row =
        index[static_cast<std::size_t>(examples[static_cast<std::size_t>(i)] % rows)];
    batch.labels.data_ptr<std::int64_t>()[i] = cache_->label(row);
    for (int document = 0; document < documents; ++document) {
      const std::int64_t sequence = document * size + i;
      const std::size_t copied = cache_->copy(
          row, document,
          {tokens + sequence * reading_.length, static_cast<std::size_t>(reading_.length)});
      if (padded) {
        batch.lengths.data_ptr<std::int64_t>()[sequence] = static_cast<std::int64_t>(copied);
      }
    }
  }
  if (reading_.zero_is_padding) {
    batch.real = ids.ne(0);
    // A black image would have no token at all.
    batch.real.select(1, 0).logical_or_(batch.real.any(1).logical_not());
  }
  if (reading_.values) {
    batch.values = ids.to(at::kFloat).div_(127.5).sub_(1);
  } else {
    batch.tokens = ids;
  }
  return batch;
}

Json PreparedRows::facts() const {
  const DataDescription& description = cache_->description();
  Json splits = Json::object();
  for (const training::Split split : training::every_split) {
    const Split of = rows_of(split);
    const SplitFacts& facts = cache_->facts(of);
    splits[to_string(split)] = {{"rows", count(split)},
                                {"rows_of", to_string(of)},
                                {"rows_prepared", facts.rows},
                                {"index_hash", facts.index_hash},
                                {"mean_length", facts.mean_length(description.towers)},
                                {"longest", facts.longest},
                                {"majority", facts.majority()}};
  }
  return {{"task", description.task},
          {"source", description.source},
          {"source_hash", description.source_hash},
          {"content_hash", cache_->content_hash()},
          {"settings", description.settings},
          {"classes", description.classes},
          {"notes", description.notes},
          {"splits", std::move(splits)}};
}

}  // namespace attnbench::tasks::lra
