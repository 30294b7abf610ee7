// cuBLAS, looked for at run time: the program runs where there is none, and says so.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "attention/kernels/cuda/device.hpp"

namespace attnbench::bench {

using kernels::cuda::Stream;

class Blas {
 public:
  enum class Arithmetic { bf16, fp16, tf32, fp32 };

  /// Loads the library `file`; empty = the system's search for libcublas. Throws
  /// kernels::cuda::Error with the loader's words where there is none.
  explicit Blas(const std::string& file);
  ~Blas();
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

  int version() const;
  /// c = a b^T, all n x n; a, b and c hold bf16, fp16 or (tf32, fp32) float, sums are in float.
  void multiply(Arithmetic arithmetic, std::int64_t n, const void* a, const void* b, void* c,
                Stream stream) const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace attnbench::bench
