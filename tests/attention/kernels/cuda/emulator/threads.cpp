#include "tests/attention/kernels/cuda/emulator/threads.hpp"

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <string>

namespace attnbench::emulated {
namespace {

namespace context = boost::context;

constexpr std::size_t stack_bytes = 256 * 1024;
/// Where dynamic shared memory begins, as on a card that keeps the first KiB for itself.
constexpr std::uint32_t first_address = 1024;

/// Where threads meet: the last of them lets all go on.
struct Meeting {
  int arrived = 0;
  std::uint64_t times = 0;
  int votes = 0, last_votes = 0;
  const char* kind = nullptr;
  std::vector<void*> operands;
};

/// Half of all n, without a pattern: which of two orders threads run in this time.
bool coin(std::uint32_t n) {
  n *= 0x9e3779b9u;
  return ((n ^ n >> 15) * 0x85ebca6bu >> 31) != 0;
}

struct Fiber {
  Thread thread;
  context::fiber fiber;  ///< its own, while it rests
  const char* waits_for = nullptr;
  bool done = false;
};

class Block {
 public:
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  Block(Index grid, Index block, Index index, std::size_t shared_bytes)
      : shared_(shared_bytes + 2048, 0xff) {  // nothing else of the heap within 1024 behind it
    const int count = static_cast<int>(block.x * block.y * block.z);
    fibers_.resize(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      Thread& thread = fibers_[static_cast<std::size_t>(i)].thread;
      const unsigned n = static_cast<unsigned>(i);
      thread.thread = {n % block.x, n / block.x % block.y, n / block.x / block.y};
      thread.block = index;
      thread.block_size = block;
      thread.grid_size = grid;
      thread.number = i;
    }
    living_ = count;
    warps_.resize(static_cast<std::size_t>((count + 31) / 32));
    shared_bytes_ = shared_bytes;
  }

  void run(const std::function<void()>& kernel, context::pooled_fixedsize_stack& stacks) {
    for (Fiber& each : fibers_) {
      each.fiber = context::fiber(std::allocator_arg, stacks, [&](context::fiber&& scheduler) {
        scheduler_ = std::move(scheduler);
        try {
          kernel();
        } catch (const context::detail::forced_unwind&) {
          throw;
        } catch (...) {
          if (!failure_) failure_ = std::current_exception();
        }
        leave();
        return std::move(scheduler_);
      });
    }
    static std::uint32_t rounds = 0;
    while (living_ > 0) {
      const std::uint64_t before = events_;
      const bool backwards = coin(++rounds);
      for (std::size_t i = 0; i < fibers_.size(); ++i) {
        Fiber& each = fibers_[backwards ? fibers_.size() - 1 - i : i];
        if (each.done) continue;
        running_ = &each;
        each.fiber = std::move(each.fiber).resume();
        if (failure_) std::rethrow_exception(failure_);
      }
      if (events_ == before) throw Fault(deadlock());
    }
  }

  Fiber& running() { return *running_; }

  void rest() {
    Fiber& me = *running_;
    scheduler_ = std::move(scheduler_).resume();
    running_ = &me;
  }

  void wait_until(const std::function<bool()>& ready, const char* why) {
    while (!ready()) {
      running_->waits_for = why;
      rest();
    }
    running_->waits_for = nullptr;
  }

  int barrier(bool vote) {
    const std::uint64_t before = all_.times;
    ++all_.arrived;
    all_.votes += vote ? 1 : 0;
    release_all();
    wait_until([&] { return all_.times != before; }, "__syncthreads");
    return all_.last_votes;
  }

  using Together = std::function<void(const std::vector<void*>&)>;
  void meet(const char* kind, void* operands, const Together& together) {
    const int number = running_->thread.number;
    Meeting& sync = warps_[static_cast<std::size_t>(number / 32)];
    const int first = number / 32 * 32;
    const int members = std::min(32, static_cast<int>(fibers_.size()) - first);
    if (sync.arrived == 0) {
      sync.kind = kind;
      sync.operands.assign(static_cast<std::size_t>(members), nullptr);
    } else if (std::string(sync.kind) != kind) {
      throw Fault(where() + kind + " meets " + sync.kind + " in one warp");
    }
    sync.operands[static_cast<std::size_t>(number - first)] = operands;
    ++events_;
    if (++sync.arrived < members) {
      const std::uint64_t before = sync.times;
      wait_until([&] { return sync.times != before; }, kind);
      return;
    }
    together(sync.operands);
    sync.arrived = 0;
    ++sync.times;
  }

