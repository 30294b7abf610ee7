#include "tasks/data/lra/pathfinder_files.hpp"

#include <algorithm>
#include <charconv>

#include "core/errors.hpp"
#include "core/text/printable.hpp"

namespace attnbench::tasks::data::lra {
namespace {

PathfinderLine line_of(const std::vector<std::string>& fields, std::size_t number) {
  const std::string where = "line " + std::to_string(number) + ": ";
  if (fields.size() < 4) {
    throw UsageError(where + std::to_string(fields.size()) +
                     " fields, expected at least 4 (folder, file, index, label)");
  }
  if (fields[3] != "0" && fields[3] != "1") {
    throw UsageError(where + "the label is \"" + text::quotable(fields[3], 40) +
                     "\", expected 0 or 1");
  }
  return {fields[0] + "/" + fields[1], fields[3][0] - '0'};
}

/// A NumPy array of strings, rows x columns: '|S20' (bytes) or '<U20' (four bytes a letter).
std::vector<PathfinderLine> parse_array(std::string_view content) {
  const auto refuse = [] {
    throw UsageError("is a NumPy array, but not one of strings in rows and columns");
  };
  if (content.size() < 12) refuse();
  const bool first_version = content[6] == 1;
  std::size_t header_bytes = 0;
  for (std::size_t i = first_version ? 2 : 4; i > 0; --i) {
    header_bytes = header_bytes << 8 | static_cast<unsigned char>(content[8 + i - 1]);
  }
  const std::size_t begin = first_version ? 10 : 12;
  if (content.size() - begin < header_bytes) refuse();
  const std::string_view header = content.substr(begin, header_bytes);
  const std::string_view data = content.substr(begin + header_bytes);
  const auto behind = [&](std::string_view key) {
    const std::size_t at = header.find(key);
    return at == std::string_view::npos ? std::string_view() : header.substr(at + key.size());
  };
  std::string_view type = behind("'descr': '");
  type = type.substr(0, type.find('\''));
  std::string_view shape = behind("'shape': (");
  shape = shape.substr(0, shape.find(')'));
  const std::size_t comma = shape.find(", ");
  if (type.size() < 3 || comma == std::string_view::npos ||
      behind("'fortran_order': ").starts_with("True") ||
      (!type.starts_with("|S") && !type.starts_with("<U"))) {
    refuse();
  }
  const std::size_t letter = type[1] == 'U' ? 4 : 1;
  const std::uint64_t letters = number_of(type.substr(2)).value_or(0);
  const std::uint64_t rows = number_of(shape.substr(0, comma)).value_or(0);
  const std::uint64_t columns = number_of(shape.substr(comma + 2)).value_or(0);
  if (letters == 0 || letters > 4096 || columns == 0 || columns > 4096 ||
      data.size() != rows * columns * letters * letter) {
    refuse();
  }
  std::vector<PathfinderLine> lines;
  for (std::uint64_t row = 0; row < rows; ++row) {
    std::vector<std::string> fields;
    for (std::uint64_t column = 0; column < columns; ++column) {
      std::string field;
      for (std::uint64_t i = 0; i < letters; ++i) {
        const char first = data[((row * columns + column) * letters + i) * letter];
        if (first != '\0') field += first;
      }
      fields.push_back(std::move(field));
    }
    lines.push_back(line_of(fields, row + 1));
  }
  return lines;
}

}  // namespace

std::optional<std::uint32_t> number_of(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::vector<PathfinderLine> parse_pathfinder_metadata(std::string_view content) {
  if (content.starts_with("\x93NUMPY")) return parse_array(content);
  std::vector<PathfinderLine> lines;
  std::size_t number = 0;
  while (!content.empty()) {
    const std::size_t end = std::min(content.find('\n'), content.size());
    std::vector<std::string> fields;
    for (std::string_view rest = content.substr(0, end); !rest.empty();) {
      const std::size_t blank = std::min(rest.find_first_of(" \r\t"), rest.size());
      if (blank > 0) fields.emplace_back(rest.substr(0, blank));
      rest.remove_prefix(std::min(blank + 1, rest.size()));
    }
    content.remove_prefix(std::min(end + 1, content.size()));
    ++number;
    if (!fields.empty()) lines.push_back(line_of(fields, number));
  }
  return lines;
}

}  // namespace attnbench::tasks::data::lra
