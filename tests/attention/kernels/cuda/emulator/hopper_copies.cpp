// Tensor maps and bulk tensor copies for the emulator.
#include <cstring>
#include <string>
#include <vector>

#include "tests/attention/kernels/cuda/emulator/hopper.hpp"
#include "tests/attention/kernels/cuda/emulator/hopper_shared.hpp"

namespace attnbench::emulated {
namespace {

int bytes_of(const TensorMap& map) {
  int count = 2;
  for (const int extent : map.box) count *= extent;
  return count;
}

void read_element(const TileCopy& copy, const int (&i)[5], int e, unsigned char* out) {
  const unsigned char* from = copy.map.data;
  for (int n = 0; n < 5; ++n) {
    const std::int64_t at = std::int64_t{copy.coordinates[n]} + i[n] + (n == 0 ? e : 0);
    if (at < 0 || at >= copy.map.extents[n]) {
      out[0] = out[1] = 0;
      return;
    }
    from += at * copy.map.strides[n];
  }
  std::memcpy(out, from, 2);
}

void carry_out(const TileCopy& copy) {
  const TensorMap& map = copy.map;
  std::uint32_t at = copy.to;
  int i[5] = {};
  for (i[4] = 0; i[4] < map.box[4]; ++i[4]) {
    for (i[3] = 0; i[3] < map.box[3]; ++i[3]) {
      for (i[2] = 0; i[2] < map.box[2]; ++i[2]) {
        for (i[1] = 0; i[1] < map.box[1]; ++i[1]) {
          for (i[0] = 0; i[0] < map.box[0]; i[0] += 8, at += 16) {
            unsigned char chunk[16];
            for (int e = 0; e < 8; ++e) read_element(copy, i, e, chunk + 2 * e);
            std::memcpy(shared_pointer(swizzled(at), 16, 16), chunk, 16);
          }
        }
      }
    }
  }
  mbarrier_receive(copy.barrier, bytes_of(map));
}

void require(bool condition, const char* what) {
  if (!condition) throw Fault(std::string("tensor map: ") + what);
}

}  // namespace

bool carry_out_copies(std::uint32_t barrier) {
  std::vector<TileCopy>& postponed = hopper().postponed;
  bool any = false;
  for (std::size_t n = 0; n < postponed.size();) {
    if (postponed[n].barrier != barrier) {
      ++n;
      continue;
    }
    const TileCopy copy = postponed[n];
    postponed.erase(postponed.begin() + static_cast<std::ptrdiff_t>(n));
    carry_out(copy);
    any = true;
  }
  return any;
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
  require_known(barrier, true);
  TileCopy copy{map, to, barrier, {}};
  std::memcpy(copy.coordinates, coordinates, sizeof coordinates);
  const auto bytes = static_cast<std::size_t>(bytes_of(map));
  // The swizzle repeats every 1024 bytes. What stands there is gone at once: who still reads it
  // reads NaN.
  std::memset(shared_pointer(to, bytes, 1024), 0xff, bytes);
  static std::uint32_t count = 0;
  if (coin(++count)) {
    hopper().postponed.push_back(copy);
    happened();
  } else {
    carry_out(copy);
  }
}

}  // namespace attnbench::emulated
