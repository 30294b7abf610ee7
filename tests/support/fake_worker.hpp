// A worker made of shell, for tests of those who talk with one.
#pragma once

#include <filesystem>
#include <string>

#include "harness/program/run/client/worker_client.hpp"
#include "tests/support/files.hpp"

namespace attnbench::test {

/// What a worker says first.
inline const std::string greeting =
    "read -r line <&8; echo '{\"type\":\"hello\",\"protocol\":1,\"pid\":1,\"plugins\":[],"
    "\"stamp\":{\"attnbench\":\"\",\"abi\":1,\"torch\":\"\",\"compiler\":\"\"}}' >&8\n";

/// `script` runs with the conversation on descriptor 8.
class FakeWorker {
 public:
  explicit FakeWorker(const std::string& script) {
    options.program = folder_ / "worker";
    options.log = folder_ / "log";
    write_file(options.program, "#!/bin/bash\nexec 8<&$2\n" + script);
    std::filesystem::permissions(options.program, std::filesystem::perms::owner_all);
  }
  run::WorkerOptions options;
  std::string log() const { return read_file(options.log); }
  /// What the script wrote beside itself.
  std::string beside(const std::string& ending) const {
    return read_file(std::filesystem::path(options.program).string() + ending);
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace attnbench::test
