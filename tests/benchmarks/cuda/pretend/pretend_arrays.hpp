// What pretended kernels do with arrays: hold them to the blocks that were allocated. The numbers
// themselves are never touched.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "attention/kernels/rows.hpp"
#include "tests/benchmarks/cuda/pretend/pretend_device.hpp"

namespace attnbench::bench::pretend {

/// Throws std::logic_error unless the bytes lie in one block.
void in_one_block(const void* data, std::size_t bytes);
/// From the first number of the first row to the last one of the last.
template <class T>
void readable(const kernels::Rows<T>& rows, std::int64_t batch, std::int64_t heads,
              std::int64_t length, std::int64_t width) {
  const T* end = rows.at(batch - 1, heads - 1, length - 1) + width;
  in_one_block(rows.data, static_cast<std::size_t>(end - rows.data) * sizeof(T));
}

/// As above; and notes that the block has been written.
void note_written(const void* data);
template <class T>
void written(const kernels::Rows<T>& rows, std::int64_t batch, std::int64_t heads,
             std::int64_t length, std::int64_t width) {
  readable(rows, batch, heads, length, width);
  note_written(rows.data);
}
template <class T>
void written_dense(T* data, std::int64_t count) {
  in_one_block(data, static_cast<std::size_t>(count) * sizeof(T));
  note_written(data);
}

/// Throws std::logic_error where nobody has written to it.
void check_written(const void* data, const char* name);
template <class T>
void was_written(const kernels::Rows<T>& rows, const char* name) {
  check_written(rows.data, name);
}

inline void check_workspace(void* workspace, std::size_t bytes, std::size_t needed) {
  if (bytes < needed) throw std::logic_error("the workspace is too small");
  in_one_block(workspace, bytes);
}

}  // namespace attnbench::bench::pretend
