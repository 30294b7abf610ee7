// Pathfinder (Linsley et al. 2018) as Long Range Arena generates it: two dashed paths among
// distractors, a white disc at the beginning of one and at an end; label 1 if both discs lie on the
// same path. The recipe and its constants: drewlinsley/pathfinder (revision ab9c130) with the
// arguments of google-research/long-range-arena @cd31e5c, data/pathfinder.py, written anew from a
// description in words.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "tasks/data/rows.hpp"

namespace attnbench::tasks::data::lra {

struct PathfinderRules {
  int side = 32;                    ///< 32, 64, 128 ("Path-X") or 256
  std::string difficulty = "hard";  ///< easy, intermediate, hard: paths of 6, 9, 14 dashes
  /// true keeps what the published images depend on: where OpenCV's dilation of floats has nothing
  /// under its kernel it returns a huge negative number, which the original takes for "no room". At
  /// 32 pixels only first dashes towards the upper left are left (-150 to -120 degrees), and most
  /// distractors are missing. false: every orientation alike.
  bool compat = true;
  SplitCounts rows{160'000, 20'000, 20'000};
  std::uint64_t seed = 0;
};

struct PathfinderImage {
  std::vector<std::uint8_t> pixels;  ///< side x side in rows; 0 and 255 both occur
  int label = 0;
  int distractors = 0;        ///< placed, of those asked for
  std::int64_t attempts = 0;  ///< pairs of paths begun
};

/// Paints images of rules. All that does not change from image to image is prepared once; painting
/// is safe from several threads.
class PathfinderPainter {
 public:
  /// Throws UsageError for a side or difficulty that is not offered.
  explicit PathfinderPainter(const PathfinderRules& rules);
  ~PathfinderPainter();
  PathfinderPainter(const PathfinderPainter&) = delete;
  PathfinderPainter& operator=(const PathfinderPainter&) = delete;

  PathfinderImage paint(Random& draws) const;

 private:
  struct Prepared;
  std::unique_ptr<const Prepared> prepared_;
};

/// Rows of rules: ids are grey levels, no padding. Each is made alone from (seed, split, number).
class PathfinderGenerator final : public RowSource {
 public:
  explicit PathfinderGenerator(const PathfinderRules& rules);
  const DataDescription& description() const override { return description_; }
  std::uint64_t rows() const override { return rules_.rows.total(); }
  std::uint64_t cache_bytes() const override;
  void make(std::uint64_t number, Row& row) override;
  bool any_order() const override { return true; }
  /// The image of a row, with what the row does not hold.
  PathfinderImage image(std::uint64_t number) const;

 private:
  PathfinderRules rules_;
  PathfinderPainter painter_;
  DataDescription description_;
};

/// What a cache of such images says of itself, whether they were generated or read.
DataDescription pathfinder_description(int side);

/// The folder of a difficulty: "curv_baseline", "curv_contour_length_9" or
/// "curv_contour_length_14". Throws UsageError for another.
std::string pathfinder_folder(const std::string& difficulty);

}  // namespace attnbench::tasks::data::lra
