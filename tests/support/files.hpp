// Folders and files for tests.
#pragma once

#include <filesystem>
#include <string>

namespace attnbench::test {

/// A fresh folder that goes with the object.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(
      const std::filesystem::path& below = std::filesystem::temp_directory_path());
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

std::string source_folder();  ///< the checkout that was built
std::string build_folder();   ///< what it was built into

std::string read_file(const std::filesystem::path& file);
void write_file(const std::filesystem::path& file, const std::string& text);

}  // namespace attnbench::test

namespace test = attnbench::test;  // as tests outside attnbench's namespace say it
