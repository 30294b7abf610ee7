#include "core/arrays/npy.hpp"

#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>
#include <stdexcept>

#include "core/failure.hpp"
#include "core/text/printable.hpp"

namespace attnbench::arrays {
namespace {

/// Reads the literal from left to right; every complaint is a std::invalid_argument.
class Literal {
 public:
  explicit Literal(const std::string& text) : text_(text) {}

  /// Whether the next character, spaces aside, is `wanted`; if so, moves past it.
  bool take(char wanted) {
    skip_space();
    if (at_end() || text_[place_] != wanted) return false;
    ++place_;
    return true;
  }

  void expect(char wanted) {
    if (!take(wanted)) complain(std::string("expected '") + wanted + "'");
  }

  bool at_end() const { return place_ >= text_.size(); }

  void expect_end() {
    skip_space();
    if (!at_end()) complain("something follows the dictionary");
  }

  std::string quoted() {
    skip_space();
    const char quote = at_end() ? ' ' : text_[place_];
    if (quote != '\'' && quote != '"') complain("expected a word in quotes");
    const std::size_t end = text_.find(quote, place_ + 1);
    if (end == std::string::npos) complain("a quote is not closed");
    const std::string word = text_.substr(place_ + 1, end - place_ - 1);
    place_ = end + 1;
    return word;
  }

  bool truth() {
    skip_space();
    for (const auto& [word, value] : {std::pair{"True", true}, std::pair{"False", false}}) {
      if (text_.compare(place_, std::string(word).size(), word) != 0) continue;
      place_ += std::string(word).size();
      return value;
    }
    complain("expected True or False");
  }

  std::int64_t size() {
    skip_space();
    std::string digits;
    while (!at_end() && std::isdigit(static_cast<unsigned char>(text_[place_])) != 0) {
      digits += text_[place_++];
    }
    if (digits.empty() || digits.size() > 18) {
      complain("expected a number of the shape, of at most 18 digits,");
    }
    if (!at_end() && text_[place_] == 'L') ++place_;  // as Python 2 wrote long integers
    return std::stoll(digits);
  }

  Shape shape() {
    Shape sizes;
    expect('(');
    while (!take(')')) {
      sizes.push_back(size());
      if (take(',')) continue;
      expect(')');
      break;
    }
    return sizes;
  }

  /// The rest, as it stands.
  std::string rest() const { return text_.substr(place_); }

 private:
  void skip_space() {
    while (!at_end() && std::isspace(static_cast<unsigned char>(text_[place_])) != 0) ++place_;
  }

  [[noreturn]] void complain(const std::string& what) const {
    throw std::invalid_argument(what + " at character " + std::to_string(place_ + 1) +
                                " of the header");
  }

  const std::string& text_;
  std::size_t place_ = 0;
};

constexpr std::string_view magic = "\x93NUMPY";
// NumPy itself refuses longer ones; ours are under 200 characters.
constexpr std::size_t longest_header = 65536;
constexpr std::size_t alignment = 64;

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& what) {
  throw UsageFailure(text::quotable(file.string()) + ": " + text::quotable(what, 600));
}

std::ifstream opened(const std::filesystem::path& file) {
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status)) {
    refuse(file, "no such file; expected an array written by numpy.save");
  }
  if (!std::filesystem::is_regular_file(status)) {
    refuse(file, "not a file on disk; expected an array written by numpy.save");
  }
  std::ifstream stream(file, std::ios::binary);
  if (!stream) refuse(file, std::string("cannot be opened: ") + std::strerror(errno));
  return stream;
}

/// The next `count` bytes; fewer where the file ends.
std::string taken(std::ifstream& stream, std::size_t count) {
  std::string bytes(count, '\0');
  stream.read(bytes.data(), static_cast<std::streamsize>(count));
  bytes.resize(static_cast<std::size_t>(stream.gcount()));
  return bytes;
}

