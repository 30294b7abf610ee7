// The parts of a data set.
#pragma once

#include <array>
#include <cstdint>

namespace attnbench::tasks::data {

/// Examples of different splits are independent.
enum class Split : std::uint8_t { train, validation, test };
constexpr std::array<Split, 3> every_split{Split::train, Split::validation, Split::test};

constexpr const char* to_string(Split split) {
  return split == Split::train ? "train" : split == Split::validation ? "validation" : "test";
}

}  // namespace attnbench::tasks::data
