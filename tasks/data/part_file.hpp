// A cache file while it grows: FILE.part, locked, so that one process prepares it, and resumed
// behind its last whole block.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "tasks/data/cache_writer.hpp"

namespace attnbench::tasks::data {

/// All members throw UsageError "FILE: …" where the file system refuses.
class PartFile {
 public:
  /// Opens or makes `file` and locks it. Throws UsageError if another process holds it.
  explicit PartFile(const std::filesystem::path& file);
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  /// Continues behind the whole blocks that are there, which `index` gets, if the file begins with
  /// `header`; else begins anew. `rows`, `towers`: of the whole file. Returns how many blocks there
  /// are.
  std::uint64_t resume(const Bytes& header, std::uint64_t rows, std::uint64_t towers,
                       CacheIndex& index);

  /// Appends behind what is there.
  void write(const Bytes& bytes);

  /// Syncs the file and gives it its final name.
  void rename_to(const std::filesystem::path& file);

  /// The position of the next bytes.
  std::uint64_t position() const { return position_; }

 private:
  [[noreturn]] void refuse(const std::string& what) const;
  bool read(std::uint64_t from, Bytes& into) const;
  bool read_block(std::uint64_t number, std::uint64_t rows, std::uint64_t towers,
                  Bytes& block) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::uint64_t position_ = 0;
};

}  // namespace attnbench::tasks::data
