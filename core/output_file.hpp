// A file that an option of the command line names, such as --markdown FILE.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace attnbench {

/// Writes `content` to a temporary name beside `file` and renames it over it: on failure `file`
/// stays as it was, and EnvironmentFailure names path and reason. Links are followed; a device, a
/// pipe and the program's own standard output are written to, never replaced.
void write_atomically(const std::filesystem::path& file, std::string_view content);

/// Refuses before any work what `write` would have to refuse after it.
class OutputFile {
 public:
  /// `option` is for messages, `writer` as Manifest has it. Writes nothing. Throws UsageFailure for
  /// a folder, for a file in a folder that is not there and, unless `force`, for a file whose
  /// content attnbench did not write or somebody changed since. Empty files, and what is no file (a
  /// device, a pipe), have no content to lose.
  OutputFile(std::string option, std::filesystem::path file, std::string writer, bool force);

  /// Writes to standard output where the file is "-", else as write_atomically does. Throws
  /// EnvironmentFailure.
  void write(std::string_view content) const;

 private:
  std::filesystem::path file_;
  std::string writer_;
};

/// The output file of an option; nothing where the option was not given, that is, where `file` is
/// empty.
std::optional<OutputFile> output_file(const std::string& option, const std::string& file,
                                      const std::string& writer, bool force);

/// Renames `from` over `file`, which is treated as by write_atomically. Throws filesystem_error and
/// EnvironmentFailure.
void move_over(const std::filesystem::path& from, const std::filesystem::path& file);

}  // namespace attnbench
