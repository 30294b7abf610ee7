// A CUDA driver that only pretends, as libcuda.so.1: it has no device, and whenever a process
// begins to use it, writes that one's number as a line into the file that PRETEND_DRIVER_LOG names.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int success = 0;
constexpr int no_device = 100;
constexpr int not_found = 500;

void note_process() {
  const char* name = std::getenv("PRETEND_DRIVER_LOG");
  std::FILE* file = name == nullptr ? nullptr : std::fopen(name, "a");
  if (file == nullptr) return;
  std::fprintf(file, "%d\n", static_cast<int>(getpid()));
  std::fclose(file);
}

/// Stands for every function that is asked for and never reached.
int nothing() { return no_device; }

}  // namespace

extern "C" {

int cuInit(unsigned) {
  note_process();
  return no_device;
}

int cuDriverGetVersion(int* version) {
  *version = 99000;  // newer than any toolkit
  return success;
}

int cuGetProcAddress_v2(const char* name, void** function, int, unsigned long long, int* status) {
  if (function == nullptr) return not_found;
  *function =
      std::strcmp(name, "cuInit") == 0               ? reinterpret_cast<void*>(&cuInit)
      : std::strcmp(name, "cuDriverGetVersion") == 0 ? reinterpret_cast<void*>(&cuDriverGetVersion)
      : std::strcmp(name, "cuGetProcAddress") == 0   ? reinterpret_cast<void*>(&cuGetProcAddress_v2)
                                                     : reinterpret_cast<void*>(&nothing);
  if (status != nullptr) *status = 0;
  return success;
}

int cuGetProcAddress(const char* name, void** function, int version, unsigned long long flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}
}
