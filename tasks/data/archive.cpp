#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <utility>
#include <vector>

#include "core/text/printable.hpp"
#include "tasks/data/files.hpp"

namespace attnbench::tasks::data {
namespace {

class ArchiveFiles final : public Files {
 public:
  ArchiveFiles(const std::filesystem::path& file, const ProgressCall& progress)
      : path_(file),
        file_(file),
        ticker_(progress, PreparationProgress::Stage::reading, std::filesystem::file_size(file)),
        archive_(::archive_read_new(), &::archive_read_free),
        block_(1 << 18) {
    first_ = file_.read(block_.data(), block_.size());
    // An empty block ends a tar, which would make a file of zeros an archive of nothing.
    constexpr std::size_t tar_block = 512;
    const auto begin = block_.begin();
    const auto end = begin + static_cast<std::ptrdiff_t>(std::min(first_, tar_block));
    if (std::any_of(begin, end, [](char byte) { return byte != 0; })) {
      ::archive_read_support_format_tar(archive_.get());
    }
    ::archive_read_support_format_zip_streamable(archive_.get());
    ::archive_read_support_format_raw(archive_.get());  // any other file: one member
    ::archive_read_support_filter_bzip2(archive_.get());
    ::archive_read_support_filter_xz(archive_.get());
    ::archive_read_support_filter_zstd(archive_.get());
    if (::archive_read_open(archive_.get(), this, nullptr, &ArchiveFiles::give, nullptr) !=
        ARCHIVE_OK) {
      throw fault();
    }
  }

  bool next() override {
    for (;;) {
      archive_entry* entry = nullptr;
      const int code = ::archive_read_next_header(archive_.get(), &entry);
      if (pending_) std::rethrow_exception(std::exchange(pending_, nullptr));
      if (code == ARCHIVE_EOF) return false;
      if (code < ARCHIVE_WARN) throw fault();
      if (::archive_format(archive_.get()) == ARCHIVE_FORMAT_RAW) {
        name = without_gz(path_.filename().string());
        // The filters unpacked it: its ending has been seen to.
        if (::archive_filter_count(archive_.get()) > 1) name = std::filesystem::path(name).stem();
        return true;
      }
      const char* stored = ::archive_entry_pathname_utf8(entry);
      if (stored == nullptr) stored = ::archive_entry_pathname(entry);
      name = stored == nullptr ? "" : stored;
      check(entry);
      if (::archive_entry_filetype(entry) == AE_IFREG && !is_hidden(name)) return true;
    }
  }

  std::size_t read(char* into, std::size_t count) override {
    std::size_t done = 0;
    while (done < count) {
      const la_ssize_t got = ::archive_read_data(archive_.get(), into + done, count - done);
      if (pending_) std::rethrow_exception(std::exchange(pending_, nullptr));
      if (got < 0) throw fault();
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

 private:
  UsageError fault() {
    if (pending_) std::rethrow_exception(std::exchange(pending_, nullptr));
    const char* reason = ::archive_error_string(archive_.get());
    return UsageError(path_.string() + ": is truncated, damaged or no archive (" +
                      text::quotable(reason == nullptr ? "no reason given" : reason) +
                      "): get it again, or copy it again");
  }

  /// Nothing is unpacked to disk, so that none of these could do harm; but a member that
  /// an archive of data would not have is a sign that this is another archive.
  void check(archive_entry* entry) const {
    const std::vector<std::string_view> parts = components(name);
    if (name.starts_with("/") || name.find('\\') != std::string::npos ||
        std::find(parts.begin(), parts.end(), "..") != parts.end()) {
      refuse("has a name that leads out of the archive");
    }
    if (::archive_entry_hardlink(entry) != nullptr || ::archive_entry_symlink(entry) != nullptr) {
      refuse("is a link");
    }
    const auto type = ::archive_entry_filetype(entry);
    if (type != AE_IFREG && type != AE_IFDIR) refuse("is neither a file nor a folder");
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw UsageError(
        path_.string() + ", member " + text::quotable(name) + ": " + what +
        "; an archive of data holds files and folders alone: is it the published one?");
  }

  /// libarchive's callback. Exceptions must not pass through C code: they wait in pending_.
  static la_ssize_t give(archive* of, void* self_pointer, const void** bytes) {
    auto& self = *static_cast<ArchiveFiles*>(self_pointer);
    try {
      self.ticker_.tick(self.file_.position());
      *bytes = self.block_.data();
      if (self.first_ > 0) return static_cast<la_ssize_t>(std::exchange(self.first_, 0));
      return static_cast<la_ssize_t>(self.file_.read(self.block_.data(), self.block_.size()));
    } catch (...) {
      self.pending_ = std::current_exception();
      ::archive_set_error(of, EIO, "reading failed");
      return ARCHIVE_FATAL;
    }
  }

  std::filesystem::path path_;
  GzipFile file_;
  Ticker ticker_;
  std::unique_ptr<archive, int (*)(archive*)> archive_;
  std::vector<char> block_;
  std::size_t first_ = 0;  ///< bytes of the block that were read before the archive was opened
  std::exception_ptr pending_;
};

}  // namespace

std::unique_ptr<Files> files_of_archive(const std::filesystem::path& file,
                                        const ProgressCall& progress) {
  return std::make_unique<ArchiveFiles>(file, progress);
}

}  // namespace attnbench::tasks::data
