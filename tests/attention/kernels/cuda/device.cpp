#include "attention/kernels/cuda/device.hpp"

#include "tests/attention/kernels/cuda/device_array.hpp"
#include "tests/support/catch.hpp"

namespace attnbench::kernels::cuda::test {

TEST_CASE("without a device the reason is said, not thrown") {
  // Either answer is right, depending on the machine; neither may end in an exception.
  const std::string why = refusal();
  if (!why.empty()) CHECK_THROWS_AS(allocate(1024), Error);
}

TEST_CASE("a device array comes back as it was written, and is poisoned before") {
  NEEDS_DEVICE();
  const std::vector<float> values{1, 2, 3};
  CHECK(DeviceArray<float>(values).values() == values);
  for (const float x : DeviceArray<float>(5).values()) CHECK(x != x);
}

TEST_CASE("a write past the end of a device array is seen") {
  NEEDS_DEVICE();
  const DeviceArray<float> array(3);
  fill(array.data(), 0, 4 * sizeof(float));
  CHECK_THROWS_AS(array.values(), std::logic_error);
}

TEST_CASE("a graph does again what was recorded, and events tell time on the device") {
  NEEDS_DEVICE();
  const OwnedStream stream;
  const DeviceArray<unsigned char> array(1 << 20);
  const Graph graph(stream, [&] { fill(array.data(), 7, array.bytes(), stream); });
  fill(array.data(), 0, array.bytes(), stream);
  Event begin, end;
  begin.record(stream);
  graph.launch(stream);
  end.record(stream);
  CHECK(end.seconds_since(begin) > 0);
  CHECK(array.values().back() == 7);
}

TEST_CASE("after memory was refused the next call goes on as if nothing had been") {
  NEEDS_DEVICE();
  CHECK_THROWS_AS(allocate(std::size_t{1} << 60), Error);
  CHECK(DeviceArray<float>(std::vector<float>{1, 2}).values().back() == 2);
}

TEST_CASE("the card says what it is") {
  NEEDS_DEVICE();
  CHECK(card().multiprocessors > 0);
  CHECK(card().shared_bytes >= 48 * 1024);
  CHECK_FALSE(card().name.empty());
}

}  // namespace attnbench::kernels::cuda::test
