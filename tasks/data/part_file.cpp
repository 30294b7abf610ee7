#include "tasks/data/part_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tasks/data/cache_format.hpp"

namespace attnbench::tasks::data {

using tasks::data::format::BlockHeader;

PartFile::PartFile(const std::filesystem::path& file) : path_(file) {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0) refuse("cannot be made");
  // The name may have gone to a finished file between the two calls.
  struct stat opened {
  }, named{};
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 || ::fstat(descriptor_, &opened) != 0 ||
      ::stat(path_.c_str(), &named) != 0 || opened.st_ino != named.st_ino) {
    ::close(descriptor_);
    throw UsageError(path_.string() + ": another process prepares it: wait for its end");
  }
}
PartFile::~PartFile() { ::close(descriptor_); }

std::uint64_t PartFile::resume(const Bytes& header, std::uint64_t rows, std::uint64_t towers,
                               CacheIndex& index) {
  struct stat state {};
  if (::fstat(descriptor_, &state) != 0) refuse("cannot be read");
  size_ = static_cast<std::uint64_t>(state.st_size);
  Bytes found(std::min<std::uint64_t>(size_, header.size()));
  std::uint64_t blocks = 0;
  if (read(0, found) && found == header) {
    position_ = header.size();
    Bytes block;
    while (blocks * tasks::data::format::rows_per_block < rows &&
           read_block(blocks, rows, towers, block)) {
      index.add_block(block, position_);
      position_ += block.size();
      ++blocks;
    }
  } else {
    write(header);
  }
  if (::ftruncate(descriptor_, static_cast<off_t>(position_)) != 0) refuse("cannot be cut");
  return blocks;
}

void PartFile::write(const Bytes& bytes) {
  std::uint64_t written = 0;
  while (written < bytes.size()) {
    const ssize_t count = ::pwrite(descriptor_, bytes.data() + written, bytes.size() - written,
                                   static_cast<off_t>(position_ + written));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) refuse("cannot be written");
    written += static_cast<std::uint64_t>(count);
  }
  position_ += written;
}

void PartFile::rename_to(const std::filesystem::path& file) {
  if (::fsync(descriptor_) != 0) refuse("cannot be written");
  if (::rename(path_.c_str(), file.c_str()) != 0) refuse("cannot be renamed");
  const int folder = ::open(file.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
}

void PartFile::refuse(const std::string& what) const {
  throw UsageError(path_.string() + ": " + what + " (" + std::strerror(errno) +
                   "): make room or choose another place");
}

bool PartFile::read(std::uint64_t from, Bytes& into) const {
  std::uint64_t done = 0;
  while (done < into.size()) {
    const ssize_t count = ::pread(descriptor_, into.data() + done, into.size() - done,
                                  static_cast<off_t>(from + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<std::uint64_t>(count);
  }
  return true;
}

/// Whether block `number` stands whole at position_.
bool PartFile::read_block(std::uint64_t number, std::uint64_t rows, std::uint64_t towers,
                          Bytes& block) const {
  Bytes first(sizeof(BlockHeader));
  if (size_ < position_ + sizeof(BlockHeader) || !read(position_, first)) return false;
  BlockHeader header;
  std::memcpy(&header, first.data(), sizeof(header));
  const std::uint64_t first_row = number * tasks::data::format::rows_per_block;
  const std::uint64_t expected =
      std::min<std::uint64_t>(tasks::data::format::rows_per_block, rows - first_row);
  const std::uint64_t rest = size_ - position_ - sizeof(BlockHeader);
  if (header.mark != tasks::data::format::block_mark || header.first_row != first_row ||
      header.rows != expected || header.payload_bytes > rest ||
      header.payload_bytes < tasks::data::format::PayloadLayout(expected, towers).tokens) {
    return false;
  }
  block.resize(tasks::data::format::rounded_up(sizeof(BlockHeader) + header.payload_bytes));
  return read(position_, block) &&
         hash_of(tasks::data::format::view(block.data() + sizeof(BlockHeader),
                                           header.payload_bytes)) == header.payload_hash;
}

}  // namespace attnbench::tasks::data
