// Document: JSON from outside, with the line that every value came from.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace attnbench::suite {

using Json = nlohmann::json;

struct Document {
  std::string name;                          ///< the file as the user named it, or "command line"
  nlohmann::ordered_json value;              ///< objects keep the file's order
  std::map<std::string, std::size_t> lines;  ///< 1-based line by JSON pointer; a key's own line
  std::string hash;                          ///< of the file's bytes

  /// "suites/x.json:12: /set/length: " — the start of every message about `pointer`. A pointer with
  /// no line of its own gets its nearest ancestor's.
  std::string place(const std::string& pointer) const;
};

/// Parses UTF-8 JSON, refusing byte order marks, duplicate keys, nesting beyond 32, files over 4
/// MiB, more than 100000 values, and numbers that neither int64 nor double can hold. Throws
/// UsageFailure with file, line, pointer and reason.
Document read_document(const std::filesystem::path& file);
Document parse_document(const std::string& name, const std::string& text);

}  // namespace attnbench::suite
