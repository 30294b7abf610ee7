// Prepared rows in one file that is mapped, not read: opening costs the same for 3 GB as for 3 KB.
// tasks/data/prepare.hpp writes it, tasks/data/cache_format.hpp has its bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tasks/data/rows.hpp"

namespace attnbench::tasks::data {

/// What a record says of one split.
struct SplitFacts {
  std::uint64_t rows = 0;
  std::uint64_t tokens = 0;    ///< of all rows, both towers
  std::uint32_t shortest = 0;  ///< tokens of a document
  std::uint32_t longest = 0;
  std::vector<std::uint64_t> of_label;  ///< rows of each class
  std::string index_hash;               ///< hash of the split's row contents, in order

  double mean_length(int towers) const;  ///< tokens of a document; 0 without rows
  /// The share of the most frequent class: what a model gets that has learned nothing.
  double majority() const;
};
ATTNBENCH_JSON(SplitFacts);

/// What the end of a cache says of its rows.
struct CacheFacts {
  std::string content_hash;
  std::map<std::string, SplitFacts> splits;
};
ATTNBENCH_JSON(CacheFacts);

class Cache {
 public:
  /// Maps `file`. Throws UsageError "FILE: …" for one that is not there, is not a cache, is of
  /// another version, cut short, or damaged in what is read here (header, index); blocks of rows
  /// are held to their hash when they are first used.
  explicit Cache(const std::filesystem::path& file);
  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  const std::filesystem::path& file() const { return file_; }
  const DataDescription& description() const { return description_; }
  /// The hash of all rows in the order of their splits: equal for equal data, whatever they were
  /// read from.
  const std::string& content_hash() const { return content_hash_; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t rows() const { return rows_; }
  const SplitFacts& facts(Split split) const { return facts_[static_cast<std::size_t>(split)]; }

  /// Numbers of the rows of `split`, in the order of the data set. Views into the map.
  std::span<const std::uint32_t> index(Split split) const {
    return index_[static_cast<std::size_t>(split)];
  }

  // ---- one row, by its number in [0, rows()). Safe from several threads. Throws UsageError where
  // the row's block is not what was written, std::out_of_range for another number or tower.

  std::int32_t label(std::uint64_t row) const;
  Split split(std::uint64_t row) const;
  /// Tokens of the document of `tower`, 0 or 1.
  std::uint32_t length(std::uint64_t row, int tower = 0) const;
  /// The first ids of the document, at most out.size(); returns how many. What is left of `out`
  /// keeps its value: padding is the caller's.
  std::size_t copy(std::uint64_t row, int tower, std::span<std::int64_t> out) const;

 private:
  struct Place;
  Place place(std::uint64_t row, int tower) const;
  void check_block(std::uint64_t block) const;
  [[noreturn]] void refuse(const std::string& fault) const;
  void read_header();
  void read_footer();

  std::filesystem::path file_;
  const unsigned char* map_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::uint64_t rows_ = 0;
  std::uint64_t data_position_ = 0;
  std::uint64_t token_bytes_ = 1;
  DataDescription description_;
  std::string content_hash_;
  std::array<SplitFacts, 3> facts_;
  std::array<std::span<const std::uint32_t>, 3> index_;
  std::span<const std::uint64_t> blocks_;
  /// Whether a block was held to its hash; set once, by any thread.
  mutable std::vector<std::atomic<bool>> checked_;
};

}  // namespace attnbench::tasks::data
