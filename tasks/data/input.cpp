#include "tasks/data/input.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <optional>
#include <utility>

#include "core/text/printable.hpp"

namespace attnbench::tasks::data {
namespace {

namespace fs = std::filesystem;

std::string without_gz(std::string name) {
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  return name;
}

bool is_hidden(std::string_view name) {
  const std::vector<std::string_view> parts = components(name);
  return std::any_of(parts.begin(), parts.end(), [](std::string_view part) {
    return part == "__MACOSX" || (part.starts_with(".") && part != "." && part != "..");
  });
}

/// A file of any kind read as bytes: unpacked if it is gzip, which zlib tells and whose lengths and
/// checksums it looks at.
class GzipFile {
 public:
  explicit GzipFile(const fs::path& file) : file_(file), stream_(::gzopen(file.c_str(), "rb")) {
    if (stream_ == nullptr) {
      throw UsageError(file.string() + ": cannot be opened (" + std::strerror(errno) + ")");
    }
    ::gzbuffer(stream_, 1 << 18);
  }
  ~GzipFile() { ::gzclose(stream_); }
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  std::size_t read(char* into, std::size_t count) {
    std::size_t done = 0;
    while (done < count) {
      const auto part = static_cast<unsigned>(std::min<std::size_t>(count - done, 1 << 30));
      const int got = ::gzread(stream_, into + done, part);
      int code = Z_OK;
      const char* reason = ::gzerror(stream_, &code);
      if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) {
        throw UsageError(file_.string() + ": is truncated or damaged (" +
                         (code == Z_ERRNO ? std::strerror(errno) : reason) +
                         "): get it again, or copy it again");
      }
      if (got == 0) break;
      if (file_.extension() == ".gz" && ::gzdirect(stream_) == 1) {
        throw UsageError(file_.string() +
                         ": is named .gz and is not gzip: get it again, or rename it");
      }
      done += static_cast<std::size_t>(got);
    }
    return done;
  }
  /// Bytes of the file itself that were read.
  std::uint64_t position() const { return static_cast<std::uint64_t>(::gzoffset(stream_)); }

 private:
  fs::path file_;
  gzFile stream_;
};

/// "looks like a zip archive", by the first bytes of a file, or "is named .zip", by its name; empty
/// for anything else.
std::string packed_kind(const std::string& name, std::string_view head) {
  using namespace std::string_view_literals;
  static constexpr std::pair<std::string_view, const char*> magics[] = {
      {"PK\3\4"sv, "a zip archive"},
      {"PK\5\6"sv, "a zip archive"},
      {"\x1f\x8b"sv, "gzip"},
      {"\x1f\x9d"sv, "a file of compress"},
      {"BZh"sv, "bzip2"},
      {"\xfd"
       "7zXZ\0"sv,
       "xz"},
      {"\x28\xb5\x2f\xfd"sv, "zstd"},
      {"\x04\x22\x4d\x18"sv, "lz4"},
      {"LZIP"sv, "lzip"},
      {"7z\xbc\xaf\x27\x1c"sv, "a 7-Zip archive"},
      {"Rar!\x1a\x07"sv, "a RAR archive"},
      {"MSCF\0\0\0\0"sv, "a cabinet archive"},
      {"!<arch>\n"sv, "an ar archive"}};
  for (const auto& [magic, kind] : magics) {
    if (head.starts_with(magic)) return std::string("looks like ") + kind;
  }
  constexpr std::size_t tar_magic = 257;
  if (head.size() > tar_magic && head.substr(tar_magic).starts_with("ustar")) {
    return "looks like a tar archive";
  }
  std::string ending = fs::path(name).extension();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char letter) { return std::tolower(letter); });
  for (const char* packed : {".zip", ".tar", ".tgz",  ".tbz", ".tbz2", ".txz", ".tzst", ".7z",
                             ".rar", ".gz",  ".bz2",  ".xz",  ".zst",  ".lz4", ".lz",   ".lzma",
                             ".z",   ".cab", ".cpio", ".deb", ".rpm",  ".iso"}) {
    if (ending == packed) return std::string("is named ") + packed;
  }
  return "";
}

}  // namespace

