// attention/kernels/cuda/device.hpp and cards.hpp of the cards that only pretend.
#include <sys/mman.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

#include "attention/kernels/cuda/cards.hpp"
#include "tests/program/pretend/pretend.hpp"

namespace attnbench::pretend {
namespace {

double taken = 0;

double clock_factor() {
  const char* said = std::getenv("PRETEND_CLOCK");
  return said == nullptr ? 1 : std::atof(said);
}

}  // namespace

double now() {
  static const double factor = clock_factor();
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return factor * std::chrono::duration<double>(since).count() + taken;
}

void take(double seconds) { taken += seconds; }

}  // namespace attnbench::pretend

namespace attnbench::kernels::cuda {
namespace {

int current = 0;
std::map<void*, std::size_t> blocks;

Card make_card(int index) {
  Card card;
  const char* name = std::getenv("PRETEND_CARD");
  card.name = name == nullptr ? "a pretended card" : name;
  card.major = 9;
  card.multiprocessors = index == 0 ? 132 : 66;
  card.shared_bytes = 227 << 10;
  card.l2_bytes = 1 << 20;
  card.memory_bytes = std::size_t{index == 0 ? 8U : 4U} << 30;
  return card;
}

}  // namespace

std::string refusal(int index) {
  if (index < pretend::cards) return {};
  return "there are " + std::to_string(pretend::cards) + " pretended devices, numbered from 0";
}

void select(int index) { current = index; }

const Card& card(int index) {
  static const Card known[pretend::cards] = {make_card(0), make_card(1)};
  if (index < 0 || index >= pretend::cards) throw Error("no such pretended card");
  return known[index];
}

const Card& card() {
  return card(Regarding::number() == Regarding::none ? current : Regarding::number());
}

std::string pci_address(int index) { return "0000:0" + std::to_string(index) + ":00.0"; }

std::string driver_cuda() { return "13.0"; }

// Pages that nobody touches take no memory of the machine's, and nothing here touches them.
void* allocate(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes == 0 ? 1 : bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw Error("cudaMalloc: out of memory");
  blocks[memory] = bytes;
  return memory;
}

void release(void* memory) noexcept {
  const auto block = blocks.find(memory);
  if (block == blocks.end()) return;
  munmap(memory, block->second == 0 ? 1 : block->second);
  blocks.erase(block);
}

std::size_t used_memory() {
  std::size_t bytes = 0;
  for (const auto& [place, size] : blocks) bytes += size;
  return bytes;
}

void copy_on_device(void*, const void*, std::size_t bytes, Stream) {
  pretend::take(2 * static_cast<double>(bytes) / pretend::copied_bytes_per_second);
}

void fill(void*, unsigned char, std::size_t, Stream) {}

void synchronize(Stream) {}

Event::Event() : event_(new double(0)) {}
Event::~Event() { delete static_cast<double*>(event_); }
void Event::record(Stream) { *static_cast<double*>(event_) = pretend::now(); }
double Event::seconds_since(const Event& earlier) const {
  return *static_cast<const double*>(event_) - *static_cast<const double*>(earlier.event_);
}

// What is recorded is the body itself.
Graph::Graph(Stream, const std::function<void()>& body) {
  if (std::getenv("PRETEND_NO_GRAPHS") != nullptr) throw Error("the card was told not to record");
  auto kept = std::make_unique<std::function<void()>>(body);
  body();
  executable_ = kept.release();
}
Graph::~Graph() { delete static_cast<std::function<void()>*>(executable_); }
void Graph::launch(Stream) const { (*static_cast<std::function<void()>*>(executable_))(); }

}  // namespace attnbench::kernels::cuda
