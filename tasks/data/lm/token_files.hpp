// The files of a text as tokens: bytes, ids as a tokeniser's program wrote them, or words.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tasks/data/input.hpp"
#include "tasks/data/rows.hpp"

namespace attnbench::tasks::data::lm {

/// What a token is in the files.
///
/// uint16, uint32: ids, little-endian, without a header, as nanoGPT's preparation of OpenWebText
/// writes train.bin and val.bin. llm_c: a header of 256 int32 before the ids, as llm.c's
/// write_datafile writes it: magic 20240520, version 1 and uint16 (GPT-2), or magic 20240801,
/// version 7 and uint32 (Llama 3), then the number of ids. words: what ASCII white space separates,
/// and <eos> at the end of each line, as PyTorch's example word_language_model reads
/// wiki.train.tokens; ids by first occurrence in any split.
enum class Encoding { bytes, uint16, uint32, llm_c, words };
Encoding encoding_from(const std::string& name);  ///< throws UsageError that lists the names
const char* to_string(Encoding encoding);

/// The ids of words.
struct WordHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view word) const {
    return std::hash<std::string_view>{}(word);
  }
};
using Words = std::unordered_map<std::string, Token, WordHash, std::equal_to<>>;

/// Reads one file after the other. Throws UsageError "FROM, member NAME: …": a file that ends
/// within an id, an id that is not below the vocabulary, a header that llm.c does not write or
/// whose count is not the file's, ids of another width than said.
class TokenFiles {
 public:
  /// `seen` is told the bytes of the files as they are read. `words` are added to.
  TokenFiles(const std::filesystem::path& from, Encoding encoding, std::int64_t vocabulary,
             Words& words, const ProgressCall& progress, Content content,
             std::function<void(std::string_view)> seen = {});

  bool next();  ///< goes on to the next file; false at the end
  const std::string& name() const { return input_.name(); }
  std::string at(const std::string& fault) const { return input_.at(fault); }
  /// The next tokens of the file into `out`; fewer than its size only at the file's end.
  std::size_t read(std::span<Token> out);

 private:
  void read_header();
  std::size_t read_ids(std::span<Token> out);
  std::size_t read_words(std::span<Token> out);
  void expect_whole() const;

  Encoding encoding_;
  std::uint64_t vocabulary_;
  Words& words_;
  Input input_;
  std::function<void(std::string_view)> seen_;
  std::vector<char> bytes_;
  // of the file
  std::size_t width_ = 1;
  std::optional<std::uint64_t> declared_;  ///< ids by the header
  std::uint64_t place_ = 0;                ///< tokens read
  bool odd_ids_small_ = true;              ///< as the upper halves of uint32 are
  bool even_ids_small_ = true;
  std::optional<Lines> lines_;
  std::vector<Token> line_;  ///< tokens of a line that are not given yet begin at given_
  std::size_t given_ = 0;
};

}  // namespace attnbench::tasks::data::lm
