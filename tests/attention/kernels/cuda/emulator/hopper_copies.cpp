// mbarriers and bulk tensor copies for the emulator.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

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

struct TileCopy {
  TensorMap map;
  std::uint32_t to, barrier;
  int coordinates[5];
  std::weak_ptr<void> owner;  // gone with the block

  int bytes() const {
    int count = 2;
    for (const int extent : map.box) count *= extent;
    return count;
  }

  void carry_out() const {
    std::uint32_t at = to;
    int i[5] = {};
    for (i[4] = 0; i[4] < map.box[4]; ++i[4]) {
      for (i[3] = 0; i[3] < map.box[3]; ++i[3]) {
        for (i[2] = 0; i[2] < map.box[2]; ++i[2]) {
          for (i[1] = 0; i[1] < map.box[1]; ++i[1]) {
            for (i[0] = 0; i[0] < map.box[0]; i[0] += 8, at += 16) {
              unsigned char chunk[16];
              for (int e = 0; e < 8; ++e) element(i, e, chunk + 2 * e);
              std::memcpy(shared_pointer(swizzled(at), 16, 16), chunk, 16);
            }
          }
        }
      }
    }
    Barrier state = read(barrier);
    state.bytes -= bytes();
    write(barrier, state);
  }

 private:
  void element(const int (&i)[5], int e, unsigned char* out) const {
    const unsigned char* from = map.data;
    for (int n = 0; n < 5; ++n) {
      const std::int64_t at = std::int64_t{coordinates[n]} + i[n] + (n == 0 ? e : 0);
      if (at < 0 || at >= map.extents[n]) {
        out[0] = out[1] = 0;
        return;
      }
      from += at * map.strides[n];
    }
    std::memcpy(out, from, 2);
  }
};

std::vector<TileCopy> postponed;

/// Carries out what was postponed for the barrier; whether there was any.
bool carry_out(std::uint32_t barrier) {
  bool any = false;
  for (std::size_t n = 0; n < postponed.size();) {
    const bool gone = postponed[n].owner.expired();
    if (!gone && postponed[n].barrier != barrier) {
      ++n;
      continue;
    }
    const TileCopy copy = postponed[n];
    postponed.erase(postponed.begin() + static_cast<std::ptrdiff_t>(n));
    if (gone) continue;
    copy.carry_out();
    any = true;
  }
  return any;
}

/// Half of the arrivals are followed by a rest, in which others make use of what was given free.
void linger() {
  static std::uint32_t count = 0;
  if (!late(++count)) return;
  int rests = 3;
  wait_until(
      [&] {
        happened();  // or a lonely thread that rests would pass for a deadlock
        return rests-- == 0;
      },
      "nothing");
}

void require(bool condition, const char* what) {
  if (!condition) throw Fault(std::string("tensor map: ") + what);
}

}  // namespace

void mbarrier_make(std::uint32_t barrier, int arrivals) {
  if (arrivals < 1 || arrivals > 0xfff) throw Fault("a barrier for " + std::to_string(arrivals));
  write(barrier, {0, arrivals, arrivals, 0});
}

void mbarrier_arrive(std::uint32_t barrier, int announced_bytes) {
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
  const auto over = [=] { return (read(barrier).phase & 1) != parity; };
  wait_until([=] { return over() || (carry_out(barrier) && over()); }, "an mbarrier");
}

TensorMap encode_map(bool, const void* data, const std::uint64_t (&extents)[5],
                     const std::uint64_t (&strides)[4], const std::uint32_t (&box)[5]) {
  require(reinterpret_cast<std::uintptr_t>(data) % 16 == 0, "the array is not aligned to 16 bytes");
  TensorMap map{};
  map.data = static_cast<const unsigned char*>(data);
  for (std::size_t n = 0; n < 5; ++n) {
    require(extents[n] >= 1 && extents[n] <= std::uint64_t{1} << 32, "an extent");
    require(box[n] >= 1 && box[n] <= 256, "the box");
    map.extents[n] = static_cast<std::int64_t>(extents[n]);
    map.box[n] = static_cast<int>(box[n]);
    if (n == 0) continue;
    require(strides[n - 1] % 16 == 0 && strides[n - 1] < std::uint64_t{1} << 40, "a stride");
    map.strides[n] = static_cast<std::int64_t>(strides[n - 1]);
  }
  map.strides[0] = 2;
  require(box[0] == 64, "only rows of 128 bytes are emulated with this swizzle");
  return map;
}

void load_tile(const TensorMap& map, std::uint32_t to, std::uint32_t barrier,
               const int (&coordinates)[5]) {
  if (reinterpret_cast<std::uintptr_t>(&map) % 64 != 0)
    throw Fault("a tensor map not aligned to 64");
  TileCopy copy{map, to, barrier, {}, mine()};
  std::memcpy(copy.coordinates, coordinates, sizeof coordinates);
  shared_pointer(to, static_cast<std::size_t>(copy.bytes()), 128);
  read(barrier);
  static std::uint32_t count = 0;
  if (late(++count)) {
    postponed.push_back(copy);
    happened();
  } else {
    copy.carry_out();
  }
}

}  // namespace attnbench::emulated
