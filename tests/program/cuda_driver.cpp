// The CUDA driver as attnbench meets it, played by one that only pretends (tests/program/driver/).
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/failure.hpp"
#include "harness/measure/device.hpp"
#include "harness/run/worker/worker_client.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/process.hpp"

using namespace attnbench::test;
using Json = nlohmann::json;

namespace {

/// Where libcuda.so.1 is the pretender.
std::string driver_folder() { return test::build_folder() + "/lib/pretend_driver"; }

/// Whether this program was built with a CUDA toolkit. ctest counts a case that prints this as
/// skipped.
bool has_toolkit() {
  for (const auto& device : attnbench::measure::all_devices()) {
    if (device->name() != "cuda") continue;
    const std::string why = device->refusal(0);
    if (why.find("built without") == std::string::npos && why.find("LibTorch") == std::string::npos)
      return true;
    std::printf("needs a CUDA toolkit: %s\n", why.c_str());
  }
  return false;
}

/// While it lives, programs started from here find the pretender and its log.
class PretendDriver {
 public:
  explicit PretendDriver(const std::string& log) {
    setenv("LD_LIBRARY_PATH", driver_folder().c_str(), 1);
    setenv("PRETEND_DRIVER_LOG", log.c_str(), 1);
  }
  ~PretendDriver() {
    unsetenv("LD_LIBRARY_PATH");
    unsetenv("PRETEND_DRIVER_LOG");
  }
  PretendDriver(const PretendDriver&) = delete;
  PretendDriver& operator=(const PretendDriver&) = delete;
};

}  // namespace

TEST_CASE("a driver without a device and a missing driver give different messages",
          "[program][cuda]") {
  if (!has_toolkit()) return;
  const TemporaryFolder folder;
  const PretendDriver driver(folder / "log");
  const Finished finished = run(
      {program(), "run", "linear", "--length", "16", "--out", folder / "run", "--device", "cuda"});
  INFO(finished.out << finished.err);
  CHECK(finished.exit_code == 3);
  CHECK_THAT(finished.err, Catch::Contains("cannot be used: there is no CUDA device"));
  CHECK(std::filesystem::exists(folder / "log"));
}

TEST_CASE("a worker that has loaded LibTorch's CUDA part leaves the driver to its children",
          "[program][cuda]") {
  if (!has_toolkit()) return;
  const TemporaryFolder folder;
  const std::string log = folder / "log";
  const PretendDriver driver(log);
  attnbench::run::WorkerOptions options;
  options.program = worker_program();
  options.log = folder / "worker.log";
  options.threads = 2;
  options.device = "cuda";
  attnbench::run::WorkerClient worker(options);
  worker.start();
  const auto check_on = [&](const char* device) {
    return worker.request({{"type", "check"},
                           {"mechanism", "linear"},
                           {"implementation", "chunked"},
                           {"pattern", "causal"},
                           {"dtypes", {"float32"}},
                           {"device", device},
                           {"limits", {{"seconds", 300}}}},
                          {}, 310);
  };
  CHECK_FALSE(std::filesystem::exists(log));
  // A child that was forked after the loading computes with all its threads.
  const Json computed = check_on("cpu");
  INFO(computed.dump());
  CHECK(computed.at("status") == "ok");
  const Json refused = check_on("cuda");
  INFO(refused.dump());
  CHECK(refused.at("status") == "error");
  CHECK_THAT(refused.value("reason", ""), Catch::Contains("there is no CUDA device"));
  // Children have begun the driver (autograd asks for devices wherever it computes), never the
  // worker.
  std::istringstream processes(read_file(log));
  int begun = 0;
  for (pid_t process = 0; processes >> process; ++begun) CHECK(process != worker.pid());
  CHECK(begun >= 1);
}
