#include "harness/measure/nvml.hpp"

#include <dlfcn.h>
#include <unistd.h>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "harness/measure/condition.hpp"

namespace attnbench::measure {
namespace {

// The library's own types and numbers, as far as they are used here (NVIDIA, NVML API Reference).
using Handle = void*;
constexpr int success = 0;
constexpr int insufficient_size = 7;
constexpr unsigned sm_clock = 1;
constexpr unsigned memory_clock = 2;
constexpr unsigned of_the_chip = 0;
constexpr unsigned long long not_available = ~0ULL;

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct Utilisation {
  unsigned chip;  ///< per cent of the last while in which a kernel ran
  unsigned memory;
};

struct Process {
  unsigned pid;
  unsigned long long memory;
  unsigned instance;
  unsigned compute_instance;
};

/// Why a clock is not what it could be; an idle card's reasons say nothing.
constexpr std::pair<unsigned long long, const char*> slowing[] = {
    {0x2, "application clocks"}, {0x4, "power limit"},     {0x8, "hardware"},
    {0x10, "sync boost"},        {0x20, "heat"},           {0x40, "heat, in hardware"},
    {0x80, "power brake"},       {0x100, "display clock"},
};

/// The library, loaded while this lives.
class Library {
 public:
  Library() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) {
      refusal_ = "libnvidia-ml.so.1, which comes with the driver, is not there";
    } else if (const int code = call("nvmlInit_v2"); code != success) {
      refusal_ = "NVML cannot start: " + words(code);
    } else {
      begun_ = true;
    }
  }
  ~Library() {
    if (begun_) call("nvmlShutdown");
    if (library_ != nullptr) dlclose(library_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const std::string& refusal() const { return refusal_; }

  /// What the function of that name answers; one that this library lacks answers -1. Arguments must
  /// be of the very types that it is declared with.
  template <class... Arguments>
  int call(const char* name, Arguments... arguments) const {
    // POSIX has data and function pointers convert through void*.
    const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library_, name));
    return function != nullptr ? function(arguments...) : -1;
  }

  /// A code in the library's words.
  std::string words(int code) const {
    const auto text = reinterpret_cast<const char* (*)(int)>(dlsym(library_, "nvmlErrorString"));
    return text != nullptr ? text(code) : "code " + std::to_string(code);
  }

 private:
  void* library_;
  bool begun_ = false;
  std::string refusal_;
};

/// Asks one card, and files what it tells under a key.
class Asking {
 public:
  Asking(const Library& library, Handle handle, DeviceCondition& found)
      : library_(library), handle_(handle), found_(found) {}

  template <class... Arguments>
  bool ask(const char* name, Arguments... arguments) const {
    return library_.call(name, handle_, arguments...) == success;
  }
  using Number = std::optional<double> DeviceCondition::*;
  void number(Number member, double scale, const char* name) const {
    unsigned value = 0;
    if (ask(name, &value)) found_.*member = scale * value;
  }
  void number(Number member, double scale, const char* name, unsigned kind) const {
    unsigned value = 0;
    if (ask(name, kind, &value)) found_.*member = scale * value;
  }

  void memory() const {
    Memory memory{};
    if (ask("nvmlDeviceGetMemoryInfo", &memory)) found_.memory_used_bytes = memory.used;
  }

  void modes() const {
    int now = 0;
    int later = 0;
    if (ask("nvmlDeviceGetPersistenceMode", &now)) found_.persistence = now != 0;
    if (ask("nvmlDeviceGetEccMode", &now, &later)) {
      found_.ecc = now != 0;
      found_.ecc_pending = later != 0;
    }
    unsigned parted = 0;
    unsigned parted_later = 0;
    if (ask("nvmlDeviceGetMigMode", &parted, &parted_later)) found_.mig = parted != 0;
  }

  void slowed() const {
    unsigned long long reasons = 0;
    // The newer name and the older one.
    if (!ask("nvmlDeviceGetCurrentClocksEventReasons", &reasons) &&
        !ask("nvmlDeviceGetCurrentClocksThrottleReasons", &reasons)) {
      return;
    }
    found_.slowed_by.emplace();
    for (const auto& [bit, word] : slowing) {
      if ((reasons & bit) != 0) found_.slowed_by->push_back(word);
    }
  }

  void processes() const {
    std::vector<Process> running(16);
    auto count = static_cast<unsigned>(running.size());
    constexpr const char* name = "nvmlDeviceGetComputeRunningProcesses_v3";
    int code = library_.call(name, handle_, &count, running.data());
    if (code == insufficient_size) {
      running.resize(2 * std::size_t{count});  // others may come meanwhile
      count = static_cast<unsigned>(running.size());
      code = library_.call(name, handle_, &count, running.data());
    }
    if (code != success) return;
    found_.processes.emplace();
    for (unsigned i = 0; i < count; ++i) {
      if (running[i].pid == static_cast<unsigned>(getpid())) continue;
      CardProcess& process = found_.processes->emplace_back();
      process.pid = running[i].pid;
      if (running[i].memory != not_available) process.memory_bytes = running[i].memory;
    }
  }

  void busy() const {
    Utilisation share{};
    if (ask("nvmlDeviceGetUtilizationRates", &share)) found_.busy_share = 0.01 * share.chip;
  }

 private:
  const Library& library_;
  Handle handle_;
  DeviceCondition& found_;
};

}  // namespace

Json nvml_condition(const std::string& pci_address) {
  const Library library;
  if (!library.refusal().empty()) return {{"refusal", library.refusal()}};
  Handle handle = nullptr;
  const int code = library.call("nvmlDeviceGetHandleByPciBusId_v2", pci_address.c_str(), &handle);
  if (code != success) {
    return {{"refusal", "NVML does not know the card at " + pci_address + ": " +
                            (code < 0 ? "it is too old" : library.words(code))}};
  }
  DeviceCondition found;
  std::array<char, 96> driver{};
  if (library.call("nvmlSystemGetDriverVersion", driver.data(),
                   static_cast<unsigned>(driver.size())) == success) {
    found.driver = driver.data();
  }
  const Asking card(library, handle, found);
  card.memory();
  card.number(&DeviceCondition::clock_hz, 1e6, "nvmlDeviceGetClockInfo", sm_clock);
  card.number(&DeviceCondition::clock_greatest_hz, 1e6, "nvmlDeviceGetMaxClockInfo", sm_clock);
  card.number(&DeviceCondition::clock_memory_hz, 1e6, "nvmlDeviceGetClockInfo", memory_clock);
  card.number(&DeviceCondition::temperature_celsius, 1, "nvmlDeviceGetTemperature", of_the_chip);
  card.number(&DeviceCondition::power_watts, 1e-3, "nvmlDeviceGetPowerUsage");
  card.number(&DeviceCondition::power_limit_watts, 1e-3, "nvmlDeviceGetPowerManagementLimit");
  card.number(&DeviceCondition::power_limit_usual_watts, 1e-3,
              "nvmlDeviceGetPowerManagementDefaultLimit");
  card.modes();
  card.slowed();
  card.processes();
  card.busy();
  return found;
}

}  // namespace attnbench::measure