  unsigned char* shared() {
    const auto begin = reinterpret_cast<std::uintptr_t>(shared_.data());
    return shared_.data() + (1024 - begin % 1024) % 1024;
  }
  std::uint32_t address(const void* pointer) {
    const auto offset = static_cast<const unsigned char*>(pointer) - shared();
    if (offset < 0 || offset > static_cast<std::ptrdiff_t>(shared_bytes_)) {
      throw Fault(where() + "the address of something that is not in dynamic shared memory");
    }
    return first_address + static_cast<std::uint32_t>(offset);
  }
  unsigned char* pointer(std::uint32_t address, std::size_t bytes, std::size_t alignment) {
    if (address < first_address || address - first_address + bytes > shared_bytes_) {
      throw Fault(where() + "shared memory ends before address " + std::to_string(address) + " + " +
                  std::to_string(bytes) + " bytes");
    }
    if (address % alignment != 0) {
      throw Fault(where() + "address " + std::to_string(address) + " is not aligned to " +
                  std::to_string(alignment));
    }
    return shared() + (address - first_address);
  }

  std::string where() const {
    const Thread& thread = running_->thread;
    return "block (" + std::to_string(thread.block.x) + ", " + std::to_string(thread.block.y) +
           ", " + std::to_string(thread.block.z) + "), thread " + std::to_string(thread.number) +
           ": ";
  }

 private:
  void leave() {
    running_->done = true;
    --living_;
    ++events_;
    release_all();
  }

  /// Threads that have ended are not waited for.
  void release_all() {
    ++events_;
    if (all_.arrived == 0 || all_.arrived < living_) return;
    all_.arrived = 0;
    all_.last_votes = all_.votes;
    all_.votes = 0;
    ++all_.times;
  }

  std::string deadlock() const {
    std::map<std::string, std::vector<int>> waiting;
    for (const Fiber& each : fibers_) {
      if (!each.done)
        waiting[each.waits_for == nullptr ? "?" : each.waits_for].push_back(each.thread.number);
    }
    std::string text = where() + "deadlock;";
    for (const auto& [what, threads] : waiting) {
      text += " " + std::to_string(threads.size()) + " threads from " +
              std::to_string(threads.front()) + " to " + std::to_string(threads.back()) +
              " wait for " + what + ";";
    }
    return text;
  }

  std::vector<unsigned char> shared_;
  std::size_t shared_bytes_ = 0;
  std::vector<Fiber> fibers_;
  std::vector<Meeting> warps_;
  Meeting all_;
  int living_ = 0;
  std::uint64_t events_ = 0;
  Fiber* running_ = nullptr;
  context::fiber scheduler_;
  std::exception_ptr failure_;
};

Block* current = nullptr;

Block& block() {
  if (current == nullptr) throw Fault("device code runs outside of a kernel");
  return *current;
}

}  // namespace

Thread& self() { return block().running().thread; }

void run(Index grid, Index block_size, std::size_t shared_bytes,
         const std::function<void()>& kernel) {
  if (current != nullptr) throw Fault("a kernel launches a kernel");
  const std::uint64_t threads = std::uint64_t{block_size.x} * block_size.y * block_size.z;
  if (threads == 0 || threads > 1024 || grid.x == 0 || grid.y == 0 || grid.z == 0 ||
      grid.y > 65535 || grid.z > 65535) {
    throw Fault("a launch that no card accepts");
  }
  context::pooled_fixedsize_stack stacks(stack_bytes, static_cast<std::size_t>(threads), 0);
  struct Reset {
    ~Reset() { current = nullptr; }
  } reset;
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        Block one(grid, block_size, {x, y, z}, shared_bytes);
        current = &one;
        one.run(kernel, stacks);
        current = nullptr;
      }
    }
  }
}

void wait_until(const std::function<bool()>& ready, const char* why) {
  block().wait_until(ready, why);
}
int block_barrier(bool vote) { return block().barrier(vote); }

void warp_together(const char* kind, void* operands,
                   const std::function<void(const std::vector<void*>&)>& together) {
  block().meet(kind, operands, together);
}

unsigned char* shared_memory() { return block().shared(); }
std::uint32_t shared_address(const void* pointer) { return block().address(pointer); }
unsigned char* shared_pointer(std::uint32_t address, std::size_t bytes, std::size_t alignment) {
  return block().pointer(address, bytes, alignment);
}

}  // namespace attnbench::emulated
