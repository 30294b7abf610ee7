#include "harness/commands/columns.hpp"

#include <algorithm>
#include <cctype>
#include <ostream>

#include "harness/result/format.hpp"

namespace attnbench::commands {
namespace {

bool is_number(const std::string& text) {
  return !text.empty() && (std::isdigit(static_cast<unsigned char>(text[0])) || text == "-");
}

}  // namespace

void print_columns(std::ostream& out, const std::vector<Row>& rows, const std::string& indent) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], result::display_width(row[i]));
    }
  }
  for (const Row& row : rows) {
    std::string line = indent;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line.append("  ");
      if (is_number(row[i])) {
        line.append(result::pad_left(row[i], widths[i]));
      } else {
        line.append(i + 1 == row.size() ? row[i] : result::pad_right(row[i], widths[i]));
      }
    }
    line.resize(line.find_last_not_of(' ') + 1);
    out << line << "\n";
  }
}

}  // namespace attnbench::commands
