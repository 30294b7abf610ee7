#include "harness/program/run/folder/run_folder.hpp"

#include <unistd.h>

#include <array>
#include <ctime>

#include "core/failure.hpp"
#include "harness/program/run/folder/journal.hpp"

namespace attnbench::run {
namespace {

namespace fs = std::filesystem;

std::string moment() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%d-%H%M%S", &parts);
  return text.data();
}

/// Two runs may start within a second: the one that makes the folder has it.
fs::path make_fresh(const std::string& name) {
  fs::create_directories("runs");
  const std::string base = name + "-" + moment();
  for (int number = 1;; ++number) {
    const fs::path path =
        fs::path("runs") / (number == 1 ? base : base + "-" + std::to_string(number));
    if (fs::create_directory(path)) return path;
  }
}

void point_latest_at(const std::string& name, const fs::path& path) {
  const fs::path link = fs::path("runs") / (name + "-latest");
  const fs::path fresh = link.string() + "." + std::to_string(getpid());
  std::error_code error;
  fs::create_directory_symlink(path.filename(), fresh, error);
  if (!error) fs::rename(fresh, link, error);
  if (error) fs::remove(fresh, error);  // some file systems have no links
}

}  // namespace

RunFolder make_run_folder(const std::string& name, const fs::path& out) {
  try {
    RunFolder folder{out};
    if (out.empty()) {
      folder.path = make_fresh(name);
      point_latest_at(name, folder.path);
    } else if (fs::exists(folder.journal())) {
      throw UsageFailure(out.string() + " holds a run already: continue with it by --resume " +
                         out.string() + ", or choose another folder");
    }
    fs::create_directories(folder.path / "logs");
    return folder;
  } catch (const fs::filesystem_error& error) {
    throw EnvironmentFailure("cannot make the run's folder: " + error.path1().string() + ": " +
                             error.code().message());
  }
}

RunFolder find_run_folder(const fs::path& path) {
  const RunFolder folder{path};
  if (!fs::exists(folder.journal())) {
    throw UsageFailure(path.string() + " is not the folder of a run: it has no journal.jsonl");
  }
  return folder;
}

RunFolder folder_holding(const fs::path& file_or_folder) {
  std::error_code ignored;
  const bool folder = fs::is_directory(file_or_folder, ignored);
  return {folder ? file_or_folder : file_or_folder.parent_path()};
}

void remove_left_workers(const RunFolder& folder) {
  if_not_written(folder.journal(), [&] {
    std::error_code ignored;
    for (const char* side : {"0", "1"}) fs::remove_all(folder.kept_worker(side), ignored);
  });
}

}  // namespace attnbench::run
