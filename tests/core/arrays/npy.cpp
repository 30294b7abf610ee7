#include "core/arrays/npy.hpp"

#include <array>
#include <numeric>

#include "core/failure.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using namespace attnbench::test;
using arrays::Element;
using arrays::Shape;

namespace {

/// An .npy file of this header and data, the header's length and padding right.
std::string npy_text(std::string header, const std::string& data, int version = 1) {
  const std::size_t before = version == 1 ? 10 : 12;
  while ((before + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string text = "\x93NUMPY";
  text += static_cast<char>(version);
  text += '\0';
  for (std::size_t i = 0; i < (version == 1 ? 2u : 4u); ++i) {
    text += static_cast<char>(header.size() >> (8 * i) & 0xff);
  }
  return text + header + data;
}

std::string header_of(const std::string& descr, const std::string& order,
                      const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
}

/// What reading a file of this text is refused with; "" if it is read.
std::string refusal(const std::string& text) {
  const TemporaryFolder folder;
  write_file(folder / "x.npy", text);
  try {
    arrays::open_array(folder / "x.npy");
  } catch (const UsageFailure& failure) {
    return failure.what();
  }
  return "";
}

std::string bytes(std::size_t count) { return std::string(count, '\1'); }

}  // namespace

TEST_CASE("an array of any type and rank is read back as written", "[apply][npy]") {
  const TemporaryFolder folder;
  const Shape shape = GENERATE(Shape{}, Shape{5}, Shape{0, 3}, Shape{2, 3}, Shape{2, 1, 3, 4});
  const Element element = GENERATE(Element::float32, Element::float64, Element::int64,
                                   Element::boolean, Element::uint8);
  std::vector<unsigned char> values(
      static_cast<std::size_t>(arrays::count_of(shape) * arrays::bytes_of(element)));
  std::iota(values.begin(), values.end(), static_cast<unsigned char>(1));
  arrays::write_array(folder / "x.npy", element, shape, values.data());
  const arrays::ArrayFile array = arrays::open_array(folder / "x.npy");
  CHECK(array.element == element);
  CHECK(array.shape == shape);
  CHECK(array.offset % 64 == 0);
  std::vector<unsigned char> back(values.size());
  arrays::read_array(array, back.data());
  CHECK(back == values);
}

TEST_CASE("the header is NumPy's, to the letter", "[apply][npy]") {
  // As numpy.save writes float64 arrays of these shapes.
  CHECK(arrays::header_text(Element::float64, {2, 3}) ==
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }");
  CHECK(arrays::header_text(Element::float32, {5}) ==
        "{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }");
  CHECK(arrays::header_text(Element::boolean, {}) ==
        "{'descr': '|b1', 'fortran_order': False, 'shape': (), }");
  const TemporaryFolder folder;
  const std::array<double, 6> values{1, 2, 3, 4, 5, 6};
  arrays::write_array(folder / "x.npy", Element::float64, {2, 3}, values.data());
  const std::string data(reinterpret_cast<const char*>(values.data()), sizeof values);
  CHECK(read_file(folder / "x.npy") == npy_text(header_of("<f8", "False", "(2, 3)"), data));
}

TEST_CASE("every version and order of keys is read", "[apply][npy]") {
  for (const int version : {1, 2, 3}) {
    CHECK(refusal(npy_text(header_of("<f4", "False", "(2, 3)"), bytes(24), version)).empty());
  }
  CHECK(refusal(npy_text("{\"shape\":(2,3),'fortran_order':False,'descr':\"<f4\"}", bytes(24)))
            .empty());
  CHECK(refusal(npy_text("{'shape': (2L, 3L), 'descr': '<f4', 'fortran_order': False}", bytes(24)))
            .empty());
}

TEST_CASE("a malformed array is refused with what was found and what to do", "[apply][npy]") {
  using Catch::Contains;
  const std::string good = npy_text(header_of("<f8", "False", "(2, 3)"), bytes(48));
  REQUIRE(refusal(good).empty());
  CHECK_THAT(refusal(""), Contains("x.npy: empty") && Contains("numpy.save"));
  CHECK_THAT(refusal("some text, no array"), Contains("not an .npy file"));
  CHECK_THAT(refusal("PK\x03\x04 and so on"), Contains("save each array alone"));
  CHECK_THAT(refusal(npy_text(header_of("<f8", "False", "(2, 3)"), bytes(48), 4)),
             Contains("version 4.0") && Contains("expected 1.0"));
  for (const std::size_t length : {6, 7, 9, 40, 127}) {
    CHECK_THAT(refusal(good.substr(0, length)), Contains("truncated"));
  }
  CHECK_THAT(refusal(good.substr(0, good.size() - 1)),
             Contains("truncated") && Contains("48 bytes") && Contains("47 follow"));
  CHECK_THAT(refusal(good + "x"), Contains("longer than its header") && Contains("49 follow"));
  CHECK_THAT(refusal(npy_text(header_of(">f8", "False", "(2, 3)"), bytes(48))),
             Contains("big-endian") && Contains("astype('<f8')"));
  CHECK_THAT(refusal(npy_text(header_of("<f8", "True", "(2, 3)"), bytes(48))),
             Contains("Fortran order") && Contains("ascontiguousarray"));
  for (const char* descr : {"<f2", "<c16", "|O", "<U3", "<i4", "V8"}) {
    CHECK_THAT(refusal(npy_text(header_of(descr, "False", "(2, 3)"), bytes(48))),
               Contains(descr) && Contains("expected float32 or float64"));
  }
  CHECK_THAT(refusal(npy_text("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (2,)}",
                              bytes(16))),
             Contains("records with fields"));
  CHECK_THAT(refusal(npy_text(header_of("<f8", "False", "(999999999999, 999999999999)"), "")),
             Contains("more numbers than a file can hold"));
}

TEST_CASE("a header that is no dictionary of an array is refused", "[apply][npy]") {
  const std::string text = GENERATE(
      as<std::string>(), "", "{", "{}", "{'descr': '<f8'}", "{'descr': '<f8', 'shape': (2, 3)}",
      "{'descr': '<f8', 'fortran_order': 0, 'shape': (2, 3)}",
      "{'descr': '<f8', 'fortran_order': False, 'shape': (2, -3)}",
      "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3}",
      "{'descr': '<f8', 'fortran_order': False, 'shape': [2, 3]}",
      "{'descr': '<f8', 'fortran_order': False, 'shape': (2 3)}",
      "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}",
      "{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (2, 3)}",
      "{'descr': '<f8', 'order': 'C', 'fortran_order': False, 'shape': (2, 3)}",
      "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3)} more",
      "{'descr': '<f8, 'fortran_order': False, 'shape': (2, 3)}");
  INFO(text);
  CHECK_THAT(refusal(npy_text(text, bytes(48))), Catch::Contains("describes no array"));
}

TEST_CASE("a header's text is made printable before it is shown", "[apply][npy]") {
  const std::string evil = "\x1b]0;title\x07\r\x9b";
  for (const std::string& text :
       {evil, "{'" + evil + "': 1}",
        "{'descr': '" + evil + "', 'fortran_order': False, 'shape': (2, 3)}",
        "{'descr': '>" + evil + "', 'fortran_order': False, 'shape': (2, 3)}"}) {
    const std::string message = refusal(npy_text(text, bytes(48)));
    INFO(message);
    CHECK_THAT(message, Catch::Contains("1b]0;title\\"));  // whichever way it is escaped
    for (const char letter : message) {
      const auto byte = static_cast<unsigned char>(letter);
      if (byte < 0x20 || byte == 0x7f || byte == 0x9b) FAIL_CHECK("a raw byte " << int(byte));
    }
  }
}

TEST_CASE("a complaint of a header says what was expected, and of what", "[apply][npy]") {
  const auto shaped = [](const std::string& shape) {
    return refusal(npy_text(header_of("<f8", "False", shape), bytes(48)));
  };
  CHECK_THAT(shaped("(2, -3)"),
             Catch::Contains("expected a number of the shape") && Catch::Contains("of the header"));
  CHECK_THAT(shaped("[2, 3]"), Catch::Contains("expected '(' at character"));
}

TEST_CASE("a path that is no file is refused", "[apply][npy]") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(arrays::open_array(folder / "none.npy"), Catch::Contains("no such file"));
  CHECK_THROWS_WITH(arrays::open_array(folder.path()), Catch::Contains("not a file on disk"));
  const double value = 1;
  CHECK_THROWS_AS(arrays::write_array(folder / "no" / "x.npy", Element::float64, {1}, &value),
                  EnvironmentFailure);
  CHECK_THROWS_AS(arrays::write_array("/dev/full", Element::float64, {1}, &value),
                  EnvironmentFailure);
}
