#include "attention/kernels/rows.hpp"

#include <cmath>
#include <limits>

#include "tests/support/catch.hpp"

using namespace attnbench::kernels;

namespace {

std::uint16_t half_bits(float x) {
  Half half;
  narrow(x, half);
  return half.bits;
}

}  // namespace

TEST_CASE("every half-precision number comes back from a float as it was") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Half half{static_cast<std::uint16_t>(bits)};
    const float wide = widen(half);
    if (wide != wide) continue;
    REQUIRE(half_bits(wide) == half.bits);
  }
}

TEST_CASE("half precision rounds to the nearest number, and to the even one between two") {
  for (std::uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = widen(Half{static_cast<std::uint16_t>(bits)});
    const float high = widen(Half{static_cast<std::uint16_t>(bits + 1)});
    const float middle = 0.5F * (low + high);
    REQUIRE(half_bits(middle) == (bits % 2 == 0 ? bits : bits + 1));
    REQUIRE(half_bits(std::nextafter(middle, 0.0F)) == bits);
    REQUIRE(half_bits(std::nextafter(middle, 1e9F)) == bits + 1);
  }
}

TEST_CASE("half precision ends at 65504, and NaN stays NaN") {
  CHECK(half_bits(65519.996F) == 0x7bff);
  CHECK(half_bits(65520.0F) == 0x7c00);
  CHECK(half_bits(-std::numeric_limits<float>::infinity()) == 0xfc00);
  CHECK(widen(Half{0xfc00}) == -std::numeric_limits<float>::infinity());
  Half half;
  narrow(std::numeric_limits<float>::quiet_NaN(), half);
  CHECK(widen(half) != widen(half));
}
