// mbarriers for the emulator.
#include <cstring>
#include <string>

#include "tests/attention/kernels/cuda/emulator/accesses.hpp"
#include "tests/attention/kernels/cuda/emulator/hopper.hpp"
#include "tests/attention/kernels/cuda/emulator/hopper_shared.hpp"

namespace attnbench::emulated {
namespace {

/// What the eight bytes of a barrier say. `mark` tells one from poison, and from what overwrote it.
struct Barrier {
  static constexpr std::uint64_t mark = 0xb5;
  std::uint32_t phase = 0;  // as many as have ended, modulo 16
  int expected = 0;
  int pending = 0;
  int bytes = 0;  // announced and not yet come
};

Barrier read(std::uint32_t address) {
  std::uint64_t word;
  std::memcpy(&word, shared_pointer(address, 8, 8), 8);
  if ((word & 0xff) != Barrier::mark) {
    throw Fault("address " + std::to_string(address) + " holds no barrier");
  }
  return {static_cast<std::uint32_t>(word >> 8 & 0xf), static_cast<int>(word >> 12 & 0xfff),
          static_cast<int>(word >> 24 & 0xfff),
          static_cast<int>(static_cast<std::int64_t>(word) >> 36)};
}

/// Ends the phase where nothing is missing any more.
void write(std::uint32_t address, Barrier barrier) {
  if (barrier.pending == 0 && barrier.bytes == 0) {
    ++barrier.phase;
    barrier.pending = barrier.expected;
  }
  const std::uint64_t word = Barrier::mark | std::uint64_t{barrier.phase & 0xf} << 8 |
                             static_cast<std::uint64_t>(barrier.expected) << 12 |
                             static_cast<std::uint64_t>(barrier.pending) << 24 |
                             static_cast<std::uint64_t>(static_cast<std::int64_t>(barrier.bytes))
                                 << 36;
  std::memcpy(shared_pointer(address, 8, 8), &word, 8);
  happened();
}

/// Half of the arrivals are followed by a rest, in which others make use of what was given free.
void linger() {
  static std::uint32_t count = 0;
  if (!coin(++count)) return;
  int rests = 3;
  wait_until(
      [&] {
        happened();  // or a lonely thread that rests would pass for a deadlock
        return rests-- == 0;
      },
      "nothing");
}

}  // namespace

void require_known(std::uint32_t barrier, bool to_copies) {
  auto& all = hopper().new_barriers;
  const auto found = all.find(barrier);
  if (found == all.end()) return;
  const NewBarrier& made = found->second;
  if (to_copies && !made.published) {
    throw Fault("a copy is to report to a barrier that was not published (fence.mbarrier_init)");
  }
  const bool met = block_barriers() > made.since;
  if (!met && self().number != made.maker) {
    throw Fault("a barrier is used before its maker and the others have met");
  }
  if (met && made.published) all.erase(found);
}

void mbarrier_make(std::uint32_t barrier, int arrivals) {
  order_unknown();
  if (arrivals < 1 || arrivals > 0xfff) throw Fault("a barrier for " + std::to_string(arrivals));
  hopper().new_barriers[barrier] = {self().number, false, block_barriers()};
  write(barrier, {0, arrivals, arrivals, 0});
}

void mbarrier_publish() {
  for (auto& [address, made] : hopper().new_barriers) {
    if (made.maker == self().number) made = {made.maker, true, block_barriers()};
  }
}

void mbarrier_receive(std::uint32_t barrier, int bytes) {
  Barrier state = read(barrier);
  state.bytes -= bytes;
  write(barrier, state);
}

void mbarrier_arrive(std::uint32_t barrier, int announced_bytes) {
  require_known(barrier, false);
  Barrier state = read(barrier);
  if (state.pending == 0) throw Fault("more arrivals than the phase of a barrier expects");
  if (announced_bytes < 0 || state.bytes + announced_bytes >= 1 << 20) {
    throw Fault("more bytes announced than a barrier counts");
  }
  state.bytes += announced_bytes;
  --state.pending;
  write(barrier, state);
  linger();
}

void mbarrier_wait(std::uint32_t barrier, std::uint32_t parity) {
  require_known(barrier, false);
  const auto over = [=] { return (read(barrier).phase & 1) != parity; };
  wait_until([=] { return over() || (carry_out_copies(barrier) && over()); }, "an mbarrier");
}

}  // namespace attnbench::emulated
