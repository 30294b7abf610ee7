#include "attention/kernels/causal_product.hpp"

#include "attention/kernels/cpu/recurrent/causal_product_block.hpp"

namespace attnbench::kernels {
namespace {

/// The arguments of the items: those of one head read the total while the first writes the next.
template <class T>
struct Carried : CausalProductArguments<T> {
  const Compute<T>* total_before = nullptr;  ///< [batch, heads, features]
};

template <class Element>
struct Product {
  using T = Element;
  using R = Compute<T>;
  using Sizes = CausalProductSizes;
  using Arguments = Carried<T>;
  using Scratch = RecurrentScratch<Product>;

  struct Block : ProductBlock<R> {
    Block(Workspace& space, const Sizes& sizes, std::int64_t tokens)
        : ProductBlock<R>(space, sizes, tokens, false) {}
  };

  static const Rows<const T>& keys(const Arguments& arguments) { return arguments.key; }

  static std::int64_t head_of(const Sizes& sizes, const RecurrentItem& item) {
    return (item.b * sizes.heads + item.h) * sizes.features;
  }

  static R* memory_of(const Sizes& sizes, const Arguments& arguments, const RecurrentItem& item) {
    R* const memory = arguments.memory;
    return memory == nullptr ? nullptr : memory + head_of(sizes, item) * sizes.value_dim;
  }

  static Memory<R> begin(const Sizes& sizes, const Arguments& arguments, const RecurrentItem& item,
                         const Scratch& s) {
    s.block.forget();
    if (arguments.total_before != nullptr) {
      std::copy_n(arguments.total_before + head_of(sizes, item), sizes.features, s.block.sum);
    }
    return open_memory(memory_of(sizes, arguments, item), sizes.value_dim, sizes.features, item,
                       s.state, s.rows, s.columns);
  }

  static void end(const Sizes& sizes, const Arguments& arguments, const RecurrentItem& item,
                  const Scratch& s, const Memory<R>& memory) {
    if (sizes.decays && arguments.memory != nullptr && *s.block.scale != 1) {
      for (std::int64_t f = 0; f < sizes.features; ++f) {
        R* const row = memory.data + f * memory.stride;
        for (std::int64_t d = 0; d < item.columns; ++d) row[d] *= *s.block.scale;
      }
    }
    close_memory(memory, memory_of(sizes, arguments, item), sizes.value_dim, sizes.features, item);
    if (arguments.total_before == nullptr || item.column != 0) return;
    std::copy_n(s.block.sum, sizes.features, arguments.total + head_of(sizes, item));
  }

  template <int Bytes>
  static Opened<R> open(const Sizes& sizes, const Arguments& arguments, const Block& block,
                        const std::uint8_t* mask, const BlockPlace& place) {
    return open_product<T, Bytes>(sizes, arguments, block, mask, place);
  }
  template <int Bytes>
  static void weigh(const Sizes& sizes, const Block& block, const Opened<R>& opened,
                    std::int64_t begin, std::int64_t end) {
    weigh_product<R, Bytes, false>(sizes, block, opened, begin, end);
  }
  template <int Bytes>
  static void close(const Sizes& sizes, const Block& block, std::int64_t tokens) {
    close_product<R, Bytes>(sizes, block, tokens);
  }
};

}  // namespace

template <class T>
std::size_t causal_product_forward_bytes(const CausalProductSizes& sizes, int threads) {
  Workspace totals;
  totals.take<Compute<T>>(sizes.batch * sizes.heads * sizes.features);
  return totals.used() +
         static_cast<std::size_t>(threads) * recurrent_scratch_bytes<Product<T>>(sizes, threads);
}

template <class T>
void causal_product_forward(const CausalProductSizes& sizes,
                            const CausalProductArguments<T>& arguments, ThreadTeam& team,
                            void* workspace, std::size_t workspace_bytes) {
  using R = Compute<T>;
  if (sizes.length == 0 || sizes.features == 0) return;
  Workspace space(workspace, workspace_bytes);
  const std::int64_t rows = sizes.batch * sizes.heads * sizes.features;
  R* const totals = space.take<R>(rows);
  Carried<T> carried{arguments, arguments.total};
  if (arguments.total != nullptr && item_slices<R>(sizes, team.size()) > 1) {
    std::copy_n(arguments.total, rows, totals);
    carried.total_before = totals;
  }
  recurrent_forward<Product<T>>(sizes, carried, team, space);
}

#define ATTNBENCH_INSTANTIATE(T)                                                                \
  template std::size_t causal_product_forward_bytes<T>(const CausalProductSizes&, int);         \
  template void causal_product_forward<T>(const CausalProductSizes&,                            \
                                          const CausalProductArguments<T>&, ThreadTeam&, void*, \
                                          std::size_t);
ATTNBENCH_FOR_TYPES(ATTNBENCH_INSTANTIATE)

}  // namespace attnbench::kernels