std::vector<std::string_view> components(std::string_view name) {
  std::vector<std::string_view> parts;
  while (!name.empty()) {
    const std::size_t end = std::min(name.find('/'), name.size());
    if (end > 0) parts.push_back(name.substr(0, end));
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return parts;
}

class Input::Files {
 public:
  virtual ~Files() = default;
  virtual bool next() = 0;
  virtual std::size_t read(char* into, std::size_t count) = 0;
  std::string name;
};

class Input::FolderFiles final : public Input::Files {
 public:
  FolderFiles(const fs::path& folder, const ProgressCall& progress, Links links) : folder_(folder) {
    std::vector<fs::path> above{fs::canonical(folder)};
    const std::uint64_t bytes = add(folder, links, above);
    std::sort(names_.begin(), names_.end());
    ticker_.emplace(progress, PreparationProgress::Stage::reading, bytes);
  }

  bool next() override {
    if (file_) before_ += file_->position();
    file_.reset();
    if (next_ == names_.size()) return false;
    name = without_gz(names_[next_++]);
    return true;
  }

 private:
  /// Notes the files below `folder`, through links to folders, too; their bytes. `above` are the
  /// folders that it stands in, itself included, without links.
  std::uint64_t add(const fs::path& folder, Links links, std::vector<fs::path>& above) {
    std::uint64_t bytes = 0;
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string relative = entry.path().lexically_relative(folder_).generic_string();
      if (is_hidden(relative)) continue;
      std::error_code nowhere;
      const fs::file_status status = entry.status(nowhere);
      if (!fs::exists(status)) {
        refuse(relative, "is a link to what is not there; remove or mend it");
      } else if (links == Links::inside && entry.is_symlink()) {
        expect_inside(entry.path(), relative);
      } else if (fs::is_directory(status)) {
        above.push_back(fs::canonical(entry.path()));
        if (std::count(above.begin(), above.end(), above.back()) > 1) {
          refuse(relative, "is a link to a folder that it stands in; remove the link");
        }
        bytes += add(entry.path(), links, above);
        above.pop_back();
      } else if (fs::is_regular_file(status)) {
        names_.push_back(relative);
        bytes += entry.file_size();
      } else {
        refuse(relative, "is neither a file nor a folder; remove it");
      }
    }
    return bytes;
  }

  [[noreturn]] void refuse(const std::string& member, const std::string& what) const {
    throw UsageError(folder_.string() + ", member " + text::quotable(member) + ": " + what);
  }

  /// Throws where the link leads to something that is not in the folder.
  void expect_inside(const fs::path& link, const std::string& member) const {
    const std::string target =
        fs::weakly_canonical(link).lexically_relative(fs::canonical(folder_));
    if (!target.empty() && !target.starts_with("..")) return;
    refuse(member,
           "is a link that leads out of the folder; put the file itself there, or remove the link");
  }

 public:
  std::size_t read(char* into, std::size_t count) override {
    if (!file_) file_.emplace(folder_ / names_[next_ - 1]);
    const std::size_t got = file_->read(into, count);
    ticker_->tick(before_ + file_->position());
    return got;
  }

 private:
  fs::path folder_;
  std::vector<std::string> names_;
  std::size_t next_ = 0;
  std::uint64_t before_ = 0;
  std::optional<GzipFile> file_;
  std::optional<Ticker> ticker_;
};

class Input::ArchiveFiles final : public Input::Files {
 public:
  ArchiveFiles(const fs::path& file, const ProgressCall& progress)
      : path_(file),
        file_(file),
        ticker_(progress, PreparationProgress::Stage::reading, fs::file_size(file)),
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
        if (::archive_filter_count(archive_.get()) > 1) name = fs::path(name).stem();
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

  fs::path path_;
  GzipFile file_;
  Ticker ticker_;
  std::unique_ptr<archive, int (*)(archive*)> archive_;
  std::vector<char> block_;
  std::size_t first_ = 0;  ///< bytes of the block that were read before the archive was opened
  std::exception_ptr pending_;
};

Input::Input(const fs::path& from, const ProgressCall& progress, Links links, Content content)
    : from_(from), content_(content) {
  try {
    if (fs::is_directory(from)) {
      files_ = std::make_unique<FolderFiles>(from, progress, links);
    } else if (fs::is_regular_file(from) && fs::file_size(from) > 0) {
      files_ = std::make_unique<ArchiveFiles>(from, progress);
    } else {
      throw UsageError(from.string() + (fs::exists(from)
                                            ? ": is neither a folder nor a file with content"
                                            : ": there is no such file or folder"));
    }
  } catch (const fs::filesystem_error& error) {
    throw UsageError(std::string(error.what()) + ": check the rights to read it");
  }
}

Input::~Input() = default;

