// Encoding: what must hold of a file's bytes before they are read as JSON.
#pragma once

#include <cstddef>
#include <string>

namespace attnbench::suite {

/// Where the first offending byte is, and why it offends.
struct EncodingFault {
  std::size_t position = 0;
  std::string reason;  ///< empty = there is none
};

/// UTF-8 without a byte order mark and without zero bytes, or the first fault.
EncodingFault encoding_fault(const std::string& text);

/// 1-based line of the byte at `position`.
std::size_t line_of(const std::string& text, std::size_t position);

}  // namespace attnbench::suite
