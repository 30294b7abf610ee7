// What a user points to with --from: a folder, an archive (tar, tar.gz, zip, …) or a single file,
// as a sequence of regular files that are read once, in order. Archives are never unpacked to disk;
// a build without libarchive refuses them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "tasks/data/rows.hpp"

namespace attnbench::tasks::data {

/// What a link in a folder is taken for. followed: what it leads to; one to a folder that it stands
/// in is refused. inside: one to a file of the folder is passed over, since that file is read
/// anyway; one that leads out of it is refused. One to nothing always is.
enum class Links { followed, inside };

/// What files may hold. unpacked: no archive and nothing compressed, by name or by their first
/// bytes, which would be taken for text; numbers: the same by name alone, since numbers may begin
/// as anything; raw: anything.
enum class Content { unpacked, numbers, raw };

/// Whether tar and zip archives are read here: this was built with libarchive.
bool reads_archives();

class Files;

/// Walks through the files. All throw UsageError "FROM: …": what cannot be opened, truncated or
/// damaged compression (checksums are looked at) and archives; members that are links, or whose
/// names leave the archive's folder.
class Input {
 public:
  /// `progress` is told bytes of the archive, or of files, read so far.
  explicit Input(const std::filesystem::path& from, const ProgressCall& progress = {},
                 Links links = Links::followed, Content content = Content::unpacked);
  ~Input();
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  /// Goes on to the next regular file; false at the end. Files of folders come by name, members of
  /// archives as they stand there. Hidden files (.DS_Store, ._NAME) are passed over.
  bool next();
  /// Name of the file that next() went to, relative to FROM, with /, less a ".gz" (such a file is
  /// unpacked while it is read).
  const std::string& name() const;
  /// The next bytes of it, at most `count`; fewer than that only at its end. Throws UsageError for
  /// what Content excludes.
  std::size_t read(char* into, std::size_t count);
  /// What is left of it. Throws UsageError for more than `most` bytes.
  std::string read_all(std::size_t most = std::size_t{64} << 20);

  /// The words "FROM, member NAME: FAULT" for messages.
  std::string at(const std::string& fault) const;

 private:
  std::filesystem::path from_;
  Content content_;
  std::unique_ptr<Files> files_;
  std::string head_;  ///< what was read of the file to see what it is, and not given yet
  bool begun_ = false;
};

/// The lines of the file that an Input is at, without their ends (LF or CRLF).
class Lines {
 public:
  explicit Lines(Input& input) : input_(input) {}
  /// False at the end of the file. The view holds until the next call. Throws UsageError for a line
  /// of more than 64 MiB.
  bool next(std::string_view& line);
  /// Number of the line last returned, from 1.
  std::uint64_t number() const { return number_; }
  /// The words "FROM, member NAME, line N: FAULT" for messages.
  std::string at(const std::string& fault) const;

 private:
  Input& input_;
  std::string buffer_;
  std::size_t begin_ = 0;
  std::uint64_t number_ = 0;
  bool ended_ = false;
};

/// Counts bytes that no text has, in whatever encoding but UTF-16 and UTF-32: control characters
/// other than tab, ends of lines and pages, backspace and escape.
class TextCheck {
 public:
  void add(std::string_view bytes);
  /// Why it is no text: "12 % of its bytes are control characters, as no text has them"; empty
  /// where it is a text.
  std::string fault() const;

 private:
  std::uint64_t bytes_ = 0;
  std::uint64_t controls_ = 0;
};

/// Why a file, as it is, without unpacking, is no text, by its name and its beginning; empty where
/// it is one.
std::string text_fault(const std::filesystem::path& file);

/// The components of a name: "a/b/c" → a, b, c.
std::vector<std::string_view> components(std::string_view name);

/// "FROM: not found: WANTED; it holds FIRST, SECOND, …": for sources of another kind.
[[noreturn]] void refuse_content(const std::filesystem::path& from, const std::string& wanted,
                                 const std::vector<std::string>& names_found);

}  // namespace attnbench::tasks::data
