// Reading files of unknown origin: regular files of a bounded size, and JSON of a bounded depth and
// size in memory, so that neither hangs the program nor exhausts its memory or its stack.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace attnbench {

using Json = nlohmann::json;

constexpr std::size_t mebibyte = std::size_t{1} << 20;

/// How much JSON is taken. `bytes` of memory are counted as the parsed value would take them.
struct JsonBounds {
  std::size_t depth = 64;
  std::size_t bytes = 256 * mebibyte;
};

/// The content of a regular file of at most `most` bytes. Throws UsageFailure "FILE: …", which ends
/// with `expected`, for one that is not there, is something else (a folder, a device, a pipe), is
/// larger or cannot be read.
std::string read_file(const std::filesystem::path& file, const std::string& expected,
                      std::size_t most = 256 * mebibyte);

/// Throws as `read_file` does unless `file` is a regular file of at most `most` bytes. Opens
/// nothing.
void expect_regular_file(const std::filesystem::path& file, const std::string& expected,
                         std::size_t most);

/// The last whole lines of a file such as a log, at most `bytes`; empty if it cannot be read.
std::string file_tail(const std::filesystem::path& file, std::size_t bytes);

/// The value of `text`. Throws UsageFailure "NAME:LINE:COLUMN: …", which ends with `expected`: text
/// that is not JSON, or is out of `bounds`. `first_line` is the number of the text's first line.
Json parse_json(std::string_view text, const std::string& name, const std::string& expected,
                const JsonBounds& bounds = {}, std::size_t first_line = 1);

/// The value of a file, by both.
Json parse_json_file(const std::filesystem::path& file, const std::string& expected,
                     const JsonBounds& bounds = {});

/// Why `text` is out of `bounds`, and at which byte; empty where it is not. The text need not be
/// JSON.
struct BoundsFault {
  std::size_t position = 0;
  std::string reason;
};
BoundsFault bounds_fault(std::string_view text, const JsonBounds& bounds);

/// Throws UsageFailure: a value of `file` is not of the kind that its reader relies on.
[[noreturn]] void refuse_unreadable(const std::filesystem::path& file,
                                    const nlohmann::json::exception& error);

/// What a message of the JSON library says, without its codes and in our words: "expected number,
/// found string".
std::string json_complaint(const nlohmann::json::exception& error);

}  // namespace attnbench
