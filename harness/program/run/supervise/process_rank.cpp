#include "harness/program/run/supervise/process_rank.hpp"

#include <netdb.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/failure.hpp"
#include "core/process/limits.hpp"
#include "core/text/format.hpp"

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

/// A host's name or address: letters, digits and .-_:% alone.
std::string host_of(const std::string& text) {
  const auto fits = [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
           std::string_view(".-_:%").find(letter) != std::string_view::npos;
  };
  if (text.empty() || text.size() > 253 || !std::all_of(text.begin(), text.end(), fits)) {
    const std::string shown = nlohmann::json(text::shorten(text, 60))
                                  .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    throw UsageFailure("MASTER_ADDR=" + shown +
                       " in the environment: expected the name or the address of the machine "
                       "of process 0, as torchrun sets it");
  }
  return text;
}

/// Checked at once: connecting to a machine that does not exist takes minutes to fail.
void require_known_host(const std::string& host) {
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), nullptr, nullptr, &found);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  if (code == 0) return;
  throw UsageFailure("MASTER_ADDR=" + host + ": no machine of that name is known (" +
                     gai_strerror(code) +
                     "); expected the name or the address of the machine of process 0");
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

ProcessRank of_torchrun(const Variable& variable, int size) {
  ProcessRank process;
  process.size = size;
  process.rank = required(variable, "RANK", 0, size - 1);
  const auto address = variable("MASTER_ADDR");
  process.address = address ? host_of(*address) : "127.0.0.1";
  const bool taken = variable("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True";
  process.port = required(variable, "MASTER_PORT", 1, 65534) + (taken ? 1 : 0);
  if (const auto here = variable("LOCAL_WORLD_SIZE")) {
    process.on_this_machine = number_of("LOCAL_WORLD_SIZE", *here, 1, size);
  }
  return process;
}

/// "node[03-05,9],other" says node03, node04, …: the first of them.
std::string first_node(const std::string& list) {
  const std::size_t end = list.find_first_of(",[");
  std::string name = list.substr(0, end);
  if (end != std::string::npos && list[end] == '[') {
    name += list.substr(end + 1, list.find_first_of(",-]", end) - end - 1);
  }
  return name;
}

/// "2(x3),1" says 2, 2, 2 and 1: the number of node `node`; 1 where the list does not say it.
int tasks_on(const std::string& list, int node) {
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string part = list.substr(begin, end - begin);
    const std::size_t times = part.find("(x");
    const int nodes = times == std::string::npos ? 1 : std::atoi(part.c_str() + times + 2);
    if (node < nodes) return std::max(1, std::atoi(part.c_str()));
    node -= nodes;
    begin = end + 1;
  }
  return 1;
}

ProcessRank of_srun(const Variable& variable, int size) {
  ProcessRank process;
  process.size = size;
  process.rank = required(variable, "SLURM_PROCID", 0, size - 1);
  const std::string nodes = variable("SLURM_STEP_NODELIST").value_or("127.0.0.1");
  const auto address = variable("MASTER_ADDR");
  process.address = address ? host_of(*address) : first_node(nodes);
  const int node = std::atoi(variable("SLURM_NODEID").value_or("0").c_str());
  process.on_this_machine = tasks_on(variable("SLURM_STEP_TASKS_PER_NODE").value_or(""), node);
  const auto port = variable("MASTER_PORT");
  const int job = std::atoi(variable("SLURM_JOB_ID").value_or("0").c_str());
  process.port = port ? number_of("MASTER_PORT", *port, 1, 65535) : slurm_port + job % 1000;
  return process;
}

}  // namespace

ProcessRank process_rank_from(const Variable& variable) {
  if (const auto size = variable("WORLD_SIZE")) {
    const int processes = number_of("WORLD_SIZE", *size, 1, 4096);
    return processes == 1 ? ProcessRank{} : of_torchrun(variable, processes);
  }
  if (const auto size = variable("SLURM_STEP_NUM_TASKS")) {
    const int processes = number_of("SLURM_STEP_NUM_TASKS", *size, 1, 4096);
    return processes == 1 ? ProcessRank{} : of_srun(variable, processes);
  }
  return {};
}

ProcessRank process_rank_from_environment() {
  const ProcessRank process = process_rank_from([](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
  if (!process.alone()) require_known_host(process.address);
  return process;
}

int threads_for(const ProcessRank& process) {
  const int cores = process::usable_cores();
  if (cores < sysconf(_SC_NPROCESSORS_ONLN)) return cores;
  return std::max(1, cores / process.on_this_machine);
}

}  // namespace attnbench::run
