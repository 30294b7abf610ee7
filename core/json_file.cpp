#include "core/json_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "core/failure.hpp"
#include "core/text/format.hpp"
#include "core/text/printable.hpp"

namespace attnbench {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& file, const std::string& what,
                         const std::string& expected) {
  throw UsageFailure(text::quotable(file.string()) + ": " + what + "; expected " + expected);
}

std::string size_text(std::size_t bytes) { return text::human_bytes(static_cast<double>(bytes)); }

/// Closes what it holds.
class Descriptor {
 public:
  explicit Descriptor(const fs::path& file)
      : number_(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

void hold_to(const fs::path& file, const struct stat& seen, const std::string& expected,
             std::size_t most) {
  if (S_ISDIR(seen.st_mode)) refuse(file, "this is a folder", expected);
  if (!S_ISREG(seen.st_mode)) {
    refuse(file, "this is a device, pipe or socket, not a regular file", expected);
  }
  if (seen.st_size > 0 && static_cast<std::size_t>(seen.st_size) > most) {
    refuse(file, "is larger than " + size_text(most), expected);
  }
}

/// Memory that a value takes, by what begins it; keys and texts by their letters besides.
constexpr std::size_t weight_of_value = 16;
constexpr std::size_t weight_of_container = 80;
constexpr std::size_t weight_of_text = 64;

std::string place_in(std::string_view text, const std::string& name, std::size_t position,
                     std::size_t first_line) {
  const std::string_view before = text.substr(0, std::min(position, text.size()));
  const std::size_t line_begin = before.rfind('\n');
  const std::size_t column =
      1 + (line_begin == std::string_view::npos ? before.size() : before.size() - line_begin - 1);
  const auto lines = static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
  return text::quotable(name) + ":" + std::to_string(first_line + lines) + ":" +
         std::to_string(column) + ": ";
}

std::string after(const std::string& text, const std::string& mark) {
  const std::size_t found = text.find(mark);
  return found == std::string::npos ? text : text.substr(found + mark.size());
}

}  // namespace

void expect_regular_file(const fs::path& file, const std::string& expected, std::size_t most) {
  struct stat seen {};
  if (stat(file.c_str(), &seen) != 0) {
    refuse(file, errno == ENOENT ? "there is no such file" : std::strerror(errno), expected);
  }
  hold_to(file, seen, expected, most);
}

std::string read_file(const fs::path& file, const std::string& expected, std::size_t most) {
  const Descriptor descriptor(file);
  if (descriptor.number() < 0) {
    refuse(file,
           errno == ENOENT ? "there is no such file"
                           : std::string("cannot be read: ") + std::strerror(errno),
           expected);
  }
  struct stat seen {};
  if (fstat(descriptor.number(), &seen) != 0) refuse(file, std::strerror(errno), expected);
  hold_to(file, seen, expected, most);
  // A file of /proc has no size and may have no end.
  std::string text(static_cast<std::size_t>(std::max<off_t>(seen.st_size, 0)), '\0');
  std::size_t done = 0;
  for (;;) {
    if (done == text.size()) text.resize(done + 65536);
    const ssize_t count = read(descriptor.number(), text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse(file, std::string("cannot be read: ") + std::strerror(errno), expected);
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
    if (done > most) refuse(file, "is larger than " + size_text(most), expected);
  }
  text.resize(done);
  return text;
}

BoundsFault bounds_fault(std::string_view text, const JsonBounds& bounds) {
  std::size_t depth = 0;
  std::size_t bytes = weight_of_value;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (quoted) {
      ++bytes;
      if (letter == '\\') {
        ++i;
      } else if (letter == '"') {
        quoted = false;
      }
    } else if (letter == '"') {
      quoted = true;
      bytes += weight_of_text;
    } else if (letter == '[' || letter == '{') {
      if (++depth > bounds.depth) {
        return {i, "nested more than " + std::to_string(bounds.depth) + " deep"};
      }
      bytes += weight_of_container;
    } else if (letter == ']' || letter == '}') {
      depth -= depth > 0 ? 1 : 0;
    } else if (letter == ',') {
      bytes += weight_of_value;
    }
    if (bytes > bounds.bytes) {
      return {i, "holds more than " + size_text(bounds.bytes) + " of values"};
    }
  }
  return {};
}

std::string json_complaint(const nlohmann::json::exception& error) {
  std::string text = error.what();
  if (text.rfind("[json.exception.", 0) == 0) text = after(text, "] ");
  if (text.rfind("parse error", 0) == 0) {
    if (text.find("unexpected end of input") != std::string::npos) {
      return "the text ends in the middle of a value; is it cut off?";
    }
    const std::size_t dash = text.find(" - ");
    text =
        "is not JSON: " + (dash == std::string::npos ? after(text, ": ") : text.substr(dash + 3));
  }
  // "type must be number, but is string", with or without "cannot use … with"
  const std::string must = "type must be ";
  if (const std::size_t at = text.find(must); at != std::string::npos) {
    const std::size_t but = text.find(", but is ", at);
    if (but != std::string::npos) {
      text = "expected " + text.substr(at + must.size(), but - at - must.size()) + ", found " +
             text.substr(but + 9);
    }
  } else if (text.rfind("cannot use ", 0) == 0) {
    text = "expected another type, found " + after(text, " with ");
  } else if (text.rfind("incompatible ReferenceType", 0) == 0) {
    text = "expected another type, found " + after(text, "actual type is ");
  } else if (text.rfind("key '", 0) == 0) {
    text = "expected the " + text.substr(0, text.rfind('\'') + 1) + ", found nothing";
  }
  return text::quotable(text);
}

void refuse_unreadable(const fs::path& file, const nlohmann::json::exception& error) {
  throw UsageFailure(text::quotable(file.string()) + ": /attnbench: " + json_complaint(error) +
                     "; is it a result.json that attnbench wrote, complete and unedited?");
}

Json parse_json(std::string_view text, const std::string& name, const std::string& expected,
                const JsonBounds& bounds, std::size_t first_line) {
  const BoundsFault fault = bounds_fault(text, bounds);
  if (!fault.reason.empty()) {
    throw UsageFailure(place_in(text, name, fault.position, first_line) + fault.reason +
                       "; expected " + expected);
  }
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw UsageFailure(place_in(text, name, error.byte == 0 ? 0 : error.byte - 1, first_line) +
                       json_complaint(error) + "; expected " + expected);
  } catch (const Json::exception& error) {
    // A number that no double holds: the library names it, not its place.
    const std::string said = error.what();
    const std::size_t quote = said.find('\'');
    const std::string number =
        quote == std::string::npos ? said : said.substr(quote + 1, said.rfind('\'') - quote - 1);
    const std::size_t position = text.find(number);
    throw UsageFailure(
        place_in(text, name, position == std::string_view::npos ? 0 : position, first_line) +
        "the number " + text::quotable(number) + " is too large; expected " + expected);
  }
}

Json parse_json_file(const fs::path& file, const std::string& expected, const JsonBounds& bounds) {
  return parse_json(read_file(file, expected), file.string(), expected, bounds);
}

std::string file_tail(const std::filesystem::path& file, std::size_t bytes) {
  std::ifstream stream(file, std::ios::binary);
  stream.seekg(0, std::ios::end);
  const std::streamoff size = stream.tellg();
  if (!stream || size <= 0) return {};
  const std::streamoff from =
      std::max<std::streamoff>(0, size - static_cast<std::streamoff>(bytes));
  std::string text(static_cast<std::size_t>(size - from), '\0');
  stream.seekg(from);
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (from > 0) {
    const std::size_t end = text.find('\n');
    if (end != std::string::npos && end + 1 < text.size()) text.erase(0, end + 1);
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
  return text;
}

}  // namespace attnbench
