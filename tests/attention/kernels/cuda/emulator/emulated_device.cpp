// attention/kernels/cuda/device.hpp without a device: plain memory, streams whose work is done at
// once, and a card with few multiprocessors.
// Number 1 is a larger one, which is there to be planned for only.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "attention/kernels/cuda/cards.hpp"
#include "tests/attention/kernels/cuda/emulator/launching.hpp"

namespace attnbench::kernels::cuda {
namespace {

using Clock = std::chrono::steady_clock;
using Work = std::vector<std::function<void()>>;

Work* recording = nullptr;
Card emulated_cards[] = {
    {"an emulated card", 9, 0, 4, 227 << 10, 50 << 20, std::size_t{1} << 33},
    {"a larger emulated card", 9, 0, 132, 227 << 10, 50 << 20, std::size_t{1} << 36}};

void act(const std::function<void()>& work) {
  if (recording != nullptr) {
    recording->push_back(work);
  } else {
    work();
  }
}

}  // namespace

std::string refusal(int) { return {}; }
void select(int) {}
std::size_t used_memory() { return 0; }

const Card& card(int index) {
  if (index < 0 || index > 1) throw Error("there are 2 emulated cards");
  return emulated_cards[index];
}

const Card& card() {
  return card(Regarding::number() == Regarding::none ? 0 : Regarding::number());
}

void* allocate(std::size_t bytes) {
  void* memory = std::aligned_alloc(256, (bytes + 256) / 256 * 256);
  if (memory == nullptr) throw Error("no memory");
  return memory;
}
void release(void* memory) noexcept { std::free(memory); }

void copy_to_device(void* to, const void* from, std::size_t bytes, Stream) {
  std::memcpy(to, from, bytes);
}
void copy_to_host(void* to, const void* from, std::size_t bytes, Stream) {
  std::memcpy(to, from, bytes);
}
void copy_on_device(void* to, const void* from, std::size_t bytes, Stream) {
  act([=] { std::memcpy(to, from, bytes); });
}
void fill(void* memory, unsigned char byte, std::size_t bytes, Stream) {
  act([=] { std::memset(memory, byte, bytes); });
}
void synchronize(Stream) {}

OwnedStream::OwnedStream() = default;
OwnedStream::~OwnedStream() = default;

Event::Event() : event_(new Clock::time_point) {}
Event::~Event() { delete static_cast<Clock::time_point*>(event_); }
void Event::record(Stream) { *static_cast<Clock::time_point*>(event_) = Clock::now(); }
double Event::seconds_since(const Event& earlier) const {
  return std::chrono::duration<double>(*static_cast<Clock::time_point*>(event_) -
                                       *static_cast<Clock::time_point*>(earlier.event_))
      .count();
}

Graph::Graph(Stream, const std::function<void()>& body) {
  auto* work = new Work;
  recording = work;
  try {
    body();
  } catch (...) {
    recording = nullptr;
    delete work;
    throw;
  }
  recording = nullptr;
  executable_ = work;
}
Graph::~Graph() { delete static_cast<Work*>(executable_); }
void Graph::launch(Stream) const {
  for (const auto& each : *static_cast<Work*>(executable_)) each();
}

}  // namespace attnbench::kernels::cuda

namespace attnbench::emulated {

SmallCard::SmallCard() : before_(kernels::cuda::emulated_cards[0].shared_bytes) {
  kernels::cuda::emulated_cards[0].shared_bytes = 99 << 10;
}
SmallCard::~SmallCard() { kernels::cuda::emulated_cards[0].shared_bytes = before_; }

void launch(Index grid, Index block, std::size_t shared_bytes, std::function<void()> kernel) {
  if (shared_bytes > kernels::cuda::card().shared_bytes) {
    throw kernels::cuda::Error("launch: more shared memory than the card has");
  }
  kernels::cuda::act([=] {
    try {
      run(grid, block, shared_bytes, kernel);
    } catch (const Fault& fault) {
      throw kernels::cuda::Error(fault.what());
    }
  });
}

}  // namespace attnbench::emulated
