// Helpers for tests of data: archives and gzip files as people have them, odd ones included, and
// what a call is refused with.
#pragma once

#include <archive.h>
#include <archive_entry.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/errors.hpp"
#include "tasks/data/lra/listops.hpp"
#include "tasks/data/prepare.hpp"
#include "tasks/data/rows.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace attnbench::test {

/// What the UsageError of `call` says; empty where it throws none.
template <class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

/// Whether all of `words` stand in `text`, which is shown where they do not.
inline bool says(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (text.find(word) == std::string::npos) {
      UNSCOPED_INFO("\"" << word << "\" is not in: " << text);
      return false;
    }
  }
  return true;
}

inline std::string gzipped(const std::string& content) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, content.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("deflate failed");
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

struct TarMember {
  std::string name, content;
  std::string link;  ///< where it points to, if it is a symbolic link
};

/// A tar file of members in this order.
inline void write_tar(const std::filesystem::path& file, const std::vector<TarMember>& members) {
  archive* out = archive_write_new();
  archive_write_set_format_ustar(out);
  if (archive_write_open_filename(out, file.c_str()) != ARCHIVE_OK) {
    throw std::runtime_error("cannot write " + file.string());
  }
  for (const TarMember& member : members) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, member.name.c_str());
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_filetype(entry, member.link.empty() ? AE_IFREG : AE_IFLNK);
    if (!member.link.empty()) archive_entry_set_symlink(entry, member.link.c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(member.content.size()));
    archive_write_header(out, entry);
    archive_write_data(out, member.content.data(), member.content.size());
    archive_entry_free(entry);
  }
  archive_write_close(out);
  archive_write_free(out);
}

/// The same, packed.
inline void write_tar_gz(const std::filesystem::path& file, const std::vector<TarMember>& members) {
  write_tar(file, members);
  write_file(file, gzipped(read_file(file)));
}

/// Files of a folder, by name.
inline void write_files(const std::filesystem::path& folder,
                        const std::map<std::string, std::string>& files) {
  for (const auto& [name, content] : files) write_file(folder / name, content);
}

/// All rows of a source, in its order.
inline std::vector<tasks::data::Row> rows_of(tasks::data::RowSource& source) {
  std::vector<tasks::data::Row> rows(source.rows());
  for (std::size_t i = 0; i < rows.size(); ++i) source.make(i, rows[i]);
  return rows;
}

/// Tokens of bytes + 1 as text.
inline std::string text_of(const std::vector<tasks::data::Token>& tokens) {
  std::string text;
  for (const tasks::data::Token token : tokens) text += static_cast<char>(token - 1);
  return text;
}

/// Whether full counts are wanted: ATTNBENCH_LRA_FULL=1, minutes in place of seconds.
inline bool full_counts() { return std::getenv("ATTNBENCH_LRA_FULL") != nullptr; }

/// Prepared short ListOps, with so many rows to train on and 20 of the other splits each.
inline std::filesystem::path listops_cache(const TemporaryFolder& folder,
                                           std::uint32_t rows = 1'500) {
  tasks::data::lra::ListOpsRules rules;
  rules.length_minimum = 4;
  rules.length_maximum = 40;
  rules.rows = {rows, 20, 20};
  tasks::data::lra::ListOpsGenerator generator(rules);
  tasks::data::prepare(generator, folder / "listops.lra");
  return folder / "listops.lra";
}

}  // namespace attnbench::test
