#include "harness/measure/device.hpp"

#include <array>
#include <charconv>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/failure.hpp"

namespace attnbench::measure {

/// Generated from the files device_*.cpp.
void append_devices(std::vector<std::unique_ptr<Device>>& devices);

namespace {

/// The device that `word` names before its colon ("cuda:1"); null if there is none.
const Device* find_device(const std::string& word) {
  const std::string kind = word.substr(0, word.find(':'));
  for (const auto& device : all_devices()) {
    if (device->name() == kind) return device.get();
  }
  return nullptr;
}

}  // namespace

nlohmann::json Device::card(int) const { return nlohmann::json::object(); }

nlohmann::json Device::condition(int) const { return nlohmann::json::object(); }

const std::vector<std::unique_ptr<Device>>& all_devices() {
  static const auto devices = [] {
    std::vector<std::unique_ptr<Device>> all;
    append_devices(all);
    return all;
  }();
  return devices;
}

int device_index(const std::string& word) {
  int index = 0;
  const std::size_t colon = word.find(':');
  if (colon == std::string::npos) return index;
  std::from_chars(word.data() + colon + 1, word.data() + word.size(), index);
  return index;
}

const Device& usable_device(const std::string& word) {
  if (const Device* device = find_device(word)) {
    const std::string refusal = device->refusal(device_index(word));
    if (refusal.empty()) return *device;
    throw EnvironmentFailure("the device " + word + " cannot be used: " + refusal);
  }
  std::string known;
  for (const auto& device : all_devices()) known += (known.empty() ? "" : ", ") + device->name();
  throw EnvironmentFailure("the device " + word + " cannot be used: this program was built for " +
                           known + " only");
}

nlohmann::json card_if_usable(const std::string& word) {
  const Device* device = find_device(word);
  const int index = device_index(word);
  if (device == nullptr || !device->refusal(index).empty()) return nullptr;
  return device->card(index);
}

std::vector<std::string> cards_of_driver(const std::string& tool) {
  // A driver that does not answer must not hold anybody up.
  const std::string command =
      "timeout 10 " + tool + " --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::vector<std::string> cards;
  std::array<char, 256> line{};
  while (pipe && std::fgets(line.data(), line.size(), pipe.get()) != nullptr) {
    const std::string text = line.data();
    const std::size_t comma = text.find(", ");
    const std::size_t end = text.find_last_not_of("\r\n ");
    if (comma == std::string::npos || end == std::string::npos) continue;  // a message
    cards.push_back(text.substr(0, comma) + ", driver " + text.substr(comma + 2, end - comma - 1));
  }
  return cards;
}

}  // namespace attnbench::measure
