#include "harness/run/folder/files.hpp"

#include <algorithm>
#include <fstream>

namespace attnbench::run {

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

}  // namespace attnbench::run
