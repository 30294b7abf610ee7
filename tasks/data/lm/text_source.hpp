// A text as rows of prepared data: the bytes of one file, or of all files of a folder or archive in
// their order, split into training, validation and test by place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "tasks/data/rows.hpp"

namespace attnbench::tasks::data::lm {

/// How a text is divided into splits. place: the first part of the text trains, then come
/// validation and test, each of a share of all bytes. enwik8: 90, 5 and 5 million bytes of its 100
/// million. folders: as published, by the folder train, validation or test that a file is in
/// (PG-19).
enum class Division { place, enwik8, folders };
Division division_from(const std::string& name);  ///< throws UsageError that lists the names
const char* to_string(Division division);

struct TextFileRules {
  Division division = Division::place;
  double validation_share = 0.05;  ///< of the bytes, of the division by place
  double test_share = 0.05;
  std::string name;  ///< what suites call the text; empty = the name of the file or folder
  bool raw = false;  ///< take archives that are not unpacked, and what looks like no text, too
};

/// Bytes of a row; the last one of a split may be shorter.
constexpr std::uint64_t bytes_per_row = 4096;

/// Rows in the order of the text, each of `bytes_per_row` tokens (the bytes), all of one class.
/// Files follow each other without anything between; gzip and dictzip are unpacked while they are
/// read. `from` is read twice: now, to be measured, and while rows are made.
///
/// Throws UsageError "FROM…": nothing to read, a device or a pipe, damaged compression, a link out
/// of the folder, what is no text, a text that is not enwik8 where that is said, files outside of
/// the three folders, shares that leave a split without bytes.
std::unique_ptr<RowSource> read_text(const std::filesystem::path& from,
                                     const TextFileRules& rules = {},
                                     const ProgressCall& progress = {});

}  // namespace attnbench::tasks::data::lm
