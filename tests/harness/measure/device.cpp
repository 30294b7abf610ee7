#include "harness/measure/device.hpp"

#include "core/failure.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;

TEST_CASE("the CPU is a device that can always be used", "[device]") {
  const measure::Device& cpu = measure::usable_device("cpu");
  CHECK(cpu.name() == "cpu");
  CHECK(cpu.stopwatch()->time([] {}) >= 0);
  CHECK(cpu.calibration_seconds(1) > 0);
}

TEST_CASE("a device that is not there is a matter of the environment, with the reason",
          "[device]") {
  try {
    measure::usable_device("abacus:3");
    FAIL("accepted");
  } catch (const EnvironmentFailure& failure) {
    const std::string text = failure.what();
    CHECK(text.find("abacus:3") != std::string::npos);
    CHECK(text.find("built for cpu") != std::string::npos);
  }
}

TEST_CASE("a device's number is read from its name", "[device]") {
  CHECK(measure::device_index("cpu") == 0);
  CHECK(measure::device_index("cuda") == 0);
  CHECK(measure::device_index("cuda:3") == 3);
}

TEST_CASE("a CUDA device that cannot be used says why", "[device]") {
  for (const auto& device : measure::all_devices()) {
    if (device->name() != "cuda") continue;
    CHECK_FALSE(device->refusal(99).empty());
  }
}

TEST_CASE("a program without CUDA names the cards that the driver's tool lists", "[device]") {
  const test::TemporaryFolder folder;
  const auto cards = [&](const std::string& script) {
    const std::filesystem::path tool = folder / "smi";
    test::write_file(tool, "#!/bin/sh\n" + script);
    std::filesystem::permissions(tool, std::filesystem::perms::owner_all);
    return measure::cards_of_driver(tool.string());
  };
  CHECK(cards("printf 'NVIDIA H100 PCIe, 550.54.15\\nNVIDIA L4, 550.54.15\\n'") ==
        std::vector<std::string>{"NVIDIA H100 PCIe, driver 550.54.15",
                                 "NVIDIA L4, driver 550.54.15"});
  CHECK(
      cards("echo 'NVIDIA-SMI has failed because it could not reach the driver'; exit 9").empty());
  CHECK(cards("exit 1").empty());
  CHECK(measure::cards_of_driver((folder / "none").string()).empty());
}
