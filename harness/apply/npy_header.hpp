// The text of an .npy header: a Python dictionary of three entries.
#pragma once

#include <string>

#include "harness/apply/npy.hpp"

namespace attnbench::npy {

/// What the dictionary says, not yet held against what we can read.
struct HeaderText {
  std::string descr;  ///< "<f8"; "[…" where the type has fields
  bool fortran_order = false;
  Shape shape;
};

/// Throws std::invalid_argument with the reason where `text` is no such dictionary.
HeaderText parse_header(const std::string& text);

/// The dictionary of an array in C order.
std::string header_text(Element element, const Shape& shape);

}  // namespace attnbench::npy
