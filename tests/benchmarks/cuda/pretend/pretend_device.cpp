#include "tests/benchmarks/cuda/pretend/pretend_device.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "tests/benchmarks/cuda/pretend/pretend_arrays.hpp"

namespace attnbench::bench::pretend {
namespace {

double now = 0;
double* capturing = nullptr;  // the seconds of the graph that is being captured
struct Block {
  std::size_t bytes = 0;
  bool written = false;
};
std::map<const unsigned char*, Block> blocks;  // by where they begin
std::size_t allocated = 0;

/// The block that holds `data`, or null.
std::pair<const unsigned char* const, Block>* block_of(const void* data) {
  const auto* at = static_cast<const unsigned char*>(data);
  auto next = blocks.upper_bound(at);
  if (next == blocks.begin()) return nullptr;
  --next;
  return at < next->first + next->second.bytes ? &*next : nullptr;
}

}  // namespace

Behaviour& behaviour() {
  static Behaviour current = [] {
    Behaviour given;
    if (const char* why = std::getenv("PRETEND_REFUSAL")) given.refusal = why;
    if (const char* bytes = std::getenv("PRETEND_MEMORY")) given.memory_bytes = std::stoull(bytes);
    return given;
  }();
  return current;
}

Count& count() {
  static Count current;
  return current;
}

std::size_t allocated_bytes() { return allocated; }

void launch(double seconds, Stream stream) {
  if (capturing != nullptr) {
    if (stream.handle == nullptr || !behaviour().captures) {
      throw kernels::cuda::Error("launch: not permitted in a capture");
    }
    *capturing += seconds;
    ++count().captured;
    return;
  }
  now += behaviour().gap_seconds + seconds;
  ++count().launched;
}

void in_one_block(const void* data, std::size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
  const auto* block = block_of(data);
  if (block == nullptr || at + bytes > block->first + block->second.bytes) {
    throw std::logic_error("a kernel was given an array shorter than it says");
  }
}

void note_written(const void* data) { block_of(data)->second.written = true; }

void check_written(const void* data, const char* name) {
  const auto* block = block_of(data);
  if (block == nullptr || !block->second.written) {
    throw std::logic_error(std::string(name) + " is read before it was written");
  }
}

}  // namespace attnbench::bench::pretend

// The interface of attention/kernels/cuda/device.hpp over it.
namespace attnbench::kernels::cuda {

using namespace bench::pretend;

std::string refusal(int) { return behaviour().refusal; }

const Card& card() {
  static const Card pretended{"no card: a pretence", 9, 0, 132, 227 * 1024, std::size_t{50} << 20,
                              std::size_t{8} << 30};
  return pretended;
}

void* allocate(std::size_t bytes) {
  if (allocated + bytes > behaviour().memory_bytes) throw Error("cudaMalloc: out of memory");
  // Pages that nobody touches take no memory of the machine's.
  void* memory = mmap(nullptr, bytes == 0 ? 1 : bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw Error("cudaMalloc: out of memory");
  blocks[static_cast<const unsigned char*>(memory)] = {bytes, false};
  allocated += bytes;
  return memory;
}

void release(void* memory) noexcept {
  const auto block = blocks.find(static_cast<const unsigned char*>(memory));
  if (block == blocks.end()) return;
  const std::size_t bytes = block->second.bytes;
  allocated -= bytes;
  blocks.erase(block);
  munmap(memory, bytes == 0 ? 1 : bytes);
}

void copy_to_host(void* to, const void* from, std::size_t bytes, Stream) {
  std::memcpy(to, from, bytes);
}

// Not written: a benchmark's arrays are larger than the memory of a small machine.
void fill(void*, unsigned char, std::size_t, Stream) {}

void synchronize(Stream) {}

OwnedStream::OwnedStream() { stream_.handle = this; }
OwnedStream::~OwnedStream() = default;

Event::Event() : event_(new double(0)) {}
Event::~Event() { delete static_cast<double*>(event_); }
void Event::record(Stream) { *static_cast<double*>(event_) = now; }
double Event::seconds_since(const Event& earlier) const {
  return *static_cast<const double*>(event_) - *static_cast<const double*>(earlier.event_);
}

Graph::Graph(Stream, const std::function<void()>& body) {
  auto seconds = std::make_unique<double>(0);
  capturing = seconds.get();
  try {
    body();
  } catch (...) {
    capturing = nullptr;
    throw;
  }
  capturing = nullptr;
  executable_ = seconds.release();
}
Graph::~Graph() { delete static_cast<double*>(executable_); }
void Graph::launch(Stream) const {
  now += behaviour().graph_start_seconds + *static_cast<const double*>(executable_);
  ++count().replayed;
}

}  // namespace attnbench::kernels::cuda
