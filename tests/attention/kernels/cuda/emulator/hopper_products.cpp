// Warpgroup products for the emulator.
#include <algorithm>
#include <cstring>
#include <string>

#include "tests/attention/kernels/cuda/emulator/hopper.hpp"
#include "tests/attention/kernels/cuda/emulator/hopper_operand.hpp"
#include "tests/attention/kernels/cuda/emulator/hopper_shared.hpp"
#include "tests/attention/kernels/cuda/emulator/instructions.hpp"

namespace attnbench::emulated {
namespace {

constexpr int most_columns = 256;

/// What stands in an accumulator on its way: a NaN that no arithmetic makes.
constexpr std::uint32_t on_its_way = 0x7fc0'dead;

using Lanes = std::vector<Products*>;
using Group = std::vector<Ordered>;

/// The group of a lane that happens next.
Group& next_of(Products& lane) { return lane.groups[lane.done]; }

/// The place of accumulator i of a lane in its warp's 16 rows.
int row_of(int lane, int i) { return lane / 4 + i / 2 % 2 * 8; }
int column_of(int lane, int i) { return i / 4 * 8 + lane % 4 * 2 + i % 2; }

struct Tile {
  float sums[16][most_columns];
  float a[16][product_depth];
  float b[product_depth][most_columns];

  void load_a(const Lanes& lanes, std::size_t n, int warp) {
    const Ordered& order = next_of(*lanes[0])[n];
    if (order.a == nullptr) {
      const Operand operand(order.a_operand);
      for (int r = 0; r < 16; ++r) operand.k_major(order.half, 16 * warp + r, a[r], 1);
      return;
    }
    for (int lane = 0; lane < 32; ++lane) {
      const std::uint32_t* registers = next_of(*lanes[static_cast<std::size_t>(lane)])[n].a;
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
      for (int k = 0; k < product_depth; ++k) {
        for (int n = 0; n < order.columns; n += 8) operand.n_major(order.half, k, n, &b[k][n]);
      }
    } else {
      for (int n = 0; n < order.columns; ++n)
        operand.k_major(order.half, n, &b[0][n], most_columns);
    }
  }

