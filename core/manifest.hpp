// The manifest: which files of a folder attnbench wrote, and with what content, so that it replaces
// and deletes its own files alone.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace attnbench {

/// Names are paths below the folder, with "/" between their parts. A file that was changed since it
/// was written is the user's work and stays.
class Manifest {
 public:
  static constexpr const char* file_name = ".attnbench-files.json";

  /// What `folder` has; nothing where there is no manifest or a damaged one. `writer` names the
  /// command: it deletes its own files only.
  Manifest(std::filesystem::path folder, std::string writer);

  /// The files among `names` that are in the folder and not as we wrote them.
  std::vector<std::string> foreign(const std::vector<std::string>& names) const;
  /// Throws UsageFailure, naming the files and what to do, where any of `names` is foreign.
  void expect_ours(const std::vector<std::string>& names) const;

  /// Announces that `name` is about to become a file with this content: until `settle` the one
  /// before counts as ours, too.
  void announce(const std::string& name, const std::string& hash);
  /// Notes that the announced files are in place, and forgets what stood there before.
  void confirm();
  /// Confirms the announced files as all files of the writer: others of its own, as it wrote them,
  /// are deleted.
  void settle();
  /// Writes the manifest. Throws EnvironmentFailure.
  void save() const;

 private:
  bool is_ours(const std::string& name) const;

  using Hashes = std::map<std::string, std::set<std::string>>;

  std::filesystem::path folder_;
  std::string writer_;
  std::map<std::string, Hashes> hashes_;  ///< by writer, then by name
  std::map<std::string, std::string> announced_;
};

/// Puts what is in `staging`, files and folders of files, into `folder`, over whatever has their
/// names there, the file `last` after all others; deletes what an earlier call put there and this
/// one did not. Throws EnvironmentFailure.
void publish(const std::filesystem::path& staging, const std::filesystem::path& folder,
             Manifest& manifest, const std::string& last);

/// Makes all files below `folder` ours, its manifest being written anew.
void claim(const std::filesystem::path& folder, const std::string& writer);

}  // namespace attnbench
