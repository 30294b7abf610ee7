// Document: JSON of a suite file, with the line of each value, and the problems found in it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace attnbench::suite {

using Json = nlohmann::json;

/// The pointer `parent` + "/" + `key`, a JSON pointer (RFC 6901) with "~" and "/" of the key
/// escaped.
std::string child_pointer(const std::string& parent, const std::string& key);

/// All that is wrong with a suite, so that one run of `validate` shows it.
class Problems {
 public:
  /// `place` is Document::place's text, `what` one sentence. A repeated problem is ignored.
  void add(const std::string& place, const std::string& what);
  bool empty() const { return messages_.empty(); }
  /// Whether further ones are counted alone, so that their sentences need not be made.
  bool full() const { return messages_.size() >= max_shown; }
  /// Throws UsageFailure with at most 20 problems and 1900 bytes, one problem per line.
  void throw_if_any() const;

 private:
  static constexpr std::size_t max_shown = 20;
  static constexpr std::size_t max_bytes = 1900;
  std::vector<std::string> messages_;
  std::set<std::string> seen_;
};

struct Document {
  std::string name;                          ///< the file as the user named it, or "command line"
  nlohmann::ordered_json value;              ///< objects keep the file's order
  std::map<std::string, std::size_t> lines;  ///< 1-based line by JSON pointer; a key's own line
  std::string hash;                          ///< of the file's bytes

  /// The start of each message about `pointer`, "suites/NAME.json:12: /set/length: ". A pointer
  /// without a line gets the line of its nearest ancestor.
  std::string place(const std::string& pointer) const;
};

/// Parses UTF-8 JSON, refusing byte order marks, duplicate keys, nesting beyond 32, files over 4
/// MiB, more than 100000 values, and numbers that neither int64 nor double can hold. Throws
/// UsageFailure with file, line, pointer and reason.
Document read_document(const std::filesystem::path& file);
Document parse_document(const std::string& name, const std::string& text);

/// The hash of a suite without its words for readers (title, notes, source and figure, those of
/// tasks and profiles included) and without the order of its keys: where it is equal, the same is
/// measured.
std::string settings_hash(Json suite);

}  // namespace attnbench::suite
