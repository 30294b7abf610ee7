// Writes small files of safetensors for tests.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/files.hpp"

namespace attnbench::test {

/// The bytes of a file: the size of `header`, the header, then `data`.
inline std::string safetensors_text(const std::string& header, const std::string& data) {
  std::string text;
  for (std::size_t i = 0; i < 8; ++i) {
    text += static_cast<char>(header.size() >> (8 * i) & 0xff);
  }
  return text + header + data;
}

/// Lists of I32 by name.
inline std::string safetensors_of(const std::map<std::string, std::vector<std::int32_t>>& lists) {
  nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}};
  std::string data;
  for (const auto& [name, numbers] : lists) {
    const std::size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(numbers.data()), 4 * numbers.size());
    header[name] = {
        {"dtype", "I32"}, {"shape", {numbers.size()}}, {"data_offsets", {begin, data.size()}}};
  }
  return safetensors_text(header.dump(), data);
}

}  // namespace attnbench::test
