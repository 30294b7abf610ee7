// NumPy's .npy files: one array, its type and shape in a header, its numbers after it.
//
// A reader of our own, because every malformed file is to be refused with its name, what was found,
// what was expected and what to do. Debian's xtensor (xnpy.hpp) names no file, wants the header's
// keys in one order, which the format leaves open, and does not look for missing or further bytes.
// Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace attnbench::npy {

enum class Element { float32, float64, int64, boolean, uint8 };

const char* to_string(Element element);
std::int64_t bytes_of(Element element);

using Shape = std::vector<std::int64_t>;

/// "[2, 3, 43]".
std::string to_string(const Shape& shape);
std::int64_t count_of(const Shape& shape);

/// A file whose header was read and whose size is what that header says: little-endian numbers in C
/// order, `count_of(shape)` of them from `offset` on.
struct Array {
  std::filesystem::path file;
  Element element = Element::float32;
  Shape shape;
  std::int64_t offset = 0;
  std::int64_t bytes() const { return count_of(shape) * bytes_of(element); }
};

/// Reads and holds the header against the file. Throws UsageFailure where it is no such array.
Array open_array(const std::filesystem::path& file);

/// Copies its numbers to `destination`, which has room for `array.bytes()`.
/// Throws EnvironmentFailure where they cannot be read.
void read_array(const Array& array, void* destination);

/// Writes version 1.0. Throws EnvironmentFailure naming the file and the reason.
void write_array(const std::filesystem::path& file, Element element, const Shape& shape,
                 const void* values);

}  // namespace attnbench::npy