/// The header's length, after its magic and version were read.
std::size_t header_length(std::ifstream& stream, const std::filesystem::path& file) {
  const std::string version = taken(stream, 2);
  if (version.size() < 2) refuse(file, "truncated: it ends within its header; write it again");
  const int major = static_cast<unsigned char>(version[0]);
  if (major < 1 || major > 3 || version[1] != 0) {
    refuse(file, "NPY version " + std::to_string(major) + "." +
                     std::to_string(static_cast<unsigned char>(version[1])) +
                     "; expected 1.0, 2.0 or 3.0: save the array with numpy.save");
  }
  const std::size_t width = major == 1 ? 2 : 4;
  const std::string digits = taken(stream, width);
  if (digits.size() < width) refuse(file, "truncated: it ends within its header; write it again");
  std::size_t length = 0;
  for (std::size_t i = 0; i < width; ++i) {
    length |= static_cast<std::size_t>(static_cast<unsigned char>(digits[i])) << (8 * i);
  }
  return length;
}

Element element_from(const std::filesystem::path& file, const std::string& descr) {
  const std::string expected = "; expected float32 or float64 (a mask: bool or uint8)";
  if (descr.size() > 1 && descr[0] == '>') {
    refuse(file, "its numbers are big-endian ('" + text::quotable(descr) +
                     "'); expected little-endian ones: save x.astype('<" +
                     text::quotable(descr.substr(1)) + "')");
  }
  for (const auto& [word, element] :
       {std::pair{"<f4", Element::float32}, std::pair{"<f8", Element::float64},
        std::pair{"<i8", Element::int64}, std::pair{"|b1", Element::boolean},
        std::pair{"|u1", Element::uint8}}) {
    if (descr == word) return element;
  }
  if (descr.rfind('[', 0) == 0) refuse(file, "its elements are records with fields" + expected);
  refuse(file, "its dtype is '" + text::quotable(descr) + "'" + expected +
                   ": save x.astype('float32') or x.astype('float64')");
}

void hold_to_size(const ArrayFile& array) {
  std::int64_t wanted = bytes_of(array.element);
  for (const std::int64_t size : array.shape) {
    if (__builtin_mul_overflow(wanted, size, &wanted)) {
      refuse(array.file, "its header says " + to_string(array.shape) +
                             ", more numbers than a file can hold; write it again");
    }
  }
  const auto found = static_cast<std::int64_t>(std::filesystem::file_size(array.file));
  const std::int64_t data = found - array.offset;
  if (data == wanted) return;
  const std::string said = "its header says " + to_string(array.shape) + " of " +
                           to_string(array.element) + ", which take " + std::to_string(wanted) +
                           " bytes, but " + std::to_string(data) + " follow";
  refuse(array.file,
         (data < wanted ? "truncated: " : "longer than its header: ") + said + "; write it again");
}

}  // namespace

HeaderText parse_header(const std::string& text) {
  HeaderText header;
  std::set<std::string> seen;
  Literal literal(text);
  literal.expect('{');
  while (!literal.take('}')) {
    const std::string key = literal.quoted();
    if (!seen.insert(key).second)
      throw std::invalid_argument("'" + text::quotable(key) + "' stands there twice");
    literal.expect(':');
    if (key == "descr") {
      if (literal.take('[')) {
        header.descr = "[" + literal.rest();
        return header;  // a type with fields is refused whatever follows
      }
      header.descr = literal.quoted();
    } else if (key == "fortran_order") {
      header.fortran_order = literal.truth();
    } else if (key == "shape") {
      header.shape = literal.shape();
    } else {
      throw std::invalid_argument("'" + text::quotable(key) +
                                  "' is not one of descr, fortran_order, shape");
    }
    if (literal.take(',')) continue;
    literal.expect('}');
    break;
  }
  literal.expect_end();
  for (const char* key : {"descr", "fortran_order", "shape"}) {
    if (seen.count(key) == 0) throw std::invalid_argument(std::string("'") + key + "' is missing");
  }
  return header;
}

std::string header_text(Element element, const Shape& shape) {
  static const char* const types[] = {"<f4", "<f8", "<i8", "|b1", "|u1", "<u2", "<u4"};
  std::string sizes;
  for (const std::int64_t size : shape) {
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  }
  if (shape.size() == 1) sizes += ",";
  return std::string("{'descr': '") + types[static_cast<int>(element)] +
         "', 'fortran_order': False, 'shape': (" + sizes + "), }";
}

