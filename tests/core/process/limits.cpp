#include "core/process/limits.hpp"

#include "core/failure.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using namespace attnbench::process;

TEST_CASE("amounts of memory are read as people write them", "[limits]") {
  CHECK(process::parse_bytes("4096") == 4096);
  CHECK(process::parse_bytes("512M") == std::int64_t{512} << 20);
  CHECK(process::parse_bytes("20G") == std::int64_t{20} << 30);
  CHECK(process::parse_bytes("20g") == std::int64_t{20} << 30);
  CHECK(process::parse_bytes("1.5GiB") == std::int64_t{3} << 29);
  CHECK(process::parse_bytes("2KB") == 2048);
  for (const char* wrong : {"", "G", "-1G", "0", "12X", "12GG", "nan", "1e30", "ten"}) {
    CHECK_THROWS_AS(process::parse_bytes(wrong), attnbench::UsageFailure);
  }
}

TEST_CASE("there is memory to be had", "[limits]") {
  CHECK(process::available_memory_bytes() > std::int64_t{16} << 20);
}

TEST_CASE("every cell is in exactly one shard", "[limits]") {
  std::vector<int> sizes(3);
  for (int cell = 0; cell < 300; ++cell) {
    const std::string id = "cell" + std::to_string(cell);
    int holders = 0;
    for (int index = 1; index <= 3; ++index) {
      if (!process::Shard{index, 3}.holds(id)) continue;
      ++holders;
      ++sizes[static_cast<std::size_t>(index - 1)];
    }
    CHECK(holders == 1);
  }
  for (const int size : sizes) CHECK(size > 60);
  CHECK(process::Shard{}.holds("any"));
}

TEST_CASE("a shard is I/N", "[limits]") {
  CHECK(process::parse_shard("2/8").index == 2);
  CHECK(process::parse_shard("2/8").count == 8);
  for (const char* wrong : {"", "2", "0/8", "9/8", "2/", "/8", "2/8x", "a/b", "-1/2"}) {
    CHECK_THROWS_AS(process::parse_shard(wrong), attnbench::UsageFailure);
  }
}
