#include "attention/kernels/prefix_pool.hpp"

#include "attention/kernels/cpu/recurrent/prefix_pool_block.hpp"
#include "attention/kernels/cpu/recurrent/recurrence.hpp"

namespace attnbench::kernels {
namespace {

/// The arguments of the items: those of one head read the carry while the first writes the next.
template <class T>
struct Carried : PrefixPoolArguments<T> {
  PoolCarry<Compute<T>> advanced;
};

template <class Element>
struct Pool {
  using T = Element;
  using R = Compute<T>;
  using Sizes = PrefixPoolSizes;
  using Arguments = Carried<T>;
  using Scratch = RecurrentScratch<Pool>;

  struct Block : PoolBlock<R> {
    Block(Workspace& space, const Sizes& sizes, std::int64_t tokens)
        : PoolBlock<R>(space, sizes, tokens, false) {}
  };

  static const Rows<const T>& keys(const Arguments& arguments) { return arguments.scores; }

  static std::int64_t head_of(const Sizes& sizes, const RecurrentItem& item) {
    return (item.b * sizes.heads + item.h) * sizes.latents;
  }

  static R* sum_of(const Sizes& sizes, const Arguments& arguments, const RecurrentItem& item) {
    R* const sum = arguments.carry.sum;
    return sum == nullptr ? nullptr : sum + head_of(sizes, item) * sizes.value_dim;
  }

  static Memory<R> begin(const Sizes& sizes, const Arguments& arguments, const RecurrentItem& item,
                         const Scratch& s) {
    s.block.forget();
    if (arguments.carry.maximum != nullptr) {
      constexpr auto to_base_2 = static_cast<R>(log2_of_e);
      const R* const maximum = arguments.carry.maximum + head_of(sizes, item);
      for (std::int64_t l = 0; l < sizes.latents; ++l) s.block.maximum[l] = maximum[l] * to_base_2;
      std::copy_n(arguments.carry.normaliser + head_of(sizes, item), sizes.latents,
                  s.block.normaliser);
    }
    return open_memory(sum_of(sizes, arguments, item), sizes.value_dim, sizes.latents, item,
                       s.state, s.rows, s.columns);
  }

  static void end(const Sizes& sizes, const Arguments& arguments, const RecurrentItem& item,
                  const Scratch& s, const Memory<R>& memory) {
    close_memory(memory, sum_of(sizes, arguments, item), sizes.value_dim, sizes.latents, item);
    if (arguments.carry.maximum == nullptr || item.column != 0) return;
    constexpr auto to_base_e = static_cast<R>(ln_of_2);
    R* const maximum = arguments.advanced.maximum + head_of(sizes, item);
    for (std::int64_t l = 0; l < sizes.latents; ++l) maximum[l] = s.block.maximum[l] * to_base_e;
    std::copy_n(s.block.normaliser, sizes.latents,
                arguments.advanced.normaliser + head_of(sizes, item));
  }

  template <int Bytes>
  static Opened<R> open(const Sizes& sizes, const Arguments& arguments, const Block& block,
                        const std::uint8_t* mask, const BlockPlace& place) {
    return open_pool<T, Bytes>(sizes, arguments, block, mask, place);
  }
  template <int Bytes>
  static void weigh(const Sizes& sizes, const Block& block, const Opened<R>& opened,
                    std::int64_t begin, std::int64_t end) {
    weigh_pool<R, Bytes, false>(sizes.query, block, opened, begin, end);
  }
  template <int Bytes>
  static void close(const Sizes& sizes, const Block& block, std::int64_t tokens) {
    close_pool<R, Bytes>(sizes.query, block, tokens);
  }
};

}  // namespace

template <class T>
std::size_t prefix_pool_forward_bytes(const PrefixPoolSizes& sizes, int threads) {
  Workspace copies;
  copies.take<Compute<T>>(sizes.batch * sizes.heads * sizes.latents);
  return 2 * copies.used() +
         static_cast<std::size_t>(threads) * recurrent_scratch_bytes<Pool<T>>(sizes, threads);
}

template <class T>
void prefix_pool_forward(const PrefixPoolSizes& sizes, const PrefixPoolArguments<T>& arguments,
                         ThreadTeam& team, void* workspace, std::size_t workspace_bytes) {
  using R = Compute<T>;
  if (sizes.length == 0 || sizes.latents == 0) return;
  Workspace space(workspace, workspace_bytes);
  const std::int64_t latents = sizes.batch * sizes.heads * sizes.latents;
  R* const maximum = space.take<R>(latents);
  R* const normaliser = space.take<R>(latents);
  Carried<T> carried{arguments, arguments.carry};
  if (arguments.carry.maximum != nullptr && item_slices<R>(sizes, team.size()) > 1) {
    std::copy_n(arguments.carry.maximum, latents, maximum);
    std::copy_n(arguments.carry.normaliser, latents, normaliser);
    carried.carry.maximum = maximum;
    carried.carry.normaliser = normaliser;
  }
  recurrent_forward<Pool<T>>(sizes, carried, team, space);
}

#define ATTNBENCH_INSTANTIATE(T)                                                              \
  template std::size_t prefix_pool_forward_bytes<T>(const PrefixPoolSizes&, int);             \
  template void prefix_pool_forward<T>(const PrefixPoolSizes&, const PrefixPoolArguments<T>&, \
                                       ThreadTeam&, void*, std::size_t);
ATTNBENCH_FOR_TYPES(ATTNBENCH_INSTANTIATE)

}  // namespace attnbench::kernels
