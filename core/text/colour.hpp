// Colour on terminals that have it.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace attnbench::text {

enum class Colour { red, green, yellow, bold };

/// Whether `stream` is a terminal that shows colour: NO_COLOR is not set, and TERM is not "dumb".
bool shows_colour(std::FILE* stream);

/// `text` between the escape sequences of `colour`. The text must be printable already.
std::string coloured(std::string_view text, Colour colour);

/// Printable `text` with the words of statuses and verdicts coloured: good ones green, disturbed
/// and undecided ones yellow, failures red. Whole words alone, as the program writes them.
std::string with_coloured_words(std::string_view text);

}  // namespace attnbench::text
