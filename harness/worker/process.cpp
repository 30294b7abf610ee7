#include "harness/worker/process.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/process/descendants.hpp"
#include "harness/worker/worker.hpp"

namespace attnbench::worker {
namespace {

/// A fresh tensor of a few MB otherwise costs a page fault for each of its pages: 2 to 3 times the
/// time of composite attention at 2048 tokens.
void keep_freed_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);  // never: what outgrew a limit would be cleared page by page anew
  mallopt(M_TOP_PAD, 256 << 20);
}

}  // namespace

int run_process(int argc, char** argv) {
  if (argc != 3 || std::strcmp(argv[1], "--socket") != 0) {
    std::fprintf(
        stderr, "attnbench-worker is a part of attnbench, which starts it: see attnbench --help\n");
    return 2;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGPIPE, SIG_IGN);
  keep_freed_memory();
  process::adopt_orphans();  // what a plugin starts and leaves behind ends with its cell
  const int supervisor = std::atoi(argv[2]);
  fcntl(supervisor, F_SETFD, FD_CLOEXEC);
  Worker(process::Channel(supervisor)).serve();
  std::fflush(nullptr);
  _exit(0);  // LibTorch's destructors take 50 ms and have nothing left to do
}

}  // namespace attnbench::worker
