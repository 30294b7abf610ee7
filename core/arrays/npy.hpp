// NumPy's .npy files: a header with type and shape, then the numbers of one array.
//
// A reader of our own, because each malformed file is to be refused with its name, what was found
// and what was expected. Debian's xtensor (xnpy.hpp) names no file, expects the header's keys in
// one order, which the format does not fix, and ignores missing or further bytes. Format:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace attnbench::arrays {

/// Arrays of uint16 and uint32 are written, for tokens, and not read.
enum class Element { float32, float64, int64, boolean, uint8, uint16, uint32 };

const char* to_string(Element element);
std::int64_t bytes_of(Element element);

using Shape = std::vector<std::int64_t>;

/// The shape as text: "[2, 3, 43]".
std::string to_string(const Shape& shape);
std::int64_t count_of(const Shape& shape);

/// A file whose size agrees with its header: `count_of(shape)` little-endian numbers in C order,
/// from `offset` on.
struct ArrayFile {
  std::filesystem::path file;
  Element element = Element::float32;
  Shape shape;
  std::int64_t offset = 0;
  std::int64_t bytes() const { return count_of(shape) * bytes_of(element); }
};

/// Reads the header and checks it against the file. Throws UsageFailure for any other file.
ArrayFile open_array(const std::filesystem::path& file);

/// Copies the numbers to `destination`, which holds `array.bytes()`. Throws EnvironmentFailure.
void read_array(const ArrayFile& array, void* destination);

/// Writes version 1.0, piece by piece, for arrays that are larger than memory.
class ArrayWriter {
 public:
  /// All functions throw EnvironmentFailure naming the file and the reason.
  ArrayWriter(const std::filesystem::path& file, Element element, const Shape& shape);
  /// The next numbers, in C order.
  void add(const void* values, std::int64_t bytes);
  /// The end. Throws std::logic_error where other numbers were added than the shape says.
  void close();

 private:
  [[noreturn]] void fail() const;

  std::filesystem::path file_;
  std::ofstream stream_;
  std::int64_t left_;  ///< bytes
};

/// Writes a whole array. Throws EnvironmentFailure naming the file and the reason.
void write_array(const std::filesystem::path& file, Element element, const Shape& shape,
                 const void* values);

/// The header, a Python dictionary of three entries, unchecked.
struct HeaderText {
  std::string descr;  ///< "<f8"; "[…" where the type has fields
  bool fortran_order = false;
  Shape shape;
};

/// Throws std::invalid_argument where `text` is no such dictionary.
HeaderText parse_header(const std::string& text);

/// The dictionary of an array in C order.
std::string header_text(Element element, const Shape& shape);

}  // namespace attnbench::arrays
