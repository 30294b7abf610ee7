// Numbers for people: three significant digits, or two where an interval supports no more, and a
// unit that keeps them short.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace attnbench::text {

/// What the reader's terminal or file can show.
enum class Letters { utf8, ascii };

/// A time as "1.23 ms"; microseconds are "us" in ASCII.
std::string human_seconds(double seconds, Letters letters = Letters::utf8);
/// How many digits of `value` an interval from `low` to `high` around it supports: two where
/// rounding to two moves the value by no more than the interval's wider side, else three. So two
/// digits never make values the same whose intervals lie apart.
int supported_digits(double value, double low, double high);
/// Seconds with the digits that their interval supports: "1.23 ms" of ±1 %, "1.2 ms" of ±6 %.
std::string measured_seconds(double seconds, double low, double high,
                             Letters letters = Letters::utf8);
/// A size in bytes as "1.50 MiB", "0 B".
std::string human_bytes(double bytes);
/// A count of anything as "4.10 G"; the unit of numbers below a thousand is "".
std::string human_count(double count);
/// The uncertainty as "±1.2 %" of the wider side of an interval around `median`; "unsteady" where
/// that side is wider than the median itself, since no percentage says what such a number is worth.
std::string human_spread(double median, double low, double high, Letters letters = Letters::utf8);
/// A setting or option as a person would write it: 1024, causal, 127+0 for a window.
std::string human_value(const nlohmann::json& value);

/// The time now, in UTC, such as "2026-01-31T12:00:00Z".
std::string now_text();

/// Columns of a terminal that UTF-8 `text` takes, wide and combining letters aside.
std::size_t display_width(const std::string& text);
/// `text` followed (or led) by blanks up to `width` columns.
std::string pad_right(const std::string& text, std::size_t width);
std::string pad_left(const std::string& text, std::size_t width);
/// `text` cut to `width` columns, the cut marked.
std::string shorten(const std::string& text, std::size_t width, Letters letters = Letters::utf8);

/// `text` broken at blanks into lines of at most `width` columns; a longer word has its own line.
std::vector<std::string> wrap(const std::string& text, std::size_t width);

}  // namespace attnbench::text
