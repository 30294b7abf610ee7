// The bytes of a cache file as rows become them: header, blocks of 1,000 rows, and the footer with
// the index and the facts. tasks/data/cache_format.hpp has their layout.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tasks/data/cache.hpp"

namespace attnbench::tasks::data {

using Bytes = std::vector<unsigned char>;

/// The header of a file with rows of `description`, up to the first block.
Bytes header_of(const DataDescription& description);

/// Bytes of a stored token: 1, 2 or 4.
std::uint64_t token_bytes_of(const DataDescription& description);

/// The rows of one block as its bytes, block header included.
class BlockEncoder {
 public:
  /// `description` must outlive it. `first_row`: number of the block's first row in the file.
  BlockEncoder(const DataDescription& description, std::uint64_t first_row);

  /// Throws std::logic_error for a row that breaks `description`: a mistake of the source.
  void add(const Row& row);
  Bytes bytes() const;

 private:
  void add_tokens(const std::vector<Token>& tokens);

  const DataDescription& description_;
  std::uint64_t token_bytes_;
  std::uint64_t first_row_;
  std::vector<std::uint32_t> offsets_{0};
  std::vector<std::int32_t> labels_;
  std::vector<std::uint32_t> orders_;
  Bytes splits_, tokens_;
};

/// The index and the facts of a file, gathered from its blocks as they stand there.
class CacheIndex {
 public:
  /// `description` must outlive it.
  explicit CacheIndex(const DataDescription& description);

  /// Adds a block. `block`: as BlockEncoder makes it; `position`: where it stands in the file.
  /// Blocks come in the file's order.
  void add_block(const Bytes& block, std::uint64_t position);

  /// The footer and the trailer of a file whose blocks end at `position`. Throws std::logic_error
  /// where two rows have one place in their split.
  Bytes footer(std::uint64_t position);

 private:
  struct Entry {
    std::uint32_t order, row;
    std::uint64_t hash;  ///< hash of label and documents
  };

  const DataDescription& description_;
  std::array<SplitFacts, 3> facts_;
  std::array<std::vector<Entry>, 3> rows_;
  std::vector<std::uint64_t> positions_;
};

}  // namespace attnbench::tasks::data
