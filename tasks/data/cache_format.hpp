// The bytes of a cache file, shared by what writes it (prepare.cpp) and what maps it (cache.cpp).
// Little-endian. In this order:
//
//   FileHeader, description as JSON text, zeros up to a multiple of 64
//   blocks of 1,000 rows (the last one fewer), each: BlockHeader, payload, zeros up to a multiple
//     of 64. The payload is, for n rows of w towers:
//       uint32 offsets[n * w + 1]   where each document's tokens begin, in tokens of the block
//       int32  labels[n]
//       uint32 orders[n]
//       uint8  splits[n], zeros up to a multiple of 8
//       uint8, uint16 or uint32 tokens[offsets[n * w]], each less the description's first_token
//   the footer: uint64 block positions, uint32 row numbers of train, validation and test in their
//     order, facts as JSON text
//   Trailer
//
// A file that is being prepared has no footer and no trailer: what its blocks are worth is told by
// their hashes alone. No time and no path is in it: the same rows give the same bytes.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

namespace attnbench::tasks::data::format {

static_assert(std::endian::native == std::endian::little, "caches are little-endian");

constexpr std::uint32_t version = 1;
constexpr std::array<char, 8> magic{'A', 'T', 'T', 'N', 'L', 'R', 'A', '\n'};
constexpr std::uint64_t block_mark = 0x4b434f4c42'4c5241ull;
constexpr std::uint32_t rows_per_block = 1000;
constexpr std::uint64_t alignment = 64;

struct FileHeader {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t text_bytes;
  std::uint64_t text_hash;    ///< low half of the XXH3 of the text
  std::uint64_t token_bytes;  ///< 1, 2 or 4
};
static_assert(sizeof(FileHeader) == 32);

struct BlockHeader {
  std::uint64_t mark;
  std::uint64_t first_row;
  std::uint64_t rows;
  std::uint64_t payload_bytes;
  std::array<std::uint64_t, 2> payload_hash;
  std::array<std::uint64_t, 2> zeros;
};
static_assert(sizeof(BlockHeader) == 64);

struct Trailer {
  std::uint64_t footer_position;
  std::uint64_t footer_bytes;
  std::uint64_t footer_hash;
  std::uint64_t facts_bytes;
  std::uint64_t rows;
  std::uint64_t blocks;
  std::uint64_t zero;
  std::array<char, 8> magic;
};
static_assert(sizeof(Trailer) == 64);

inline std::string_view view(const unsigned char* bytes, std::uint64_t count) {
  return {reinterpret_cast<const char*>(bytes), count};
}

constexpr std::uint64_t rounded_up(std::uint64_t bytes, std::uint64_t to = alignment) {
  return (bytes + to - 1) / to * to;
}

/// Where the parts of a payload of `rows` rows begin, in bytes.
struct PayloadLayout {
  std::uint64_t labels, orders, splits, tokens;
  PayloadLayout(std::uint64_t rows, std::uint64_t towers)
      : labels(4 * (rows * towers + 1)),
        orders(labels + 4 * rows),
        splits(orders + 4 * rows),
        tokens(rounded_up(splits + rows, 8)) {}
};

}  // namespace attnbench::tasks::data::format
