// Warpgroup products for the emulator.
#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "attention/kernels/rows.hpp"
#include "tests/attention/kernels/cuda/emulator/hopper.hpp"
#include "tests/attention/kernels/cuda/emulator/hopper_shared.hpp"

namespace attnbench::emulated {
namespace {

constexpr int depth = 16;
constexpr int most_columns = 256;

float number(bool half, std::uint16_t bits) {
  return half ? kernels::widen(kernels::Half{bits}) : kernels::widen(kernels::BFloat16{bits});
}

/// A matrix descriptor: how an operand lies in shared memory, swizzled by 128 bytes.
class Operand {
 public:
  explicit Operand(std::uint64_t descriptor)
      : start_(field(descriptor, 0)),
        leading_(field(descriptor, 16)),
        stride_(field(descriptor, 32)) {
    if (descriptor >> 62 != 1 || (descriptor >> 49 & 7) != 0) {
      throw Fault("wgmma: only operands swizzled by 128 bytes without a base offset are emulated");
    }
  }

  /// 16 numbers along the inner dimension of row (of A) or column (of B) n. K-major: atoms of 8
  /// rows of 128 bytes, `stride` apart.
  void k_major(bool half, int n, float* out, int step) const {
    if (start_ % 128 + 2 * depth > 128) throw Fault("wgmma: an operand leaves its 128 bytes");
    for (int part = 0; part < 2; ++part) {
      eight(half, start_ + n / 8 * stride_ + n % 8 * 128 + part * 16, out + part * 8 * step, step);
    }
  }

  /// Columns n to n + 7 at inner index k. N-major: atoms of 64 columns by 8 inner indices,
  /// `leading` apart along the columns and `stride` apart along the inner dimension.
  void n_major(bool half, int k, int n, float* out) const {
    eight(half, start_ + n / 64 * leading_ + n % 64 * 2 + k / 8 * stride_ + k % 8 * 128, out, 1);
  }

 private:
  static std::uint32_t field(std::uint64_t descriptor, int bit) {
    return static_cast<std::uint32_t>(descriptor >> bit & 0x3fff) << 4;
  }
  static void eight(bool half, std::uint32_t address, float* out, int step) {
    std::uint16_t bits[8];
    std::memcpy(bits, shared_pointer(swizzled(address), 16, 16), 16);
    for (int e = 0; e < 8; ++e) out[e * step] = number(half, bits[e]);
  }
  std::uint32_t start_, leading_, stride_;
};

using Lanes = std::vector<Products*>;

/// The place of accumulator i of a lane in its warp's 16 rows.
int row_of(int lane, int i) { return lane / 4 + i / 2 % 2 * 8; }
int column_of(int lane, int i) { return i / 4 * 8 + lane % 4 * 2 + i % 2; }

struct Tile {
  float sums[16][most_columns];
  float a[16][depth];
  float b[depth][most_columns];

  void load_a(const Lanes& lanes, std::size_t n, int warp) {
    const Ordered& order = lanes[0]->groups.front()[n];
    if (order.a == nullptr) {
      const Operand operand(order.a_operand);
      for (int r = 0; r < 16; ++r) operand.k_major(order.half, 16 * warp + r, a[r], 1);
      return;
    }
    for (int lane = 0; lane < 32; ++lane) {
      const std::uint32_t* registers = lanes[static_cast<std::size_t>(lane)]->groups.front()[n].a;
      for (int i = 0; i < 4; ++i) {
        float* to = &a[lane / 4 + i % 2 * 8][lane % 4 * 2 + i / 2 * 8];
        to[0] = number(order.half, static_cast<std::uint16_t>(registers[i]));
        to[1] = number(order.half, static_cast<std::uint16_t>(registers[i] >> 16));
      }
    }
  }

  void load_b(const Ordered& order) {
    const Operand operand(order.b_operand);
    if (order.transposed) {
      for (int k = 0; k < depth; ++k) {
        for (int n = 0; n < order.columns; n += 8) operand.n_major(order.half, k, n, &b[k][n]);
      }
    } else {
      for (int n = 0; n < order.columns; ++n)
        operand.k_major(order.half, n, &b[0][n], most_columns);
    }
  }

