// The folder that a call's results appear in: all of them, or none.
#pragma once

#include <filesystem>
#include <string>

namespace attnbench::apply {

/// What becomes of results that the folder holds already.
enum class Replacing { never, not_asked, yes };  ///< not_asked: --force would

class OutFolder {
 public:
  /// Makes a staging folder beside `folder`, or in it where it exists already. Throws UsageFailure
  /// where `folder` holds files and is not to be replaced, or is no folder; EnvironmentFailure
  /// where nothing can be made there.
  OutFolder(std::filesystem::path folder, Replacing replacing);
  /// Removes the staging folder and what is in it.
  ~OutFolder();
  OutFolder(const OutFolder&) = delete;
  OutFolder& operator=(const OutFolder&) = delete;

  /// Where files are to be written until they are published.
  const std::filesystem::path& staging() const { return staging_; }

  /// Moves everything staged to the folder, apply.json last, and removes what an earlier call left
  /// there (result::Manifest); other files are left alone. Throws EnvironmentFailure.
  void publish();

 private:
  std::filesystem::path folder_;
  std::filesystem::path staging_;
};

}  // namespace attnbench::apply
