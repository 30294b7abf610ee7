#include "tests/support/files.hpp"

#include <stdlib.h>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace attnbench::test {

TemporaryFolder::TemporaryFolder(const std::filesystem::path& below) {
  std::string name = (below / "attnbench-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed: " + name);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string source_folder() { return ATTNBENCH_SOURCE_DIR; }
std::string build_folder() { return ATTNBENCH_BINARY_DIR; }

std::string read_file(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw std::runtime_error("cannot read " + file.string());
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

void write_file(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream stream(file, std::ios::binary);
  stream << text;
  if (!stream) throw std::runtime_error("cannot write " + file.string());
}

}  // namespace attnbench::test
