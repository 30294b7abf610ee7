// Two whole outputs, row by row.
#pragma once

#include "tasks/reference_rows.hpp"

namespace attnbench::tasks {

/// The root mean square of all numbers.
double usual_size(const at::Tensor& output);

/// Rows of [B, H, T, Dv] in which `a` is further from `b` than `bar`, at most `most`, the worst
/// first: the root mean square of the difference over that of the row or, where that is greater, of
/// all of `b`. Small rows are sums in which much cancels, and have no relative accuracy to lose.
Rows rows_apart(const at::Tensor& a, const at::Tensor& b, double bar, std::size_t most);

/// How many rows that are, whatever the dimensions before the last one.
std::int64_t count_rows_apart(const at::Tensor& a, const at::Tensor& b, double bar);

}  // namespace attnbench::tasks
