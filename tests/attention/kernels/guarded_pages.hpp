// Numbers behind which no page may be touched: whoever reads on is ended by the machine.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "tests/support/catch.hpp"

namespace attnbench::kernels::test {

/// A copy of numbers that ends where a page does; the page after it can be neither read nor
/// written.
template <class T>
class GuardedPages {
 public:
  explicit GuardedPages(const std::vector<T>& numbers) : count_(numbers.size()) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t bytes = (count_ * sizeof(T) + page - 1) / page * page;
    bytes_ = bytes + page;
    pages_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(pages_ != MAP_FAILED);
    auto* const end = static_cast<std::byte*>(pages_) + bytes;
    REQUIRE(mprotect(end, page, PROT_NONE) == 0);
    data_ = reinterpret_cast<T*>(end) - count_;
    std::copy(numbers.begin(), numbers.end(), data_);
  }
  ~GuardedPages() { munmap(pages_, bytes_); }
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;

  T* data() const { return data_; }
  std::vector<T> copy() const { return {data_, data_ + count_}; }

 private:
  std::size_t count_, bytes_ = 0;
  void* pages_ = nullptr;
  T* data_ = nullptr;
};

}  // namespace attnbench::kernels::test
