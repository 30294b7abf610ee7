#include "tests/benchmarks/cuda/blas.hpp"

#include <cublas_v2.h>
#include <dlfcn.h>

#include <vector>

#include "attention/kernels/cuda/launch.cuh"

namespace attnbench::bench {
namespace {

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw kernels::cuda::Error(std::string(call) + ": status " +
                             std::to_string(static_cast<int>(status)));
}

}  // namespace

struct Blas::Library {
  void* file = nullptr;
  cublasHandle_t handle = nullptr;
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasGetVersion_v2) version = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  // Spelled out: the header overloads it for an older type of the arithmetic.
  cublasStatus_t (*gemm)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                         const void*, const void*, cudaDataType, int, const void*, cudaDataType,
                         int, const void*, void*, cudaDataType, int, cublasComputeType_t,
                         cublasGemmAlgo_t) = nullptr;

  template <class F>
  void find(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(file, name));
    if (function == nullptr) throw kernels::cuda::Error(std::string("cuBLAS has no ") + name);
  }
};

Blas::Blas(const std::string& file) : library_(std::make_unique<Library>()) {
  // The interface used here has been the same since CUDA 11.
  const std::vector<std::string> names =
      file.empty() ? std::vector<std::string>{"libcublas.so.13", "libcublas.so.12", "libcublas.so"}
                   : std::vector<std::string>{file};
  std::string words;
  for (const std::string& name : names) {
    library_->file = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_->file != nullptr) break;
    if (words.empty()) words = dlerror();
  }
  if (library_->file == nullptr) throw kernels::cuda::Error(words);
  library_->find(library_->create, "cublasCreate_v2");
  library_->find(library_->destroy, "cublasDestroy_v2");
  library_->find(library_->version, "cublasGetVersion_v2");
  library_->find(library_->set_stream, "cublasSetStream_v2");
  library_->find(library_->gemm, "cublasGemmEx");
  check(library_->create(&library_->handle), "cublasCreate");
}

Blas::~Blas() {
  if (library_->handle != nullptr) library_->destroy(library_->handle);
}

int Blas::version() const {
  int version = 0;
  check(library_->version(library_->handle, &version), "cublasGetVersion");
  return version;
}

void Blas::multiply(Arithmetic arithmetic, std::int64_t n, const void* a, const void* b, void* c,
                    Stream stream) const {
  const float one = 1;
  const float zero = 0;
  const int size = static_cast<int>(n);
  const cudaDataType type = arithmetic == Arithmetic::bf16   ? CUDA_R_16BF
                            : arithmetic == Arithmetic::fp16 ? CUDA_R_16F
                                                             : CUDA_R_32F;
  const cublasComputeType_t compute =
      arithmetic == Arithmetic::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  check(library_->set_stream(library_->handle, kernels::cuda::native(stream)), "cublasSetStream");
  // Arrays by columns: the transposed first factor is what makes it a b^T by rows.
  check(library_->gemm(library_->handle, CUBLAS_OP_T, CUBLAS_OP_N, size, size, size, &one, b, type,
                       size, a, type, size, &zero, c, type, size, compute, CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
}

}  // namespace attnbench::bench
