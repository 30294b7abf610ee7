// The worker as a library that a Python starts: a wheel has it, since its mechanisms in Python need
// the very Python that it was installed for, and many of them come without a libpython.
#include "harness/worker/process.hpp"

extern "C" __attribute__((visibility("default"))) int attnbench_worker(int argc, char** argv) {
  return attnbench::worker::run_process(argc, argv);
}
