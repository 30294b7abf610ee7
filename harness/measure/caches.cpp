#include "harness/measure/caches.hpp"

#include <filesystem>
#include <fstream>
#include <string>

namespace attnbench::measure {
namespace {

std::string first_word(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string word;
  stream >> word;
  return word;
}

/// "32K", "1024K", "2M": bytes; 0 if it is none of these.
std::int64_t bytes_of(const std::string& size) {
  std::int64_t number = 0;
  std::size_t i = 0;
  for (; i < size.size() && size[i] >= '0' && size[i] <= '9'; ++i) {
    number = 10 * number + (size[i] - '0');
  }
  const std::string unit = size.substr(i);
  if (unit == "K") return number << 10;
  if (unit == "M") return number << 20;
  return unit.empty() ? number : 0;
}

}  // namespace

CacheSizes cache_sizes() {
  CacheSizes sizes;
  const std::filesystem::path folder = "/sys/devices/system/cpu/cpu0/cache";
  for (int index = 0; index < 8; ++index) {
    const std::filesystem::path entry = folder / ("index" + std::to_string(index));
    const std::string level = first_word(entry / "level");
    const std::int64_t bytes = bytes_of(first_word(entry / "size"));
    if (first_word(entry / "type") == "Instruction" || bytes <= 0) continue;
    if (level == "1") sizes.l1 = bytes;
    if (level == "2") sizes.l2 = bytes;
    if (level == "3") sizes.l3 = bytes;
  }
  return sizes;
}

}  // namespace attnbench::measure
