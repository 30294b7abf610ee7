// The folder for results: it gets all files of a call, or none.
#pragma once

#include <filesystem>
#include <string>

namespace attnbench::apply {

/// Whether results in the folder are replaced; not_asked: only with --force.
enum class Replacing { never, not_asked, yes };

class OutFolder {
 public:
  /// Makes a staging folder beside `folder`, or in it where it exists. Throws UsageFailure where
  /// `folder` is not a folder, or holds files that are not to be replaced; EnvironmentFailure where
  /// the staging folder cannot be made. `option` is for messages.
  OutFolder(std::filesystem::path folder, Replacing replacing, std::string option = "--out");
  /// Removes the staging folder.
  ~OutFolder();
  OutFolder(const OutFolder&) = delete;
  OutFolder& operator=(const OutFolder&) = delete;

  /// The folder that files are written to until they are published.
  const std::filesystem::path& staging() const { return staging_; }

  /// Moves all staged files to the folder, apply.json last, and removes files of earlier calls
  /// (result::Manifest); other files stay. Throws EnvironmentFailure.
  void publish();

 private:
  std::filesystem::path folder_;
  std::filesystem::path staging_;
  std::string option_;
};

}  // namespace attnbench::apply
