#include "tasks/data/cache.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "tasks/data/cache_format.hpp"

namespace attnbench::tasks::data {
namespace {

using tasks::data::format::BlockHeader;
using tasks::data::format::FileHeader;
using tasks::data::format::Trailer;
using tasks::data::format::view;

template <class Number>
Number number_at(const unsigned char* bytes) {
  Number number;
  std::memcpy(&number, bytes, sizeof(number));
  return number;
}

}  // namespace

ATTNBENCH_JSON_CODEC(SplitFacts) {
  JSON_AT(rows, tokens, shortest, longest, of_label, index_hash);
  JSON_IGNORE_REST;
}

ATTNBENCH_JSON_CODEC(CacheFacts) {
  JSON_AT(content_hash, splits);
  JSON_IGNORE_REST;
}

double SplitFacts::mean_length(int towers) const {
  return rows == 0 ? 0 : static_cast<double>(tokens) / (static_cast<double>(rows) * towers);
}

double SplitFacts::majority() const {
  if (rows == 0) return 0;
  return static_cast<double>(*std::max_element(of_label.begin(), of_label.end())) /
         static_cast<double>(rows);
}

Cache::Cache(const std::filesystem::path& file) : file_(file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) refuse(std::string("cannot be opened (") + std::strerror(errno) + ")");
  struct stat state {};
  const bool regular = ::fstat(descriptor, &state) == 0 && S_ISREG(state.st_mode);
  bytes_ = regular ? static_cast<std::uint64_t>(state.st_size) : 0;
  void* map = MAP_FAILED;
  if (bytes_ >= sizeof(FileHeader)) {
    map = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, descriptor, 0);
  }
  ::close(descriptor);
  if (map == MAP_FAILED) refuse("is not prepared data");
  map_ = static_cast<const unsigned char*>(map);
  try {
    read_header();
    read_footer();
  } catch (...) {
    ::munmap(map, bytes_);
    throw;
  }
}

Cache::~Cache() { ::munmap(const_cast<unsigned char*>(map_), bytes_); }

void Cache::refuse(const std::string& fault) const {
  throw UsageError(file_.string() + ": " + fault +
                   "; remove it and prepare it again with `attnbench data`");
}

void Cache::read_header() {
  const auto header = number_at<FileHeader>(map_);
  if (header.magic != tasks::data::format::magic) refuse("is not prepared data");
  if (header.version != tasks::data::format::version) {
    refuse("is of format version " + std::to_string(header.version) + ", this program reads " +
           std::to_string(tasks::data::format::version));
  }
  data_position_ = tasks::data::format::rounded_up(sizeof(FileHeader) + header.text_bytes);
  if (bytes_ < data_position_ + sizeof(Trailer)) refuse("is cut short");
  const unsigned char* text = map_ + sizeof(FileHeader);
  token_bytes_ = header.token_bytes;
  if (hash_of(view(text, header.text_bytes))[0] != header.text_hash ||
      (token_bytes_ != 1 && token_bytes_ != 2 && token_bytes_ != 4)) {
    refuse("has a damaged header");
  }
  try {
    description_ = Json::parse(text, text + header.text_bytes).get<DataDescription>();
  } catch (const std::exception& error) {
    refuse(std::string("has a header that cannot be used (") + error.what() + ")");
  }
}

void Cache::read_footer() {
  const auto trailer = number_at<Trailer>(map_ + bytes_ - sizeof(Trailer));
  if (trailer.magic != tasks::data::format::magic)
    refuse("is cut short or was not prepared to its end");
  const std::uint64_t tables = 8 * trailer.blocks + 4 * trailer.rows;
  // Bounds first, so that no sum below can overflow.
  if (trailer.footer_position > bytes_ || trailer.footer_bytes > bytes_ ||
      trailer.blocks > bytes_ || trailer.rows > bytes_ || trailer.facts_bytes > bytes_ ||
      trailer.footer_position < data_position_ ||
      trailer.footer_position % tasks::data::format::alignment != 0 ||
      trailer.footer_position + trailer.footer_bytes + sizeof(Trailer) != bytes_ ||
      tasks::data::format::rounded_up(tables + trailer.facts_bytes) != trailer.footer_bytes ||
      trailer.blocks != (trailer.rows + tasks::data::format::rows_per_block - 1) /
                            tasks::data::format::rows_per_block) {
    refuse("has a damaged end");
  }
  const unsigned char* footer = map_ + trailer.footer_position;
  if (hash_of(view(footer, trailer.footer_bytes))[0] != trailer.footer_hash) {
    refuse("has a damaged index");
  }
  rows_ = trailer.rows;
  blocks_ = {reinterpret_cast<const std::uint64_t*>(footer), trailer.blocks};
  checked_ = std::vector<std::atomic<bool>>(trailer.blocks);
  const auto* rows = reinterpret_cast<const std::uint32_t*>(footer + 8 * trailer.blocks);
  const unsigned char* text = footer + tables;
  try {
    const auto facts = Json::parse(text, text + trailer.facts_bytes).get<CacheFacts>();
    content_hash_ = facts.content_hash;
    for (const Split split : every_split) {
      SplitFacts& own = facts_[static_cast<std::size_t>(split)];
      own = facts.splits.at(to_string(split));
      index_[static_cast<std::size_t>(split)] = {rows, own.rows};
      rows += own.rows;
    }
  } catch (const std::exception&) {
    refuse("has facts that cannot be used");
  }
  if (facts_[0].rows + facts_[1].rows + facts_[2].rows != rows_) refuse("has a damaged index");
}

