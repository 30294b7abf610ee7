#include "harness/program/commands/shared/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "core/text/colour.hpp"
#include "core/text/format.hpp"
#include "core/text/printable.hpp"

namespace attnbench::commands {
namespace {

bool is_number(const std::string& text) {
  return !text.empty() && (std::isdigit(static_cast<unsigned char>(text[0])) || text == "-");
}

/// The least width of a paragraph.
constexpr std::size_t least = 24;

/// How many columns stay aligned: all where they fit, else as many as leave room for a paragraph,
/// at least one.
std::size_t aligned_columns(const std::vector<std::size_t>& widths, std::size_t indent,
                            std::size_t width) {
  std::size_t used = indent, aligned = 0;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    used += widths[i] + (i > 0 ? 2 : 0);
    if (i == 0 || used + 2 + least <= width) aligned = i + 1;
  }
  return used <= width ? widths.size() : aligned;
}

}  // namespace

std::size_t terminal_width(std::size_t otherwise) {
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : otherwise;
}

bool is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (!value || !*value) continue;
    const std::string text = value;
    return text.find("UTF-8") != std::string::npos || text.find("utf8") != std::string::npos;
  }
  return false;
}

void print_with_sequences(const std::string& text) {
  // Not through the stream, which removes escape sequences.
  std::cout.flush();
  const std::string shown = text::with_coloured_words(text);
  std::fwrite(shown.data(), 1, shown.size(), stdout);
  std::fflush(stdout);
}

void print_coloured(const std::string& text) {
  if (!text::shows_colour(stdout)) {
    std::cout << text;
    return;
  }
  print_with_sequences(text::printable(text, text::Breaks::kept));
}

void print_columns(std::ostream& out, const std::vector<TableRow>& rows, const std::string& indent,
                   std::size_t width) {
  std::vector<std::size_t> widths;
  for (const TableRow& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], text::display_width(row[i]));
    }
  }
  const std::size_t aligned = aligned_columns(widths, indent.size(), width);
  std::size_t hanging = indent.size();
  for (std::size_t i = 0; i < aligned; ++i) hanging += widths[i] + 2;
  if (aligned < widths.size() && hanging + least > width) hanging = indent.size() + 4;
  for (const TableRow& row : rows) {
    std::string line = indent;
    for (std::size_t i = 0; i < std::min(aligned, row.size()); ++i) {
      if (i > 0) line.append("  ");
      if (is_number(row[i])) {
        line.append(text::pad_left(row[i], widths[i]));
      } else {
        line.append(i + 1 == row.size() ? row[i] : text::pad_right(row[i], widths[i]));
      }
    }
    for (std::size_t i = aligned; i < row.size(); ++i) {
      for (const std::string& part : text::wrap(row[i], width - std::min(width, hanging))) {
        if (text::display_width(line) > hanging) {
          out << line << "\n";
          line.clear();
        }
        line = text::pad_right(line, hanging) + part;
      }
    }
    line.resize(line.find_last_not_of(' ') + 1);
    out << line << "\n";
  }
}

}  // namespace attnbench::commands
