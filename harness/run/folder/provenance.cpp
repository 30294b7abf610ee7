#include "harness/run/folder/provenance.hpp"

#include <array>
#include <cstdio>
#include <memory>

#include "harness/run/worker/worker_client.hpp"

namespace attnbench::run {
namespace {

/// What git says in the program's folder; empty where there is no git or no repository.
std::string git(const std::string& arguments) {
  const std::string folder = program_folder().string();
  if (folder.find('\'') != std::string::npos) return {};
  const std::string command = "git -C '" + folder + "' " + arguments + " 2>/dev/null";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string out;
  std::array<char, 4096> block;
  while (pipe && std::fgets(block.data(), block.size(), pipe.get()) != nullptr) out += block.data();
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

}  // namespace

Json provenance(const std::string& binary) {
  Json out = {
      {"compiler", ATTNBENCH_BUILD_COMPILER}, {"flags", ATTNBENCH_BUILD_FLAGS}, {"binary", binary}};
  const std::string commit = git("rev-parse HEAD");
  if (commit.empty()) return out;
  out["commit"] = commit;
  out["dirty"] = !git("status --porcelain --untracked-files=no").empty();
  return out;
}

}  // namespace attnbench::run