struct Cache::Place {
  const unsigned char* payload;
  tasks::data::format::PayloadLayout layout;
  std::uint64_t in_block;
  std::uint64_t begin, end;  ///< of its tokens, in tokens of the block
};

Cache::Place Cache::place(std::uint64_t row, int tower) const {
  if (row >= rows_ || tower < 0 || tower >= description_.towers) {
    throw std::out_of_range("row " + std::to_string(row) + ", tower " + std::to_string(tower) +
                            " of " + file_.string());
  }
  const std::uint64_t block = row / tasks::data::format::rows_per_block;
  if (!checked_[block].load(std::memory_order_acquire)) check_block(block);
  const unsigned char* header = map_ + blocks_[block];
  const auto towers = static_cast<std::uint64_t>(description_.towers);
  const std::uint64_t in_block = row % tasks::data::format::rows_per_block;
  const unsigned char* payload = header + sizeof(BlockHeader);
  const unsigned char* offset =
      payload + 4 * (in_block * towers + static_cast<std::uint64_t>(tower));
  return {payload, tasks::data::format::PayloadLayout(number_at<BlockHeader>(header).rows, towers),
          in_block, number_at<std::uint32_t>(offset), number_at<std::uint32_t>(offset + 4)};
}

void Cache::check_block(std::uint64_t block) const {
  const std::uint64_t position = blocks_[block];
  const std::uint64_t first = block * tasks::data::format::rows_per_block;
  const std::uint64_t rows =
      std::min<std::uint64_t>(tasks::data::format::rows_per_block, rows_ - first);
  bool sound = position >= data_position_ && position < bytes_ &&
               position % tasks::data::format::alignment == 0 &&
               bytes_ - position >= sizeof(BlockHeader);
  if (sound) {
    const auto header = number_at<BlockHeader>(map_ + position);
    const unsigned char* payload = map_ + position + sizeof(BlockHeader);
    const tasks::data::format::PayloadLayout layout(
        rows, static_cast<std::uint64_t>(description_.towers));
    sound = header.mark == tasks::data::format::block_mark && header.first_row == first &&
            header.rows == rows && header.payload_bytes >= layout.tokens &&
            header.payload_bytes <= bytes_ - position - sizeof(BlockHeader) &&
            hash_of(view(payload, header.payload_bytes)) == header.payload_hash;
    // The hash holds what was written; what was written holds the offsets.
  }
  if (!sound) {
    refuse("rows " + std::to_string(first) + " to " + std::to_string(first + rows - 1) +
           " are damaged");
  }
  checked_[block].store(true, std::memory_order_release);
}

std::int32_t Cache::label(std::uint64_t row) const {
  const Place at = place(row, 0);
  return number_at<std::int32_t>(at.payload + at.layout.labels + 4 * at.in_block);
}

Split Cache::split(std::uint64_t row) const {
  const Place at = place(row, 0);
  return static_cast<Split>(at.payload[at.layout.splits + at.in_block]);
}

std::uint32_t Cache::length(std::uint64_t row, int tower) const {
  const Place at = place(row, tower);
  return static_cast<std::uint32_t>(at.end - at.begin);
}

std::size_t Cache::copy(std::uint64_t row, int tower, std::span<std::int64_t> out) const {
  const Place at = place(row, tower);
  const std::size_t count = std::min<std::size_t>(at.end - at.begin, out.size());
  const unsigned char* tokens = at.payload + at.layout.tokens + at.begin * token_bytes_;
  const std::int64_t first = description_.first_token;
  const auto widened = [&]<class Stored>(Stored /*type*/) {
    for (std::size_t i = 0; i < count; ++i) {
      out[i] = first + number_at<Stored>(tokens + sizeof(Stored) * i);
    }
  };
  if (token_bytes_ == 1) {
    widened(std::uint8_t{});
  } else if (token_bytes_ == 2) {
    widened(std::uint16_t{});
  } else {
    widened(std::uint32_t{});
  }
  return count;
}

}  // namespace attnbench::tasks::data
