// Prepared data of Long Range Arena as batches of a training. Rows stay in the mapped file until a
// batch needs them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tasks/data/cache.hpp"
#include "tasks/training/data.hpp"

namespace attnbench::tasks::lra {

using namespace data;

/// The setting by which black pixels are left out, as DataSet::masks_between names it.
inline constexpr const char* black_pixels_masked = "image_mask=zero_is_pad";

/// How rows become sequences of one length.
struct Reading {
  std::int64_t length = 0;          ///< tokens of a sequence; shorter rows are followed by zeros
  bool truncate = false;            ///< longer rows lose their end; otherwise they are refused
  bool values = false;              ///< grey levels 0 to 255 as numbers -1 to 1 in place of ids
  bool zero_is_padding = false;     ///< black pixels are masked, as published code does
  bool test_as_validation = false;  ///< as published protocols do where there is no other split
  /// The first examples of each split; 0 = all.
  training::BySplit<std::int64_t> examples;
};

/// Batches hold tokens [B, T], or values [B, T], and labels [B]; lengths where rows are padded, and
/// which pixels are real where black ones are not. Of
/// two towers all first documents come before all second ones: [2 B, T].
class PreparedRows final : public training::DataSet {
 public:
  /// Throws UsageError for a row that is too long, values of rows that are not images, images of
  /// another length, or a split without rows.
  PreparedRows(std::shared_ptr<const Cache> cache, const Reading& reading);

  std::vector<training::SegmentSize> segments(training::Split split) const override;
  std::int64_t classes() const override {
    return static_cast<std::int64_t>(cache_->description().classes.size());
  }
  std::string content_hash() const override { return cache_->content_hash(); }
  std::int64_t towers() const override { return cache_->description().towers; }
  std::string masks_between() const override {
    return reading_.zero_is_padding ? black_pixels_masked : "";
  }
  training::Batch batch(training::Split split, std::size_t segment,
                        const std::vector<std::int64_t>& examples) const override;

  const Cache& cache() const { return *cache_; }
  /// What a record says of the data: source, hashes, rows and lengths of each split, the share of
  /// the most frequent class.
  Json facts() const;
  /// The share of the most frequent class of the test.
  double majority() const { return cache_->facts(Split::test).majority(); }

 private:
  Split rows_of(training::Split split) const;
  std::int64_t count(training::Split split) const;

  std::shared_ptr<const Cache> cache_;
  Reading reading_;
};

}  // namespace attnbench::tasks::lra
