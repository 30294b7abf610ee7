// The files of what a user points to, one after the other: what Input is made of.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "tasks/data/input.hpp"

namespace attnbench::tasks::data {

class Files {
 public:
  virtual ~Files() = default;
  /// Goes on to the next regular file; false at the end.
  virtual bool next() = 0;
  /// The next bytes of it, at most `count`; fewer than that only at its end.
  virtual std::size_t read(char* into, std::size_t count) = 0;
  std::string name;  ///< of the file that next() went to
};

std::unique_ptr<Files> files_of_folder(const std::filesystem::path& folder,
                                       const ProgressCall& progress, Links links);
/// A tar or zip archive, packed or not, or any other file, as one that has it alone. By libarchive.
std::unique_ptr<Files> files_of_archive(const std::filesystem::path& file,
                                        const ProgressCall& progress);
/// A file, plain or gzip, without libarchive. Throws UsageError for a tar or zip archive.
std::unique_ptr<Files> single_file(const std::filesystem::path& file, const ProgressCall& progress);

/// A file of any kind read as bytes: unpacked if it is gzip, which zlib tells and whose lengths and
/// checksums it looks at.
class GzipFile {
 public:
  explicit GzipFile(const std::filesystem::path& file);
  ~GzipFile() { ::gzclose(stream_); }
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  std::size_t read(char* into, std::size_t count);
  /// Bytes of the file itself that were read.
  std::uint64_t position() const { return static_cast<std::uint64_t>(::gzoffset(stream_)); }

 private:
  std::filesystem::path file_;
  gzFile stream_;
};

std::string without_gz(std::string name);
bool is_hidden(std::string_view name);
/// "looks like a zip archive", by the first bytes of a file, or "is named .zip", by its name; empty
/// for anything else.
std::string packed_kind(const std::string& name, std::string_view head);

}  // namespace attnbench::tasks::data
