// What a block of the emulated Hopper keeps, and what must be over when it ends; the registers that
// its warpgroups share.
#include <algorithm>
#include <optional>
#include <string>

#include "tests/attention/kernels/cuda/emulator/hopper.hpp"
#include "tests/attention/kernels/cuda/emulator/hopper_shared.hpp"

namespace attnbench::emulated {
namespace {

std::optional<HopperBlock> state;

/// All four warps of a warpgroup order the same products, and wait for them.
void require_over(const HopperBlock& block) {
  if (!block.postponed.empty()) {
    throw Fault("a block ended before a copy into its shared memory had come");
  }
  std::map<int, std::vector<std::uint64_t>> histories;
  for (const auto& [thread, products] : block.products) {
    if (!products->groups.empty() || !products->open.empty()) {
      throw Fault("wgmma: a thread ended before its products");
    }
    if (products->history != 0) histories[thread / 128].push_back(products->history);
  }
  for (const auto& [warpgroup, all] : histories) {
    if (all.size() != 128 || std::count(all.begin(), all.end(), all.front()) != 128) {
      throw Fault("wgmma: the warps of warpgroup " + std::to_string(warpgroup) +
                  " ordered different products");
    }
  }
}

}  // namespace

HopperBlock& hopper() {
  if (!state) {
    at_block_end([](bool whole) {
      const HopperBlock block = std::move(*state);
      state.reset();
      if (whole) require_over(block);
    });
    state.emplace();
  }
  return *state;
}

Products& products_of_thread() {
  std::shared_ptr<Products>& products = hopper().products[self().number];
  if (products == nullptr) products = std::make_shared<Products>();
  return *products;
}

void set_registers(int count, bool more) {
  if (count % 8 != 0 || count < 24 || count > 256) {
    throw Fault("setmaxnreg to " + std::to_string(count) + " registers");
  }
  warpgroup_together(more ? "setmaxnreg.inc" : "setmaxnreg.dec", &count,
                     [](const std::vector<void*>& threads) {
                       for (void* each : threads) {
                         if (*static_cast<int*>(each) != *static_cast<int*>(threads[0])) {
                           throw Fault("setmaxnreg: a warpgroup asks for different numbers");
                         }
                       }
                     });
  HopperBlock& block = hopper();
  const Index& size = self().block_size;
  const int at_entry = std::min(256, 65536 / static_cast<int>(size.x * size.y * size.z) / 8 * 8);
  int& mine = block.registers.emplace(self().number / 128, at_entry).first->second;
  if (more ? count < mine : count > mine) throw Fault("setmaxnreg in the wrong direction");
  wait_until(
      [&block, &mine, count] {
        const int needed = 128 * (count - mine);  // once for the warpgroup
        if (needed > block.free_registers) return false;
        block.free_registers -= needed;
        mine = count;
        happened();
        return true;
      },
      "registers");
}

}  // namespace attnbench::emulated
