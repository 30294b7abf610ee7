#include "harness/worker/device.hpp"

#include "attention/torch/cuda.hpp"
#include "harness/measure/device.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;

namespace {

/// Sets the device up, where there is one; a case that warns of what it needs is skipped.
bool set_up_device() {
  std::string why = "this program was built without it";
  for (const auto& device : measure::all_devices()) {
    if (device->name() == "cuda") why = device->refusal(0);
  }
  if (!why.empty()) {
    WARN("needs a CUDA device: " << why);
    return false;
  }
  worker::setup_device("cuda");
  return true;
}

const at::TensorOptions there = at::TensorOptions(at::kFloat).device(at::kCUDA);

}  // namespace

TEST_CASE("a recorded body does its work anew each time it is played", "[replay][cuda]") {
  if (!set_up_device()) return;
  const at::Tensor x = at::zeros({1000}, there);
  at::Tensor y = at::zeros({1000}, there);
  double value = 0;
  std::string why;
  const auto before = [&] { x.fill_(value += 1); };
  const auto play = worker::recorded(
      "cuda", [&] { at::add_out(y, x, x * 2); }, before, why);
  INFO(why);
  REQUIRE(play);
  for (int i = 0; i < 3; ++i) {
    before();
    play();
    synchronize("cuda");
    CHECK(y.min().item<double>() == 3 * value);
    CHECK(y.max().item<double>() == 3 * value);
  }
}

TEST_CASE("a body that waits for the device is not recorded, and runs as before",
          "[replay][cuda]") {
  if (!set_up_device()) return;
  const at::Tensor x = at::ones({10}, there);
  std::string why;
  CHECK_FALSE(worker::recorded(
      "cuda", [&] { static_cast<void>(x.sum().item<double>()); }, {}, why));
  CHECK_FALSE(why.empty());
  CHECK(x.sum().item<double>() == 10);
}
