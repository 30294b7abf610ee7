#include "core/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <utility>

#include "core/failure.hpp"
#include "core/hash.hpp"
#include "core/manifest.hpp"
#include "core/text/printable.hpp"

namespace attnbench {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

/// An open file descriptor.
class Descriptor {
 public:
  Descriptor(const fs::path& file, int flags, mode_t mode)
      : number_(open(file.c_str(), flags | O_WRONLY | O_CLOEXEC, mode)) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  bool write_all(std::string_view content) {
    while (number_ >= 0 && !content.empty()) {
      const ssize_t count = ::write(number_, content.data(), content.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return false;
      content.remove_prefix(static_cast<std::size_t>(count));
    }
    return number_ >= 0;
  }
  bool sync() { return fsync(number_) == 0; }

 private:
  int number_;
};
/// Whether a rename of a new file over `file` succeeded; the new one is gone where it did not. The
/// rights of what stood there stay.
bool replaced(const fs::path& file, std::string_view content) {
  struct stat there {};
  const mode_t mode = stat(file.c_str(), &there) == 0 ? there.st_mode & 0777 : 0644;
  const fs::path temporary = file.string() + ".tmp" + std::to_string(getpid());
  Descriptor fresh(temporary, O_CREAT | O_TRUNC, mode);
  if (fresh.write_all(content) && fresh.sync() && rename(temporary.c_str(), file.c_str()) == 0) {
    return true;
  }
  const int reason = errno;
  unlink(temporary.c_str());
  errno = reason;
  return false;
}

/// The stream of ours that `file` is, as /dev/stdout is; null where it is another file.
std::ostream* own_stream(const fs::path& file) {
  struct stat named {};
  struct stat open {};
  if (file == "-") return &std::cout;
  if (stat(file.c_str(), &named) != 0) return nullptr;
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    const bool same =
        fstat(descriptor, &open) == 0 && open.st_ino == named.st_ino && open.st_dev == named.st_dev;
    if (same) return descriptor == STDOUT_FILENO ? &std::cout : &std::cerr;
  }
  return nullptr;
}

/// Where links lead; it need not be there. Throws EnvironmentFailure where they go round.
fs::path link_target(fs::path file) {
  constexpr int max_links = 40;  // as the system's own limit
  std::error_code ignored;
  for (int i = 0; i < max_links && fs::is_symlink(fs::symlink_status(file, ignored)); ++i) {
    file = file.parent_path() / fs::read_symlink(file, ignored);
  }
  if (!fs::is_symlink(fs::symlink_status(file, ignored))) return file;
  throw EnvironmentFailure("cannot write " + text::quotable(file.string()) + ": " +
                           std::strerror(ELOOP) + "; remove the link");
}

/// Whether `file` is one on a disk, or will be.
bool is_kept(const fs::path& file) {
  std::error_code ignored;
  const fs::file_status there = fs::status(file, ignored);
  return !fs::exists(there) || fs::is_regular_file(there);
}

}  // namespace

OutputFile::OutputFile(std::string option, fs::path file, std::string writer, bool force)
    : file_(std::move(file)), writer_(std::move(writer)) {
  const std::string place = option + " " + text::quotable(file_.string());
  std::error_code ignored;
  if (own_stream(file_) != nullptr) return;
  if (fs::is_directory(file_, ignored)) {
    throw UsageFailure(place + ": this is a folder; expected the name of a file");
  }
  const fs::path target = link_target(file_);
  if (!fs::exists(file_, ignored) && !fs::is_directory(folder_of(target), ignored)) {
    throw UsageFailure(place + ": there is no folder " +
                       text::quotable(folder_of(target).string()) + "; make it first");
  }
  if (force || !is_kept(file_)) return;
  if (!fs::exists(file_, ignored) || fs::file_size(file_, ignored) == 0) return;
  const Manifest manifest(folder_of(target), writer_);
  if (manifest.foreign({target.filename().string()}).empty()) return;
  throw UsageFailure(place +
                     ": is there already, and attnbench did not write it or somebody changed it "
                     "since; choose another name, or pass --force to replace it");
}

void OutputFile::write(std::string_view content) const {
  if (own_stream(file_) != nullptr || !is_kept(file_)) return write_atomically(file_, content);
  const fs::path target = link_target(file_);
  Manifest manifest(folder_of(target), writer_);
  manifest.announce(target.filename().string(), hash_text(std::string(content)));
  const auto save = [&] {
    try {
      manifest.save();
    } catch (const EnvironmentFailure&) {
      // The folder is somebody's who lets us write the file alone: replacing it will need --force.
    }
  };
  save();
  write_atomically(file_, content);
  manifest.confirm();
  save();
}

std::optional<OutputFile> output_file(const std::string& option, const std::string& file,
                                      const std::string& writer, bool force) {
  if (file.empty()) return std::nullopt;
  return OutputFile(option, file, writer, force);
}

void write_atomically(const fs::path& file, std::string_view content) {
  if (std::ostream* own = own_stream(file)) {
    *own << content << std::flush;
    return;
  }
  const bool done = is_kept(file) ? replaced(link_target(file), content)
                                  : Descriptor(file, 0, 0).write_all(content);
  if (done) return;
  const std::string reason = std::strerror(errno);
  throw EnvironmentFailure("cannot write " + file.string() + ": " + reason +
                           "; free space there or choose another folder with --out");
}

void move_over(const fs::path& from, const fs::path& file) {
  std::error_code ignored;
  if (is_kept(file) && !fs::is_symlink(fs::symlink_status(file, ignored))) {
    return fs::rename(from, file);
  }
  std::ifstream stream(from, std::ios::binary);
  write_atomically(file, std::string(std::istreambuf_iterator<char>(stream), {}));
  fs::remove(from);
}

}  // namespace attnbench