  void multiply(int columns) {
    for (int r = 0; r < 16; ++r) {
      for (int k = 0; k < depth; ++k) {
        const float x = a[r][k];
        for (int n = 0; n < columns; n += 8) {
          for (int e = 0; e < 8; ++e) sums[r][n + e] += x * b[k][n + e];
        }
      }
    }
  }
};

/// Whether the lane has ordered more products into `d` than those up to the n-th of its first
/// group.
bool more_for(const Products& lane, const float* d, std::size_t n) {
  const auto same = [d](const Ordered& order) { return order.d == d; };
  const auto& first = lane.groups.front();
  if (std::any_of(first.begin() + static_cast<std::ptrdiff_t>(n) + 1, first.end(), same))
    return true;
  for (std::size_t g = 1; g < lane.groups.size(); ++g) {
    if (std::any_of(lane.groups[g].begin(), lane.groups[g].end(), same)) return true;
  }
  return std::any_of(lane.open.begin(), lane.open.end(), same);
}

/// Carries out the oldest group of a warp.
void carry_out_group(const Lanes& lanes, int warp) {
  static Tile tile;
  const std::vector<Ordered>& group = lanes[0]->groups.front();
  for (const Products* lane : lanes) {
    if (lane->groups.empty() || lane->groups.front().size() != group.size()) {
      throw Fault("wgmma: the lanes of a warp closed different groups");
    }
  }
  for (std::size_t n = 0; n < group.size(); ++n) {
    const Ordered& order = group[n];
    for (const Products* lane : lanes) {
      const Ordered& other = lane->groups.front()[n];
      if (other.columns != order.columns || other.a_operand != order.a_operand ||
          other.b_operand != order.b_operand || other.add != order.add) {
        throw Fault("wgmma: the lanes of a warp ordered different products");
      }
    }
    // Products in a row into the same accumulators stay in the tile.
    const bool first = n == 0 || group[n - 1].d != order.d;
    const bool last = n + 1 == group.size() || group[n + 1].d != order.d;
    if (!order.add) {
      for (auto& row : tile.sums) std::fill_n(row, order.columns, 0.0F);
    } else if (first) {
      for (int lane = 0; lane < 32; ++lane) {
        Products& products = *lanes[static_cast<std::size_t>(lane)];
        const auto& sums = products.sums.at(products.groups.front()[n].d);
        for (int i = 0; i < order.columns / 2; ++i) {
          tile.sums[row_of(lane, i)][column_of(lane, i)] = sums[static_cast<std::size_t>(i)];
        }
      }
    }
    tile.load_a(lanes, n, warp);
    tile.load_b(order);
    tile.multiply(order.columns);
    if (!last) continue;
    for (int lane = 0; lane < 32; ++lane) {
      Products& products = *lanes[static_cast<std::size_t>(lane)];
      float* d = products.groups.front()[n].d;
      const bool arrived = !more_for(products, d, n);
      auto& sums = products.sums.at(d);
      for (int i = 0; i < order.columns / 2; ++i) {
        const float sum = tile.sums[row_of(lane, i)][column_of(lane, i)];
        sums[static_cast<std::size_t>(i)] = sum;
        if (arrived) d[i] = sum;
      }
      if (arrived) products.sums.erase(d);
    }
  }
  for (Products* lane : lanes) lane->groups.pop_front();
}

/// Until at most `pending` groups of the warp are left.
void carry_out(const char* kind, std::size_t pending) {
  const std::shared_ptr<Products> products = mine();
  const int warp = self().warp() % 4;
  warp_together(kind, products.get(), [=](const std::vector<void*>& operands) {
    if (operands.size() != 32) throw Fault("wgmma in a warp of fewer than 32 threads");
    Lanes lanes;
    for (void* each : operands) lanes.push_back(static_cast<Products*>(each));
    while (lanes[0]->groups.size() > pending) carry_out_group(lanes, warp);
  });
}

}  // namespace

std::shared_ptr<Products> mine() {
  Thread& thread = self();
  if (thread.extension == nullptr) thread.extension = std::make_shared<Products>();
  return std::static_pointer_cast<Products>(thread.extension);
}

void wgmma_fence() { mine()->fenced = true; }

void wgmma(bool half, int columns, float* d, bool add, const std::uint32_t* a,
           std::uint64_t a_operand, std::uint64_t b_operand, bool transposed) {
  const std::shared_ptr<Products> products = mine();
  if (columns < 8 || columns > most_columns || columns % 8 != 0) {
    throw Fault("wgmma of " + std::to_string(columns) + " columns");
  }
  if (!products->fenced) throw Fault("wgmma without wgmma.fence since its registers were written");
  products->open.push_back({half, columns, d, add, a, a_operand, b_operand, transposed});
  if (products->sums.count(d) != 0) return;
  products->sums.emplace(d, std::vector<float>(d, d + columns / 2));
  std::fill_n(d, columns / 2, std::numeric_limits<float>::quiet_NaN());
}

void wgmma_commit() {
  const std::shared_ptr<Products> products = mine();
  products->groups.push_back(std::move(products->open));
  products->open.clear();
  if (!late(++products->groups_so_far + 77u * static_cast<unsigned>(self().warp()))) {
    carry_out("wgmma.commit_group", 0);
  }
}

void wgmma_wait(int pending) {
  carry_out("wgmma.wait_group", static_cast<std::size_t>(pending));
  mine()->fenced = false;
}

}  // namespace attnbench::emulated