bool Input::next() {
  begun_ = false;
  head_.clear();
  return files_->next();
}

const std::string& Input::name() const { return files_->name; }

std::size_t Input::read(char* into, std::size_t count) {
  constexpr std::size_t enough = 512;  // of a tar's first block
  if (!begun_ && content_ == Content::unpacked) {
    head_.resize(enough);
    head_.resize(files_->read(head_.data(), enough));
    const std::string kind = packed_kind(name(), head_);
    if (!kind.empty()) {
      throw UsageError(at(kind + ", and cannot be unpacked here or is damaged: unpack it, get it "
                                 "again or, where its bytes are meant, pass --raw"));
    }
  }
  begun_ = true;
  const std::size_t given = std::min(count, head_.size());
  std::copy_n(head_.begin(), given, into);
  head_.erase(0, given);
  return given + (given < count ? files_->read(into + given, count - given) : 0);
}

std::string Input::read_all(std::size_t most) {
  std::string content;
  constexpr std::size_t step = 1 << 16;
  for (std::size_t got = step; got == step;) {
    const std::size_t before = content.size();
    content.resize(before + step);
    got = read(content.data() + before, step);
    content.resize(before + got);
    if (content.size() > most) {
      throw UsageError(
          at("is larger than " + std::to_string(most) + " bytes, which nothing of these data is"));
    }
  }
  return content;
}

std::string Input::at(const std::string& fault) const {
  return from_.string() + ", member " + text::quotable(name()) + ": " + fault;
}

void TextCheck::add(std::string_view bytes) {
  bytes_ += bytes.size();
  controls_ += static_cast<std::uint64_t>(std::count_if(bytes.begin(), bytes.end(), [](char byte) {
    const auto code = static_cast<unsigned char>(byte);
    const bool layout = code >= '\b' && code <= '\r';
    return code == 0x7f || (code < 0x20 && !layout && code != 0x1b);
  }));
}

std::string TextCheck::fault() const {
  // 10 % of random bytes are control characters, and nearly as many of compressed ones.
  constexpr double most = 0.02;
  constexpr std::uint64_t few = 8;  // as a text may have by accident
  const double share =
      bytes_ == 0 ? 0 : static_cast<double>(controls_) / static_cast<double>(bytes_);
  if (controls_ < few || share <= most) return "";
  char text[96];
  std::snprintf(text, sizeof text,
                "%.0f %% of its bytes are control characters, as no text has them", 100 * share);
  return text;
}

std::string text_fault(const fs::path& file) {
  std::string begin(std::size_t{1} << 20, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(stream.gcount()));
  TextCheck check;
  check.add(begin);
  const std::string kind = packed_kind(file.filename().string(), begin);
  return kind.empty() ? check.fault() : kind;
}

bool Lines::next(std::string_view& line) {
  constexpr std::size_t step = 1 << 18;
  std::size_t looked = begin_;
  for (;;) {
    const std::size_t end = buffer_.find('\n', looked);
    if (end != std::string::npos || (ended_ && begin_ < buffer_.size())) {
      line = std::string_view(buffer_).substr(begin_, std::min(end, buffer_.size()) - begin_);
      begin_ = end == std::string::npos ? buffer_.size() : end + 1;
      if (line.ends_with('\r')) line.remove_suffix(1);
      ++number_;
      return true;
    }
    if (ended_) return false;
    buffer_.erase(0, begin_);
    begin_ = 0;
    looked = buffer_.size();
    if (looked > std::size_t{64} << 20) throw UsageError(at("is longer than 64 MiB"));
    buffer_.resize(looked + step);
    const std::size_t got = input_.read(buffer_.data() + looked, step);
    buffer_.resize(looked + got);
    ended_ = got < step;
  }
}

std::string Lines::at(const std::string& fault) const {
  std::string text = input_.at(fault);
  text.replace(text.size() - fault.size() - 2, 2, ", line " + std::to_string(number_) + ": ");
  return text;
}

void refuse_content(const fs::path& from, const std::string& wanted,
                    const std::vector<std::string>& names_found) {
  std::string text = from.string() + ": " + wanted;
  text += names_found.empty() ? "; it holds no files" : "; it holds ";
  for (std::size_t i = 0; i < std::min<std::size_t>(names_found.size(), 3); ++i) {
    text += (i > 0 ? ", " : "") + text::quotable(names_found[i], 80);
  }
  if (names_found.size() > 3) text += ", ...";
  throw UsageError(text);
}

}  // namespace attnbench::tasks::data
