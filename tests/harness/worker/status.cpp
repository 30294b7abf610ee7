#include "harness/worker/status.hpp"

#include <signal.h>

#include <new>

#include "attention/torch/torch.hpp"
#include "core/errors.hpp"
#include "harness/worker/allocator.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;

namespace {

template <class Thrown>
worker::Outcome outcome_of(const Thrown& thrown) {
  return worker::outcome_of(std::make_exception_ptr(thrown));
}

/// As waitpid reports them.
int killed_by(int number) { return number; }
int exited_with(int code) { return code << 8; }

}  // namespace

TEST_CASE("each kind of exception has its status", "[status]") {
  CHECK(outcome_of(UnsupportedError("no cross")).status == Status::unsupported);
  CHECK(outcome_of(UsageError("no such thing")).status == Status::error);
  CHECK(outcome_of(PluginError("clash")).status == Status::error);
  CHECK(outcome_of(std::bad_alloc()).status == Status::out_of_memory);
  CHECK(outcome_of(worker::OutOfMemory(1 << 20, 0, 1 << 10)).status == Status::out_of_memory);
  CHECK(outcome_of(std::runtime_error("whatever")).status == Status::error);
  CHECK(outcome_of(17).status == Status::error);
}

TEST_CASE("a reason is one sentence, the rest is detail", "[status]") {
  const worker::Outcome outcome = outcome_of(std::runtime_error("first line\nsecond line"));
  CHECK(outcome.reason == "first line");
  CHECK(outcome.detail == "first line\nsecond line");
  CHECK(outcome_of(UnsupportedError("no cross")).reason == "no cross");
}

TEST_CASE("LibTorch's errors lose their backtrace", "[status]") {
  worker::Outcome outcome;
  try {
    TORCH_CHECK(false, "sizes do not match");
  } catch (...) {
    outcome = worker::outcome_of(std::current_exception());
  }
  CHECK(outcome.status == Status::error);
  CHECK(outcome.reason == "sizes do not match");
  CHECK(outcome.detail.find("frame #") == std::string::npos);
}

TEST_CASE("LibTorch's refused allocation is out of memory", "[status]") {
  worker::Outcome outcome;
  try {
    TORCH_CHECK(false, "DefaultCPUAllocator: not enough memory: you tried to allocate 1 bytes.");
  } catch (...) {
    outcome = worker::outcome_of(std::current_exception());
  }
  CHECK(outcome.status == Status::out_of_memory);
}

TEST_CASE("a device's refused allocation is told apart from its other failures", "[status]") {
  worker::Outcome outcome;
  try {
    TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA: 20.00 GiB wanted.\nGPU 0 has 1 GiB free.");
  } catch (...) {
    outcome = worker::outcome_of(std::current_exception());
  }
  CHECK(outcome.status == Status::out_of_memory);
  CHECK(outcome.reason == "CUDA: 20.00 GiB wanted.");
  const auto said = [](const char* message) { return outcome_of(std::runtime_error(message)); };
  CHECK(said("Storage size calculation overflowed with sizes=[1, 9223372036854775807]").status ==
        Status::out_of_memory);
  CHECK(said("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`").status ==
        Status::out_of_memory);
  CHECK(said("cudaMalloc: out of memory (cudaErrorMemoryAllocation)").status ==
        Status::out_of_memory);
  CHECK(said("CUDA error: an illegal memory access was encountered").status == Status::error);
  CHECK(said("CUDA error: device-side assert triggered").status == Status::error);
  CHECK(said("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED").status == Status::error);
}

TEST_CASE("a death is a crash, unless the kernel wanted the memory", "[status]") {
  const auto segfault = worker::outcome_of_death(killed_by(SIGSEGV), false, "last words");
  CHECK(segfault.status == Status::crashed);
  CHECK(segfault.reason == "the process was killed by signal 11 (SIGSEGV)");
  CHECK(segfault.detail == "last words");
  CHECK(worker::outcome_of_death(killed_by(SIGKILL), false, "").status == Status::crashed);
  CHECK(worker::outcome_of_death(killed_by(SIGKILL), true, "").status == Status::out_of_memory);
  // A crash of its own while the kernel ended somebody else stays a crash.
  CHECK(worker::outcome_of_death(killed_by(SIGSEGV), true, "").status == Status::crashed);
  const auto left = worker::outcome_of_death(exited_with(7), false, "");
  CHECK(left.status == Status::crashed);
  CHECK(left.reason.find("exit code 7") != std::string::npos);
}