const char* to_string(Element element) {
  static const char* const words[] = {"float32", "float64", "int64", "bool",
                                      "uint8",   "uint16",  "uint32"};
  return words[static_cast<int>(element)];
}

std::int64_t bytes_of(Element element) {
  static const std::int64_t sizes[] = {4, 8, 8, 1, 1, 2, 4};
  return sizes[static_cast<int>(element)];
}

std::string to_string(const Shape& shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

std::int64_t count_of(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

ArrayFile open_array(const std::filesystem::path& file) {
  std::ifstream stream = opened(file);
  const std::string begin = taken(stream, magic.size());
  if (begin.rfind("PK", 0) == 0) {
    refuse(file, "a zip archive, .npz perhaps; expected .npy: save each array alone by numpy.save");
  }
  if (begin != magic) {
    refuse(file, begin.empty() ? "empty; expected an array written by numpy.save"
                               : "not an .npy file; expected an array written by numpy.save");
  }
  const std::size_t length = header_length(stream, file);
  if (length > longest_header) {
    refuse(file, "its header claims to be " + std::to_string(length) +
                     " bytes long; expected a few hundred: write it again with numpy.save");
  }
  const std::string text = taken(stream, length);
  if (text.size() < length) refuse(file, "truncated: it ends within its header; write it again");
  ArrayFile array;
  array.file = file;
  array.offset = static_cast<std::int64_t>(stream.tellg());
  HeaderText header;
  try {
    header = parse_header(text);
  } catch (const std::invalid_argument& error) {
    refuse(file, "its header describes no array (" + text::quotable(error.what()) +
                     "): " + text::quotable(text, 100) + "; write it again with numpy.save");
  }
  array.element = element_from(file, header.descr);
  array.shape = header.shape;
  if (header.fortran_order) {
    refuse(file, "in Fortran order; expected C order: save numpy.ascontiguousarray(x)");
  }
  hold_to_size(array);
  return array;
}

void read_array(const ArrayFile& array, void* destination) {
  std::ifstream stream = opened(array.file);
  stream.seekg(array.offset);
  stream.read(static_cast<char*>(destination), array.bytes());
  if (stream.gcount() != array.bytes()) {
    throw EnvironmentFailure(array.file.string() +
                             ": cannot be read to its end; was it changed meanwhile?");
  }
}

ArrayWriter::ArrayWriter(const std::filesystem::path& file, Element element, const Shape& shape)
    : file_(file), left_(count_of(shape) * bytes_of(element)) {
  std::string header = header_text(element, shape);
  const std::size_t before = magic.size() + 4;
  const std::size_t padding = alignment - (before + header.size() + 1) % alignment;
  header += std::string(padding % alignment, ' ') + "\n";
  std::string begin(magic);
  begin += std::string("\x01\x00", 2);
  begin += static_cast<char>(header.size() & 0xff);
  begin += static_cast<char>(header.size() >> 8);
  errno = 0;
  stream_.open(file, std::ios::binary);
  stream_ << begin << header;
  if (!stream_) fail();
}

void ArrayWriter::add(const void* values, std::int64_t bytes) {
  stream_.write(static_cast<const char*>(values), bytes);
  if (!stream_) fail();
  left_ -= bytes;
}

void ArrayWriter::close() {
  stream_.close();
  if (!stream_) fail();
  if (left_ != 0) throw std::logic_error(file_.string() + ": its header says another number");
}

void ArrayWriter::fail() const {
  throw EnvironmentFailure("cannot write " + file_.string() + ": " + std::strerror(errno) +
                           "; free space there or choose another folder");
}

void write_array(const std::filesystem::path& file, Element element, const Shape& shape,
                 const void* values) {
  ArrayWriter writer(file, element, shape);
  writer.add(values, count_of(shape) * bytes_of(element));
  writer.close();
}

}  // namespace attnbench::arrays
