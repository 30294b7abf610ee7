// A text as rows of prepared data: the tokens of one file, or of all files of a folder or archive
// in their order, split into training, validation and test by place or by name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "tasks/data/lm/token_files.hpp"
#include "tasks/data/rows.hpp"

namespace attnbench::tasks::data::lm {

/// How a text is divided into splits. place: the first part of the text trains, then come
/// validation and test, each of a share of all tokens. enwik8: 90, 5 and 5 million bytes of its 100
/// million. folders: as published, by the folder train, validation or test that a file is in
/// (PG-19). files: by the word train, val, valid, validation or test in a file's name
/// (wiki.train.tokens, train.bin); other files are passed over, and without a file of the test the
/// validation tokens are scored as the test, too, as nanoGPT and llm.c do.
enum class Division { place, enwik8, folders, files };
Division division_from(const std::string& name);  ///< throws UsageError that lists the names
const char* to_string(Division division);

struct TextFileRules {
  Division division = Division::place;
  Encoding encoding = Encoding::bytes;
  std::int64_t vocabulary = 256;   ///< ids are below it
  double validation_share = 0.05;  ///< of the tokens, of the division by place
  double test_share = 0.05;
  std::string name;  ///< what suites call the text; empty = the name of the file or folder
  bool raw = false;  ///< take archives that are not unpacked, and what looks like no text, too
};

/// Tokens of a row; the last one of a split may be shorter.
constexpr std::uint64_t tokens_per_row = 4096;

/// Rows in the order of the text, each of `tokens_per_row` tokens, all of one class.
/// Files follow each other without anything between; gzip and dictzip are unpacked while they are
/// read. `from` is read twice: now, to be measured, and while rows are made.
///
/// Throws UsageError "FROM…": nothing to read, a device or a pipe, damaged compression, a link out
/// of the folder, what is no text, what TokenFiles refuses, a text that is not enwik8 where that is
/// said, files outside of the three folders, several files of ids or words by place, a split
/// without tokens, more words than the vocabulary.
std::unique_ptr<RowSource> read_text(const std::filesystem::path& from,
                                     const TextFileRules& rules = {},
                                     const ProgressCall& progress = {});

}  // namespace attnbench::tasks::data::lm
