#include "harness/run/seat.hpp"

#include <charconv>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "harness/errors.hpp"

namespace attnbench::run {
namespace {

constexpr int slurm_port = 29600;

int number_of(const char* name, const std::string& text, int least, int most) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end || value < least || value > most) {
    throw UsageFailure(std::string(name) + "=" + text + " in the environment: expected " +
                       std::to_string(least) + " to " + std::to_string(most) +
                       ", as torchrun or srun set it");
  }
  return value;
}

int required(const Variable& variable, const char* name, int least, int most) {
  const auto text = variable(name);
  if (!text) {
    throw UsageFailure(std::string(name) +
                       " is not set in the environment, where WORLD_SIZE says that several "
                       "processes train together: start them by torchrun or srun");
  }
  return number_of(name, *text, least, most);
}

Seat of_torchrun(const Variable& variable, int size) {
  Seat seat;
  seat.size = size;
  seat.rank = required(variable, "RANK", 0, size - 1);
  const auto address = variable("MASTER_ADDR");
  seat.address = address ? *address : "127.0.0.1";
  const bool taken = variable("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True";
  seat.port = required(variable, "MASTER_PORT", 1, 65534) + (taken ? 1 : 0);
  return seat;
}

Seat of_srun(const Variable& variable, int size) {
  Seat seat;
  seat.size = size;
  seat.rank = required(variable, "SLURM_PROCID", 0, size - 1);
  const auto address = variable("MASTER_ADDR");
  seat.address = address ? *address : variable("SLURM_LAUNCH_NODE_IPADDR").value_or("127.0.0.1");
  const auto port = variable("MASTER_PORT");
  const int job = std::atoi(variable("SLURM_JOB_ID").value_or("0").c_str());
  seat.port = port ? number_of("MASTER_PORT", *port, 1, 65535) : slurm_port + job % 1000;
  return seat;
}

}  // namespace

Seat seat_from(const Variable& variable) {
  if (const auto size = variable("WORLD_SIZE")) {
    const int processes = number_of("WORLD_SIZE", *size, 1, 4096);
    return processes == 1 ? Seat{} : of_torchrun(variable, processes);
  }
  if (const auto size = variable("SLURM_STEP_NUM_TASKS")) {
    const int processes = number_of("SLURM_STEP_NUM_TASKS", *size, 1, 4096);
    return processes == 1 ? Seat{} : of_srun(variable, processes);
  }
  return {};
}

Seat seat_from_environment() {
  return seat_from([](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
}

nlohmann::json to_json(const Seat& seat) {
  return {{"rank", seat.rank}, {"size", seat.size}, {"address", seat.address}, {"port", seat.port}};
}

}  // namespace attnbench::run
