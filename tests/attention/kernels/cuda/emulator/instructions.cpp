#include "tests/attention/kernels/cuda/emulator/instructions.hpp"

#include <cmath>

#include "tests/attention/kernels/cuda/emulator/threads.hpp"

namespace attnbench::emulated {
namespace {

using kernels::BFloat16;
using kernels::Half;
using kernels::widen;

constexpr std::size_t copy_bytes = 16;  // of cp.async

/// One half of a register of two 16-bit numbers.
std::uint16_t part(std::uint32_t pair, int which) {
  return static_cast<std::uint16_t>(which == 0 ? pair : pair >> 16);
}

template <int Count>
void load(std::uint32_t (&to)[Count], std::uint32_t address, bool transposed) {
  struct Operands {
    std::uint32_t* to;
    std::uint32_t address;
  };
  Operands operands{to, address};
  const auto together = [transposed](const std::vector<void*>& lanes) {
    if (lanes.size() != 32) throw Fault("ldmatrix in a warp of fewer than 32 threads");
    for (std::size_t matrix = 0; matrix < Count; ++matrix) {
      std::uint16_t numbers[8][8];
      for (std::size_t row = 0; row < 8; ++row) {
        const auto& owner = *static_cast<Operands*>(lanes[8 * matrix + row]);
        std::memcpy(numbers[row], shared_pointer(owner.address, 16, 16), 16);
      }
      for (std::size_t lane = 0; lane < 32; ++lane) {
        const std::size_t row = lane / 4, column = lane % 4 * 2;
        const std::uint16_t low = transposed ? numbers[column][row] : numbers[row][column];
        const std::uint16_t high = transposed ? numbers[column + 1][row] : numbers[row][column + 1];
        static_cast<Operands*>(lanes[lane])->to[matrix] = low | static_cast<std::uint32_t>(high)
                                                                    << 16;
      }
    }
  };
  warp_together(transposed ? "ldmatrix.trans" : "ldmatrix", &operands, together);
}

struct Product {
  float* sum;
  const std::uint32_t* a;
  std::uint32_t b[2];
};

/// sum (16 x 8) += a (16 x depth) b (depth x 8).
template <int Depth>
void add_product(const std::vector<void*>& lanes, const float (&a)[16][Depth],
                 const float (&b)[Depth][8]) {
  for (std::size_t lane = 0; lane < 32; ++lane) {
    auto& each = *static_cast<Product*>(lanes[lane]);
    for (std::size_t n = 0; n < 4; ++n) {
      const std::size_t row = lane / 4 + 8 * (n / 2), column = lane % 4 * 2 + n % 2;
      float sum = each.sum[n];
      for (std::size_t k = 0; k < Depth; ++k) sum += a[row][k] * b[k][column];
      each.sum[n] = sum;
    }
  }
}

}  // namespace

int lane_now() { return self().lane(); }

void warp_barrier() {
  warp_together("__syncwarp", nullptr, [](const std::vector<void*>&) {});
}

unsigned ballot(bool vote) {
  struct Operands {
    bool vote;
    unsigned all;
  };
  Operands operands{vote, 0};
  warp_together("vote", &operands, [](const std::vector<void*>& lanes) {
    unsigned all = 0;
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      if (static_cast<Operands*>(lanes[lane])->vote) all |= 1u << lane;
    }
    for (void* lane : lanes) static_cast<Operands*>(lane)->all = all;
  });
  return operands.all;
}

void load_matrices(std::uint32_t (&to)[4], std::uint32_t address, bool transposed) {
  load(to, address, transposed);
}
void load_matrices(std::uint32_t (&to)[2], std::uint32_t address, bool transposed) {
  load(to, address, transposed);
}

std::uint32_t transpose_matrix(std::uint32_t x) {
  struct Operands {
    std::uint32_t mine, got;
  };
  Operands operands{x, 0};
  warp_together("movmatrix", &operands, [](const std::vector<void*>& lanes) {
    const auto number = [&](std::size_t row, std::size_t column) {
      const auto& owner = *static_cast<Operands*>(lanes[4 * row + column / 2]);
      return part(owner.mine, static_cast<int>(column % 2));
    };
    for (std::size_t lane = 0; lane < 32; ++lane) {
      const std::size_t row = lane / 4, column = lane % 4 * 2;
      static_cast<Operands*>(lanes[lane])->got =
          number(column, row) | static_cast<std::uint32_t>(number(column + 1, row)) << 16;
    }
  });
  return operands.got;
}

template <class T>
void multiply_add_k16(float (&sum)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                      std::uint32_t b1) {
  Product product{sum, a, {b0, b1}};
  warp_together("mma", &product, [](const std::vector<void*>& lanes) {
    float left[16][16], right[16][8];
    for (std::size_t lane = 0; lane < 32; ++lane) {
      const auto& each = *static_cast<Product*>(lanes[lane]);
      const std::size_t group = lane / 4, pair = lane % 4 * 2;
      for (std::size_t e = 0; e < 2; ++e) {
        for (std::size_t n = 0; n < 4; ++n) {
          // a0: upper rows, left columns; a1: lower rows; a2 and a3: the right columns.
          left[group + 8 * (n % 2)][pair + e + 8 * (n / 2)] =
              widen(T{part(each.a[n], static_cast<int>(e))});
        }
        for (std::size_t n = 0; n < 2; ++n) {
          right[pair + e + 8 * n][group] = widen(T{part(each.b[n], static_cast<int>(e))});
        }
      }
    }
    add_product<16>(lanes, left, right);
  });
}
template void multiply_add_k16<BFloat16>(float (&)[4], const std::uint32_t (&)[4], std::uint32_t,
                                         std::uint32_t);
template void multiply_add_k16<Half>(float (&)[4], const std::uint32_t (&)[4], std::uint32_t,
                                     std::uint32_t);

void copy_async(std::uint32_t to, const void* from, int bytes) {
  if (bytes < 0 || bytes > int{copy_bytes}) throw Fault("cp.async copies more than there is");
  if (reinterpret_cast<std::uintptr_t>(from) % copy_bytes != 0) {
    throw Fault("cp.async from an address that is not aligned");
  }
  unsigned char* const place = shared_pointer(to, copy_bytes, copy_bytes);
  std::memset(place, 0xff, copy_bytes);
  self().open.push_back({place, from, bytes});
}

void commit_copies() {
  Thread& thread = self();
  thread.groups.push_back(std::move(thread.open));
  thread.open.clear();
}

void wait_copies(int pending) {
  auto& groups = self().groups;
  while (groups.size() > static_cast<std::size_t>(pending)) {
    for (const Copy& copy : groups.front()) {
      std::memset(copy.to, 0, copy_bytes);
      std::memcpy(copy.to, copy.from, static_cast<std::size_t>(copy.bytes));
    }
    groups.erase(groups.begin());
  }
}

float exp2_fast(float x) {
  const float y = std::exp2(x);
  return y < 1.17549435e-38F ? 0 : y;
}

}  // namespace attnbench::emulated