  void multiply(int columns) {
    for (int r = 0; r < 16; ++r) {
      for (int k = 0; k < product_depth; ++k) {
        const float x = a[r][k];
        for (int n = 0; n < columns; n += 8) {
          for (int e = 0; e < 8; ++e) sums[r][n + e] += x * b[k][n + e];
        }
      }
    }
  }
};

bool any_for(const Group& group, const float* d, std::size_t from = 0) {
  return std::any_of(group.begin() + static_cast<std::ptrdiff_t>(from), group.end(),
                     [d](const Ordered& order) { return order.d == d; });
}

/// Whether the lane has ordered products into `d` from its g-th group on, in that after the n-th.
bool more_for(const Products& lane, const float* d, std::size_t g, std::size_t n) {
  if (g < lane.groups.size() && any_for(lane.groups[g], d, n)) return true;
  for (++g; g < lane.groups.size(); ++g) {
    if (any_for(lane.groups[g], d)) return true;
  }
  return any_for(lane.open, d);
}

/// Carries out the next group of a warp.
void carry_out_group(const Lanes& lanes, int warp) {
  static Tile tile;
  const Group& group = next_of(*lanes[0]);
  for (Products* lane : lanes) {
    if (lane->groups.size() <= lane->done || next_of(*lane).size() != group.size()) {
      throw Fault("wgmma: the lanes of a warp closed different groups");
    }
  }
  for (std::size_t n = 0; n < group.size(); ++n) {
    const Ordered& order = group[n];
    for (Products* lane : lanes) {
      const Ordered& other = next_of(*lane)[n];
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
        const auto& sums = products.sums.at(next_of(products)[n].d);
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
      float* d = next_of(products)[n].d;
      const bool arrived = !more_for(products, d, products.done, n + 1);
      auto& sums = products.sums.at(d);
      for (int i = 0; i < order.columns / 2; ++i) {
        const float sum = tile.sums[row_of(lane, i)][column_of(lane, i)];
        sums[static_cast<std::size_t>(i)] = sum;
        if (!arrived) continue;
        if (same_bits<std::uint32_t>(d[i]) != on_its_way) {
          throw Fault("wgmma: an accumulator was written while products were under way");
        }
        d[i] = sum;
      }
      if (arrived) products.sums.erase(d);
    }
  }
  for (Products* lane : lanes) ++lane->done;
}

/// Forgets the oldest group of a lane, which has happened and is waited for.
void forget_group(Products& lane) {
  for (const Ordered& order : lane.groups.front()) {
    if (order.a != nullptr && !std::equal(order.a_values.begin(), order.a_values.end(), order.a)) {
      throw Fault("wgmma: an operand in registers was written while products were under way");
    }
  }
  lane.groups.pop_front();
  --lane.done;
}

/// Carries out all groups of the warp but the last `pending`, which it then forgets if it `waits`.
void carry_out(const char* kind, std::size_t pending, bool waits) {
  Products& products = products_of_thread();
  const int warp = self().warp() % 4;
  warp_together(kind, &products, [=](const std::vector<void*>& operands) {
    if (operands.size() != 32) throw Fault("wgmma in a warp of fewer than 32 threads");
    Lanes lanes;
    for (void* each : operands) lanes.push_back(static_cast<Products*>(each));
    const std::size_t count = lanes[0]->groups.size();
    while (lanes[0]->done + pending < count) carry_out_group(lanes, warp);
    for (Products* lane : lanes) {
      while (waits && lane->groups.size() > pending) forget_group(*lane);
    }
  });
}

/// What was known of registers at the fence must still be so; of new ones nothing is known.
template <class Known, class Registers>
void require_unchanged(const Known& known, Registers* registers) {
  const auto found = known.find(registers);
  if (found == known.end()) return;
  if (std::memcmp(found->second.data(), registers, found->second.size() * 4) != 0) {
    throw Fault("wgmma: its registers were written after wgmma.fence");
  }
}

}  // namespace

void wgmma_fence() {
  Products& products = products_of_thread();
  products.fenced = true;
  for (auto& [d, values] : products.accumulators) std::copy_n(d, values.size(), values.begin());
  for (auto& [a, values] : products.fragments) std::copy_n(a, values.size(), values.begin());
}

void wgmma(bool half, int columns, float* d, bool add, const std::uint32_t* a,
           std::uint64_t a_operand, std::uint64_t b_operand, bool transposed) {
  Products& products = products_of_thread();
  if (columns < 8 || columns > most_columns || columns % 8 != 0) {
    throw Fault("wgmma of " + std::to_string(columns) + " columns");
  }
  if (!products.fenced) throw Fault("wgmma without wgmma.fence since its registers were written");
  Ordered order{half, columns, d, add, a, {}, a_operand, b_operand, transposed};
  if (a != nullptr) {
    require_unchanged(products.fragments, a);
    std::copy_n(a, 4, order.a_values.begin());
    products.fragments.emplace(a, order.a_values);
  }
  const bool chained = more_for(products, d, 0, 0);
  products.open.push_back(order);
  for (const std::uint64_t x :
       {std::uint64_t(columns) << 2 | std::uint64_t(transposed) << 1 | add, a_operand, b_operand}) {
    products.history = (products.history ^ x) * 0x9e3779b97f4a7c15u + 1;
  }
  if (products.sums.count(d) != 0) return;
  if (!chained) require_unchanged(products.accumulators, d);
  const auto size = static_cast<std::size_t>(columns) / 2;
  products.accumulators[d].resize(size);
  products.sums.emplace(d, std::vector<float>(d, d + size));
  std::fill_n(d, size, same_bits<float>(on_its_way));
}

void wgmma_commit() {
  Products& products = products_of_thread();
  products.groups.push_back(std::move(products.open));
  products.open.clear();
  if (!coin(++products.groups_so_far + 77u * static_cast<unsigned>(self().warp()))) {
    carry_out("wgmma.commit_group", 0, false);
  }
}

void wgmma_wait(int pending) {
  carry_out("wgmma.wait_group", static_cast<std::size_t>(pending), true);
  products_of_thread().fenced = false;
}

}  // namespace attnbench::emulated
