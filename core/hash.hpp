// Fingerprints of text and files: XXH3 in 128 bits, as 32 hexadecimal digits.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace attnbench {

std::string hash_text(std::string_view text);
/// The hash of the file's content; throws std::runtime_error if it cannot be read.
std::string hash_file(const std::filesystem::path& file);

}  // namespace attnbench
