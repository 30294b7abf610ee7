// Workspace: memory that the caller lends to a kernel, so that it is counted where it is owned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace attnbench::kernels {

/// Hands out pieces of one block, each aligned to 64 bytes. Without a block it only counts, so that
/// the code that lays a workspace out also tells its size.
class Workspace {
 public:
  static constexpr std::size_t alignment = 64;

  Workspace() = default;
  /// `data` is aligned to 64 bytes and stays the caller's.
  Workspace(void* data, std::size_t bytes) : data_(static_cast<std::byte*>(data)), bytes_(bytes) {}

  /// Room for `count` numbers, not initialised. Throws std::logic_error past the end.
  template <class T>
  T* take(std::int64_t count) {
    const std::size_t begin = used_;
    const std::size_t size = static_cast<std::size_t>(count) * sizeof(T);
    used_ += (size + alignment - 1) / alignment * alignment;
    if (data_ == nullptr) return nullptr;
    if (used_ > bytes_) throw std::logic_error("the workspace is too small for this kernel");
    return reinterpret_cast<T*>(data_ + begin);
  }
  std::size_t used() const { return used_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t used_ = 0;
};

}  // namespace attnbench::kernels
