#include "harness/worker/status.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <new>

#include "attention/torch/torch.hpp"
#include "core/errors.hpp"
#include "core/process/signals.hpp"
#include "harness/worker/allocator.hpp"
#include "tasks/data/wanted.hpp"

namespace attnbench::worker {
namespace {

/// LibTorch appends a backtrace of many lines to its messages.
Outcome split_message(Status status, const std::string& message) {
  const std::size_t end = message.find('\n');
  if (end == std::string::npos) return {status, message, ""};
  return {status, message.substr(0, end), message};
}

/// LibTorch's CPU allocator and CUDA's libraries report it in words alone, as does Python for
/// OutOfMemory; LibTorch's CUDA allocator has an exception for it.
bool is_out_of_memory(const std::string& message) {
  for (const char* words : {"not enough memory", "out of memory", "CUBLAS_STATUS_ALLOC_FAILED",
                            "CUDNN_STATUS_ALLOC_FAILED", " bytes did not fit beside ",
                            "Storage size calculation overflowed"}) {
    if (message.find(words) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

Outcome outcome_of(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const UnsupportedError& error) {
    return {Status::unsupported, error.what(), ""};
  } catch (const tasks::data::MissingData& error) {
    return {Status::skipped, error.what(), ""};
  } catch (const UsageError& error) {
    return {Status::error, error.what(), "", /*refused=*/true};
  } catch (const Error& error) {
    return {Status::error, error.what(), ""};
  } catch (const OutOfMemory& error) {
    return split_message(Status::out_of_memory, error.what());
  } catch (const std::bad_alloc& error) {
    return {Status::out_of_memory,
            std::string("memory beside tensors ran out (") + error.what() +
                "); it has a limit of its own, which follows --memory-limit",
            ""};
  } catch (const c10::OutOfMemoryError& error) {
    return split_message(Status::out_of_memory, error.what_without_backtrace());
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    return split_message(is_out_of_memory(message) ? Status::out_of_memory : Status::error,
                         message);
  } catch (const std::exception& error) {
    return split_message(is_out_of_memory(error.what()) ? Status::out_of_memory : Status::error,
                         error.what());
  } catch (...) {
    return {Status::error, "something was thrown that is not a std::exception", ""};
  }
}

Outcome outcome_of_death(int wait_status, bool out_of_memory, const std::string& log_tail) {
  if (WIFSIGNALED(wait_status)) {
    const int number = WTERMSIG(wait_status);
    if (number == SIGKILL && out_of_memory) {
      return {Status::out_of_memory, "the kernel killed the process because memory ran out",
              log_tail};
    }
    return {Status::crashed, "the process was killed by " + process::signal_text(number), log_tail};
  }
  return {Status::crashed,
          "the process ended with exit code " + std::to_string(WEXITSTATUS(wait_status)) +
              " before its work was done",
          log_tail};
}

}  // namespace attnbench::worker
