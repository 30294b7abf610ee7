// NVIDIA's management library that only pretends, as libnvidia-ml.so.1: it knows the card at
// 0000:01:00.0, on which much is amiss, and no other. Types and numbers are those of the NVML API
// Reference.
#include <cstdio>
#include <cstring>

namespace {

constexpr int success = 0;
constexpr int not_supported = 3;
constexpr int not_found = 6;
constexpr int insufficient_size = 7;

int the_card = 0;

struct Process {
  unsigned pid;
  unsigned long long memory;
  unsigned instance;
  unsigned compute_instance;
};

bool known(const void* handle) { return handle == &the_card; }

int tell(const void* handle, unsigned* where, unsigned value) {
  if (!known(handle)) return not_found;
  *where = value;
  return success;
}

}  // namespace

extern "C" {

int nvmlInit_v2() { return success; }
int nvmlShutdown() { return success; }
const char* nvmlErrorString(int code) { return code == not_found ? "Not Found" : "Unknown Error"; }

int nvmlDeviceGetHandleByPciBusId_v2(const char* address, void** handle) {
  if (std::strcmp(address, "0000:01:00.0") != 0) return not_found;
  *handle = &the_card;
  return success;
}

int nvmlSystemGetDriverVersion(char* text, unsigned length) {
  std::snprintf(text, length, "580.65.06");
  return success;
}

int nvmlDeviceGetMemoryInfo(void* handle, unsigned long long* total_free_used) {
  if (!known(handle)) return not_found;
  total_free_used[0] = 4ULL << 30;
  total_free_used[1] = 1ULL << 30;
  total_free_used[2] = 3ULL << 30;
  return success;
}

int nvmlDeviceGetClockInfo(void* handle, unsigned kind, unsigned* megahertz) {
  return tell(handle, megahertz, kind == 1 ? 1200 : 2600);
}
int nvmlDeviceGetMaxClockInfo(void* handle, unsigned, unsigned* megahertz) {
  return tell(handle, megahertz, 1980);
}
int nvmlDeviceGetTemperature(void* handle, unsigned, unsigned* degrees) {
  return tell(handle, degrees, 61);
}
int nvmlDeviceGetPowerUsage(void* handle, unsigned* milliwatts) {
  return tell(handle, milliwatts, 480'000);
}
int nvmlDeviceGetPowerManagementLimit(void* handle, unsigned* milliwatts) {
  return tell(handle, milliwatts, 500'000);
}
int nvmlDeviceGetPowerManagementDefaultLimit(void* handle, unsigned* milliwatts) {
  return tell(handle, milliwatts, 700'000);
}

int nvmlDeviceGetPersistenceMode(void*, int* on) {
  *on = 0;
  return success;
}
int nvmlDeviceGetEccMode(void*, int* now, int* pending) {
  *now = 1;
  *pending = 0;
  return success;
}
int nvmlDeviceGetMigMode(void*, unsigned*, unsigned*) { return not_supported; }

int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  *reasons = 0x4 | 0x20;
  return success;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, Process* processes) {
  constexpr unsigned running = 20;
  const unsigned room = *count;
  *count = running;
  if (room < running) return insufficient_size;
  for (unsigned i = 0; i < running; ++i) processes[i] = {1000 + i, ~0ULL, ~0U, ~0U};
  return success;
}

int nvmlDeviceGetUtilizationRates(void*, unsigned* chip_memory) {
  chip_memory[0] = 97;
  chip_memory[1] = 40;
  return success;
}
}
