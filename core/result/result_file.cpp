#include "core/result/result_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "core/failure.hpp"

namespace attnbench::result {
namespace {

/// An open file descriptor whose file goes away unless it was finished.
class Temporary {
 public:
  explicit Temporary(std::filesystem::path path) : path_(std::move(path)) {
    descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  }
  ~Temporary() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!finished_) unlink(path_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  bool write_all(std::string_view content) {
    while (descriptor_ >= 0 && !content.empty()) {
      const ssize_t count = write(descriptor_, content.data(), content.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return false;
      content.remove_prefix(static_cast<std::size_t>(count));
    }
    return descriptor_ >= 0;
  }

  bool rename_to(const std::filesystem::path& file) {
    if (fsync(descriptor_) != 0) return false;
    finished_ = rename(path_.c_str(), file.c_str()) == 0;
    return finished_;
  }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  bool finished_ = false;
};

}  // namespace

void write_atomically(const std::filesystem::path& file, std::string_view content) {
  const std::filesystem::path temporary = file.string() + ".tmp" + std::to_string(getpid());
  Temporary stream(temporary);
  if (stream.write_all(content) && stream.rename_to(file)) return;
  const std::string reason = std::strerror(errno);
  throw EnvironmentFailure("cannot write " + file.string() + ": " + reason +
                           "; free space there or choose another folder with --out");
}

}  // namespace attnbench::result
