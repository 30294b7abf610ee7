#include "harness/apply/out_folder.hpp"

#include <unistd.h>

#include <vector>

#include "harness/errors.hpp"

namespace attnbench::apply {
namespace {

namespace fs = std::filesystem;

/// What a call leaves; apply.json first, so that a folder that has it is whole.
const std::vector<std::string>& results() {
  static const std::vector<std::string> names = {"apply.json", "output.npy", "latents.npy",
                                                 "parameters", "gradients"};
  return names;
}

[[noreturn]] void fail(const fs::path& folder, const std::string& reason) {
  throw EnvironmentFailure("cannot write to " + folder.string() + ": " + reason +
                           "; free space there or choose another folder with --out");
}

/// Only arrays: whatever else somebody keeps in such a folder is not ours.
void remove_result(const fs::path& path) {
  if (!fs::is_directory(path)) {
    fs::remove(path);
    return;
  }
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.path().extension() == ".npy") fs::remove(entry.path());
  }
}

void move_result(const fs::path& from, const fs::path& to) {
  if (!fs::is_directory(from)) {
    fs::rename(from, to);
    return;
  }
  fs::create_directories(to);
  for (const auto& entry : fs::directory_iterator(from)) {
    fs::rename(entry.path(), to / entry.path().filename());
  }
}

}  // namespace

OutFolder::OutFolder(fs::path folder, Replacing replacing) : folder_(std::move(folder)) {
  // "out/" and "out" are one folder.
  if (!folder_.has_filename()) folder_ = folder_.parent_path();
  const std::string own = "partial-" + std::to_string(getpid());
  try {
    if (fs::exists(folder_)) {
      if (!fs::is_directory(folder_)) {
        throw UsageFailure("--out " + folder_.string() + " is no folder; choose another");
      }
      if (!fs::is_empty(folder_) && replacing != Replacing::yes) {
        throw UsageFailure(
            "--out " + folder_.string() + " holds files already: choose another folder" +
            (replacing == Replacing::never ? ""
                                           : ", or pass --force to replace the results in it"));
      }
      staging_ = folder_ / ("." + own);
    } else {
      staging_ = folder_.string() + "." + own;
    }
    fs::create_directories(staging_);
  } catch (const fs::filesystem_error& error) {
    fail(folder_, error.code().message());
  }
}

OutFolder::~OutFolder() {
  std::error_code ignored;
  fs::remove_all(staging_, ignored);
}

void OutFolder::publish() {
  try {
    if (!fs::exists(folder_)) {
      fs::rename(staging_, folder_);
      return;
    }
    for (const std::string& name : results()) remove_result(folder_ / name);
    for (auto name = results().rbegin(); name != results().rend(); ++name) {
      if (fs::exists(staging_ / *name)) move_result(staging_ / *name, folder_ / *name);
    }
  } catch (const fs::filesystem_error& error) {
    fail(folder_, error.code().message());
  }
}

}  // namespace attnbench::apply
