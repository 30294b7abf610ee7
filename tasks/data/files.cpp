#include "tasks/data/files.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "core/text/printable.hpp"

namespace attnbench::tasks::data {
namespace {

namespace fs = std::filesystem;

class FolderFiles final : public Files {
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

class SingleFile final : public Files {
 public:
  SingleFile(const fs::path& file, const ProgressCall& progress)
      : file_(file), ticker_(progress, PreparationProgress::Stage::reading, fs::file_size(file)) {
    name = without_gz(file.filename().string());
    constexpr std::size_t enough = 512;  // of a tar's first block
    head_.resize(enough);
    head_.resize(file_.read(head_.data(), enough));
    const std::string kind = packed_kind("", head_);
    if (kind.find("tar archive") == std::string::npos && !kind.ends_with("zip archive")) return;
    throw UsageError(file.string() + ": " + kind +
                     ", and this attnbench was built without libarchive, as wheels are: unpack it "
                     "(python3 -m " +
                     (kind.ends_with("zip archive") ? "zipfile" : "tarfile") + " -e " +
                     file.filename().string() + " FOLDER) and give the folder");
  }

  bool next() override { return !std::exchange(taken_, true); }

  std::size_t read(char* into, std::size_t count) override {
    const std::size_t given = std::min(count, head_.size());
    std::copy_n(head_.begin(), given, into);
    head_.erase(0, given);
    const std::size_t more = file_.read(into + given, count - given);
    ticker_.tick(file_.position());
    return given + more;
  }

 private:
  GzipFile file_;
  Ticker ticker_;
  std::string head_;  ///< what was read to see what it is, and not given yet
  bool taken_ = false;
};

}  // namespace

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

GzipFile::GzipFile(const fs::path& file) : file_(file), stream_(::gzopen(file.c_str(), "rb")) {
  if (stream_ == nullptr) {
    throw UsageError(file.string() + ": cannot be opened (" + std::strerror(errno) + ")");
  }
  ::gzbuffer(stream_, 1 << 18);
}

std::size_t GzipFile::read(char* into, std::size_t count) {
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

std::unique_ptr<Files> files_of_folder(const fs::path& folder, const ProgressCall& progress,
                                       Links links) {
  return std::make_unique<FolderFiles>(folder, progress, links);
}

std::unique_ptr<Files> single_file(const fs::path& file, const ProgressCall& progress) {
  return std::make_unique<SingleFile>(file, progress);
}

}  // namespace attnbench::tasks::data
