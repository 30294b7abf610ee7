// A mechanism that hands back its values, and a plugin that misbehaves on demand: while it is
// loaded (MISBEHAVE_ON_LOAD in the environment), when it is asked what it costs, or at work (option
// how).
#include <fenv.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <stdexcept>
#include <utility>

#include "attention/plugin/plugin.hpp"

namespace {

using namespace attnbench;

class Misbehave : public Mechanism {
 public:
  Misbehave(const Options& chosen, const Problem& sizes) : Mechanism("misbehave", chosen, sizes) {}
  std::vector<Role> roles() const override {
    return {{"value", Source::key_tokens, problem.value_dim, Feed::projected}};
  }
};

[[noreturn]] void crash() {
  raise(SIGSEGV);
  std::abort();
}

/// Ten minutes, or until the test's environment says that this is the second try.
void hang() {
  if (std::getenv("MISBEHAVE_AWAKE") == nullptr) sleep(600);
}

std::string told_on_load() {
  const char* told = std::getenv("MISBEHAVE_ON_LOAD");
  return told == nullptr ? "" : told;
}

/// What code built with -ffast-math does to the thread that loads it.
void flush_denormals() {
#if defined(__x86_64__)
  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#else
  std::uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  asm volatile("msr fpcr, %0" : : "r"(control | (std::uint64_t{1} << 24)));
#endif
}

/// Before anything of it is called, as the start-up code of -ffast-math.
__attribute__((constructor)) void while_loaded() {
  if (told_on_load() == "fast_math") flush_denormals();
}

/// Says it on every socket that the process has.
void write_to_sockets(const std::string& line) {
  for (int descriptor = 3; descriptor < 256; ++descriptor) {
    send(descriptor, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
}

/// A process that leaves group and session, keeps every descriptor and would stay for ten minutes.
/// Its number is appended to the file MISBEHAVE_LEFT.
void leave_a_process() {
  static bool left = false;
  if (std::exchange(left, true)) return;
  const char* const file = std::getenv("MISBEHAVE_LEFT");
  const auto bytes = [file] {
    std::error_code none;
    const auto size = std::filesystem::file_size(file, none);
    return none ? 0 : size;
  };
  const auto before = bytes();
  if (fork() == 0) {
    setsid();
    if (fork() > 0) _exit(0);
    std::ofstream(file, std::ios::app) << getpid() << std::endl;
    sleep(600);
    _exit(0);
  }
  while (bytes() == before) usleep(1000);  // until it has detached itself
}

/// Memory that no tensor is, at most 32 GiB of it; hardly any of it is touched, but some is, or the
/// compiler leaves the calls out.
void take_all_memory() {
  for (int i = 0; i < 128; ++i)
    *static_cast<volatile char*>(operator new (std::size_t{1} << 28)) = 1;
}

/// Reads where nothing is: a fault of the process, or of all that it does on a device.
at::Tensor illegal_address(const at::Tensor& values) {
  constexpr std::uintptr_t nowhere = 1 << 12;
  const at::Tensor absent = at::for_blob(reinterpret_cast<void*>(nowhere), values.sizes())
                                .options(values.options())
                                .target_device(values.device())
                                .make_tensor();
  return values + absent;
}

/// Reads past the end of a device's array, which its own check finds and which stops everything
/// that the process does there.
at::Tensor fault(const at::Tensor& values) {
  const auto wrong = at::full({1}, std::int64_t{1} << 40, values.options().dtype(at::kLong));
  return values.index_select(2, wrong).expand_as(values);
}

/// Cheats: right in the first call, or not honestly. tests/attention/faults.hpp has others.
at::Tensor cheated(const std::string& how, const at::Tensor& values) {
  static int calls = 0;
  ++calls;
  if (how == "first_call" && calls > 1) return at::zeros_like(values);
  if (how == "in_place") at::Tensor(values).detach().mul_(2);
  return values.clone();
}

Mixed mix(Mechanism& mechanism, const Inputs& inputs, State*) {
  const std::string& how = mechanism.options.text("how");
  if (how == "fault") return {fault(inputs["value"]), {}};
  if (how == "illegal_address") return {illegal_address(inputs["value"]), {}};
  if (how == "allocate_all")
    return {at::ones({std::int64_t{1} << 42}, inputs["value"].options()), {}};
  if (how == "hang") hang();
  if (how == "segfault") crash();
  if (how == "abort") std::abort();
  if (how == "exit") _exit(7);
  if (how == "flush") flush_denormals();
  if (how == "traps" && feenableexcept(FE_OVERFLOW) == -1) {
    throw std::runtime_error("this processor has no traps");
  }
  if (how == "memory") take_all_memory();
  if (how == "leave") leave_a_process();
  if (how == "leave_and_exit") {
    leave_a_process();
    _exit(7);
  }
  if (how == "forge") {
    write_to_sockets(
        R"({"type":"done","status":"ok","measured":{"timing":{"forward":{"median_seconds":1e-12}}}})"
        "\n");
  }
  if (how == "cancel") write_to_sockets("{\"type\":\"cancelled\"}\n");
  if (how == "throw") throw std::runtime_error("I was told to throw");
  if (how == "allocate") return {at::ones({std::int64_t{1} << 28}), {}};
  if (how == "wrong") return {inputs["value"] * 1.5, {}};
  if (how == "shape") return {inputs["value"].narrow(2, 0, 1), {}};
  if (how == "nan") return {inputs["value"] / 0.0 - inputs["value"] / 0.0, {}};
  return {cheated(how, inputs["value"]), {}};
}

std::vector<double> reference_rows(const Options&, const Problem& problem,
                                   const reference::ReferenceInputs& inputs,
                                   const std::vector<reference::RowIndex>& rows) {
  std::vector<double> result;
  for (const auto& row : rows) {
    const double* value = inputs.roles.at("value").row(row.b, row.h, row.t);
    result.insert(result.end(), value, value + problem.value_dim);
  }
  return result;
}

Cost cost(const Options& options, const Problem&) {
  if (options.text("how") == "segfault_in_cost") crash();
  if (options.text("how") == "forge_in_cost") write_to_sockets("{\"type\":\"cancelled\"}\n");
  Cost cost;
  cost.model_flops = cost.executed_flops = cost.minimal_bytes = 1;
  cost.workspace_bytes = options.number("workspace_bytes");
  return cost;
}

Support supports(const Options& options, const Problem&) {
  if (options.text("how") == "throw_in_supports") throw std::runtime_error("supports() threw");
  if (options.text("how") == "segfault_in_supports") crash();
  if (options.text("how") == "unsupported") return Support::no("misbehave was told to refuse");
  return {};
}

void add_misbehave(Registry& registry) {
  const std::string on_load = told_on_load();
  if (on_load == "fast_math") feenableexcept(FE_DIVBYZERO | FE_INVALID);
  if (on_load == "segfault") crash();
  if (on_load == "throw") throw std::runtime_error("I was told to throw");
  if (on_load == "words") throw std::runtime_error("the name softmax is taken");
  if (on_load == "hang") hang();
  Entry entry;
  entry.name = on_load == "clash" ? "softmax" : "misbehave";
  entry.title = "hands back its values, unless told otherwise";
  entry.citation = "a test";
  entry.options = {
      {"how", OptionType::text, std::string("none"), "how to misbehave", {}, {}, {}},
      {"workspace_bytes", OptionType::number, 0.0, "what it says it needs", 0.0, {}, {}}};
  entry.patterns = {Pattern::causal};
  entry.supports = supports;
  entry.derive = [](const Options& options, const Problem&) { return options; };
  entry.make = [](const Options& options, const Problem& problem) {
    return std::make_shared<Misbehave>(options, problem);
  };
  Implementation composite;
  composite.name = "composite";
  composite.title = "a copy";
  composite.supports = supports;
  composite.mix = mix;
  composite.cost = cost;
  entry.implementations = {composite};
  registry.add(entry, reference_rows);
}

}  // namespace

ATTNBENCH_PLUGIN(add_misbehave)
