#include "core/hash.hpp"

#include <array>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace attnbench {
namespace {

std::string hexadecimal(XXH128_hash_t hash) {
  std::array<char, 33> text{};
  std::snprintf(text.data(), text.size(), "%016llx%016llx",
                static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text.data();
}

}  // namespace

std::string hash_text(std::string_view text) {
  return hexadecimal(XXH3_128bits(text.data(), text.size()));
}

std::string hash_file(const std::filesystem::path& file) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream(
      std::fopen(file.c_str(), "rb"), [](std::FILE* open) { return open ? std::fclose(open) : 0; });
  if (!stream) throw std::runtime_error("cannot read " + file.string());
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                              XXH3_freeState);
  XXH3_128bits_reset(state.get());
  std::vector<char> block(1 << 20);
  std::size_t count = 0;
  while ((count = std::fread(block.data(), 1, block.size(), stream.get())) > 0) {
    XXH3_128bits_update(state.get(), block.data(), count);
  }
  if (std::ferror(stream.get())) throw std::runtime_error("cannot read " + file.string());
  return hexadecimal(XXH3_128bits_digest(state.get()));
}

}  // namespace attnbench
