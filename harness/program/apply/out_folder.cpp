#include "harness/program/apply/out_folder.hpp"

#include <unistd.h>

#include "core/failure.hpp"
#include "core/manifest.hpp"

namespace attnbench::apply {
namespace {

namespace fs = std::filesystem;

/// Published last: a folder that has it is complete.
constexpr const char* last = "apply.json";

constexpr const char* writer = "apply";

[[noreturn]] void fail(const fs::path& folder, const std::string& option,
                       const std::string& reason) {
  throw EnvironmentFailure("cannot write to " + folder.string() + ": " + reason +
                           "; free space there or choose another folder with " + option);
}

}  // namespace

OutFolder::OutFolder(fs::path folder, Replacing replacing, std::string option)
    : folder_(std::move(folder)), option_(std::move(option)) {
  // "out/" and "out" are one folder.
  if (!folder_.has_filename()) folder_ = folder_.parent_path();
  const std::string own = "partial-" + std::to_string(getpid());
  try {
    if (fs::exists(folder_)) {
      if (!fs::is_directory(folder_)) {
        throw UsageFailure(option_ + " " + folder_.string() + " is not a folder; choose another");
      }
      if (!fs::is_empty(folder_) && replacing != Replacing::yes) {
        throw UsageFailure(
            option_ + " " + folder_.string() + " holds files already: choose another folder" +
            (replacing == Replacing::never ? ""
                                           : ", or pass --force to replace the results in it"));
      }
      staging_ = folder_ / ("." + own);
    } else {
      staging_ = folder_.string() + "." + own;
    }
    fs::create_directories(staging_);
  } catch (const fs::filesystem_error& error) {
    fail(folder_, option_, error.code().message());
  }
}

OutFolder::~OutFolder() {
  std::error_code ignored;
  fs::remove_all(staging_, ignored);
}

void OutFolder::publish() {
  try {
    if (!fs::exists(folder_)) {
      claim(staging_, writer);
      fs::rename(staging_, folder_);
      return;
    }
    Manifest manifest(folder_, writer);
    fs::remove(folder_ / last);
    attnbench::publish(staging_, folder_, manifest, last);
  } catch (const fs::filesystem_error& error) {
    fail(folder_, option_, error.code().message());
  }
}

}  // namespace attnbench::apply
