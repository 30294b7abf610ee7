#include "harness/run/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>

namespace attnbench::run {
namespace {

[[noreturn]] void fail(const std::filesystem::path& file, int reason) {
  throw std::system_error(reason, std::generic_category(), "cannot write " + file.string());
}

}  // namespace

std::string file_tail(const std::filesystem::path& file, std::size_t bytes) {
  std::ifstream stream(file, std::ios::binary);
  stream.seekg(0, std::ios::end);
  const std::streamoff size = stream.tellg();
  if (!stream || size <= 0) return {};
  const std::streamoff from =
      std::max<std::streamoff>(0, size - static_cast<std::streamoff>(bytes));
  std::string text(static_cast<std::size_t>(size - from), '\0');
  stream.seekg(from);
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (from > 0) {
    const std::size_t end = text.find('\n');
    if (end != std::string::npos && end + 1 < text.size()) text.erase(0, end + 1);
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
  return text;
}

void replace_file(const std::filesystem::path& file, const std::string& text) {
  const std::string temporary = file.string() + "." + std::to_string(getpid()) + ".part";
  const int descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) fail(file, errno);
  int reason = 0;
  for (std::size_t done = 0; done < text.size() && reason == 0;) {
    const ssize_t count = write(descriptor, text.data() + done, text.size() - done);
    if (count < 0 && errno != EINTR) reason = errno;
    if (count > 0) done += static_cast<std::size_t>(count);
  }
  if (reason == 0 && fsync(descriptor) != 0) reason = errno;
  if (close(descriptor) != 0 && reason == 0) reason = errno;
  if (reason == 0 && rename(temporary.c_str(), file.c_str()) != 0) reason = errno;
  if (reason != 0) {
    unlink(temporary.c_str());
    fail(file, reason);
  }
}

}  // namespace attnbench::run
