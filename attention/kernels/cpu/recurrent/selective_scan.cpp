#include "attention/kernels/selective_scan.hpp"

#include "attention/kernels/cpu/recurrent/selective_scan_tile.hpp"

namespace attnbench::kernels {
namespace {

/// As many vectors as leave registers for the rows of the state.
template <int Bytes>
constexpr int selective_vectors = has_32_registers<Bytes> ? 2 : 1;

/// All rows and channels of a block.
template <class R, int Bytes>
void selective_tokens(const SelectiveBlock<R>& block, std::int64_t tokens, std::int64_t vectors) {
  Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
    in_runs<selective_vectors<Bytes>>(
        vectors, [&](std::int64_t first, auto count) ATTNBENCH_INLINE_LAMBDA {
          for (std::int64_t row = 0; row < block.rows; row += selective_rows) {
            selective_tile<R, Bytes, decltype(count)::value>(block, tokens, row,
                                                             first * Simd<R, Bytes>::lanes);
          }
        });
  });
}

template <class R, int Bytes>
std::int64_t vectors_of(const SelectiveItem& item) {
  constexpr std::int64_t lanes = Simd<R, Bytes>::lanes;
  return (item.count + lanes - 1) / lanes;
}

/// An item is a head's selective_columns<R> channels.
template <class R>
std::int64_t slices_of(const SelectiveScanSizes& sizes) {
  return (sizes.width + selective_columns<R> - 1) / selective_columns<R>;
}
template <class R>
std::int64_t items_of(const SelectiveScanSizes& sizes) {
  return sizes.batch * sizes.heads * slices_of<R>(sizes);
}
template <class R>
SelectiveItem item_of(const SelectiveScanSizes& sizes, std::int64_t index) {
  const std::int64_t slices = slices_of<R>(sizes), column = index % slices * selective_columns<R>;
  const std::int64_t head = index / slices, h = head % sizes.heads;
  return {head / sizes.heads, h, h / (sizes.heads / sizes.groups), column,
          std::min(selective_columns<R>, sizes.width - column)};
}

/// A call and, of a gradient, where parts of it go.
template <class R>
struct SelectiveCall {
  const SelectiveScanSizes& sizes;
  const SelectiveScanArguments<R>& arguments;
  const SelectiveScanGradients<R>* gradients = nullptr;
  R *d_inputs = nullptr, *d_reads = nullptr;  ///< [items, length, rows], by channels of one item
};

template <class R, int Bytes>
void selective_forward_item(const SelectiveCall<R>& call, std::int64_t index, Workspace& space) {
  const SelectiveScanSizes& sizes = call.sizes;
  const SelectiveScanArguments<R>& arguments = call.arguments;
  const SelectiveItem item = item_of<R>(sizes, index);
  const SelectiveBlock<R> block(space, sizes.rows);
  open_selective(sizes, arguments.rate, item, block);
  // Channels of a group's heads stand side by side in a memory.
  const std::int64_t in_group = sizes.heads / sizes.groups, together = in_group * sizes.width;
  R* const memory = arguments.memory == nullptr
                        ? nullptr
                        : arguments.memory +
                              (item.b * sizes.groups + item.group) * sizes.rows * together +
                              item.h % in_group * sizes.width + item.column;
  for (std::int64_t i = 0; memory != nullptr && i < sizes.rows; ++i) {
    std::copy_n(memory + i * together, item.count, block.state + i * selective_columns<R>);
  }
  for (std::int64_t t0 = 0; t0 < sizes.length; t0 += selective_block) {
    const std::int64_t tokens = std::min(selective_block, sizes.length - t0);
    open_selective_tokens<R, Bytes>(sizes, arguments, item, t0, tokens, block);
    selective_tokens<R, Bytes>(block, tokens, vectors_of<R, Bytes>(item));
    for (std::int64_t t = 0; t < tokens; ++t) {
      std::copy_n(block.out + t * selective_columns<R>, item.count,
                  arguments.out.at(item.b, item.h, t0 + t) + item.column);
    }
  }
  for (std::int64_t i = 0; memory != nullptr && i < sizes.rows; ++i) {
    std::copy_n(block.state + i * selective_columns<R>, item.count, memory + i * together);
  }
}

// ---- gradients

/// What an item of the gradient has in its workspace.
template <class R>
struct SelectiveGradientSpace {
  SelectiveBlock<R> block;
  SelectiveGradientBlock<R> gradient;
  R* starts;  ///< the state before each block, [blocks, rows, selective_columns]

  SelectiveGradientSpace(Workspace& space, const SelectiveScanSizes& sizes)
      : block(space, sizes.rows),
        gradient(space, sizes.rows),
        starts(space.take<R>((sizes.length + selective_block - 1) / selective_block * state())) {}
  std::int64_t state() const { return block.rows * selective_columns<R>; }
};

/// A block's gradients of inputs and reads are sums over the item's channels.
template <class R, int Bytes>
void selective_gradient_tokens(const SelectiveBlock<R>& block, const SelectiveGradientBlock<R>& to,
                               std::int64_t tokens, std::int64_t vectors, std::int64_t rows,
                               R* d_input, R* d_read) {
  Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
    constexpr std::int64_t lanes = Simd<R, Bytes>::lanes;
    R sums[selective_block * selective_rows];
    for (std::int64_t row = 0; row < block.rows; row += selective_rows) {
      std::fill_n(to.d_input, tokens * selective_rows * lanes, R{0});
      std::fill_n(to.d_read, tokens * selective_rows * lanes, R{0});
      in_runs<selective_vectors<Bytes>>(
          vectors, [&](std::int64_t first, auto count) ATTNBENCH_INLINE_LAMBDA {
            selective_gradient_tile<R, Bytes, decltype(count)::value>(block, to, tokens, row,
                                                                      first * lanes);
          });
      const auto put = [&](const R* from, R* all) ATTNBENCH_INLINE_LAMBDA {
        sum_rows<R, Bytes>(from, tokens * selective_rows, sums);
        for (std::int64_t t = 0; t < tokens; ++t) {
          std::copy_n(sums + t * selective_rows, std::min(selective_rows, rows - row),
                      all + t * rows + row);
        }
      };
      put(to.d_input, d_input);
      put(to.d_read, d_read);
    }
  });
}

template <class R, int Bytes>
void selective_backward_item(const SelectiveCall<R>& call, std::int64_t index, Workspace& room) {
  constexpr std::int64_t columns = selective_columns<R>;
  const SelectiveScanSizes& sizes = call.sizes;
  const SelectiveScanGradients<R>& gradients = *call.gradients;
  const SelectiveItem item = item_of<R>(sizes, index);
  const SelectiveGradientSpace<R> space(room, sizes);
  const SelectiveBlock<R>& block = space.block;
  const SelectiveGradientBlock<R>& to = space.gradient;
  const std::int64_t vectors = vectors_of<R, Bytes>(item);
  const auto open = [&](std::int64_t t0, std::int64_t tokens) {
    open_selective_tokens<R, Bytes>(sizes, call.arguments, item, t0, tokens, block);
  };
  open_selective(sizes, call.arguments.rate, item, block);
  std::int64_t blocks = 0;
  for (std::int64_t t0 = 0; t0 < sizes.length; t0 += selective_block, ++blocks) {
    std::copy_n(block.state, space.state(), space.starts + blocks * space.state());
    const std::int64_t tokens = std::min(selective_block, sizes.length - t0);
    if (t0 + tokens == sizes.length) continue;  // nothing starts behind the last
    open(t0, tokens);
    selective_tokens<R, Bytes>(block, tokens, vectors);
  }
  std::fill_n(to.d_state, space.state(), R{0});
  std::fill_n(to.d_rate, space.state(), R{0});
  while (blocks-- > 0) {
    const std::int64_t t0 = blocks * selective_block;
    const std::int64_t tokens = std::min(selective_block, sizes.length - t0);
    open(t0, tokens);
    std::copy_n(space.starts + blocks * space.state(), space.state(), block.state);
    std::fill_n(to.d_amount, tokens * columns, R{0});
    std::fill_n(to.d_step, tokens * columns, R{0});
    for (std::int64_t t = 0; t < tokens; ++t) {
      R* const d_out = to.d_out + t * columns;
      std::copy_n(gradients.d_out.at(item.b, item.h, t0 + t) + item.column, item.count, d_out);
      std::fill(d_out + item.count, d_out + columns, R{0});
    }
    const std::int64_t place = (index * sizes.length + t0) * sizes.rows;
    selective_gradient_tokens<R, Bytes>(block, to, tokens, vectors, sizes.rows,
                                        call.d_inputs + place, call.d_reads + place);
    for (std::int64_t t = 0; t < tokens; ++t) {
      R* const d_step = gradients.d_step.at(item.b, item.h, t0 + t) + item.column;
      R* const d_value = gradients.d_values.at(item.b, item.h, t0 + t) + item.column;
      for (std::int64_t i = 0; i < item.count; ++i) {
        const R d_amount = to.d_amount[t * columns + i];
        d_step[i] = to.d_step[t * columns + i] + d_amount * block.value[t * columns + i];
        d_value[i] = d_amount * block.step[t * columns + i];
      }
    }
  }
  for (std::int64_t i = 0; i < sizes.rows; ++i) {
    const std::int64_t row = (item.b * sizes.heads + item.h) * sizes.rows + i;
    std::copy_n(to.d_rate + i * columns, item.count,
                gradients.d_rate + row * sizes.width + item.column);
  }
}

/// Adds up what the items of each group have found, in their order.
template <class R>
void sum_items(const SelectiveCall<R>& call, ThreadTeam& team) {
  const SelectiveScanSizes& sizes = call.sizes;
  const std::int64_t in_group = sizes.heads / sizes.groups * slices_of<R>(sizes);
  constexpr std::int64_t together = 512;
  const std::int64_t parts = (sizes.length + together - 1) / together;
  share(team, sizes.batch * sizes.groups * parts, [&](int, std::int64_t index) {
    const std::int64_t group = index / parts, t0 = index % parts * together;
    const auto sum = [&](const R* items, const Rows<R>& to) {
      for (std::int64_t t = t0; t < std::min(t0 + together, sizes.length); ++t) {
        R* const row = to.at(group / sizes.groups, group % sizes.groups, t);
        std::fill_n(row, sizes.rows, R{0});
        for (std::int64_t i = 0; i < in_group; ++i) {
          const R* const part = items + ((group * in_group + i) * sizes.length + t) * sizes.rows;
          for (std::int64_t n = 0; n < sizes.rows; ++n) row[n] += part[n];
        }
      }
    };
    sum(call.d_inputs, call.gradients->d_input);
    sum(call.d_reads, call.gradients->d_read);
  });
}

template <class R>
using SelectiveFunction = void (*)(const SelectiveCall<R>&, std::int64_t, Workspace&);

/// `each` bytes of the workspace for a worker.
template <class R>
void run_items(const SelectiveCall<R>& call, SelectiveFunction<R> run, ThreadTeam& team,
               void* workspace, std::size_t each) {
  share(team, items_of<R>(call.sizes), [&](int worker, std::int64_t index) {
    Workspace own(static_cast<std::byte*>(workspace) + static_cast<std::size_t>(worker) * each,
                  each);
    run(call, index, own);
  });
}

template <class R>
std::size_t selective_forward_bytes_of_item(const SelectiveScanSizes& sizes) {
  Workspace count;
  SelectiveBlock<R>(count, sizes.rows);
  return count.used();
}
template <class R>
std::size_t selective_backward_bytes_of_item(const SelectiveScanSizes& sizes) {
  Workspace count;
  SelectiveGradientSpace<R>(count, sizes);
  return count.used();
}

/// Of inputs or of reads, by item.
template <class R>
R* take_parts(const SelectiveScanSizes& sizes, Workspace& space) {
  return space.take<R>(items_of<R>(sizes) * sizes.length * sizes.rows);
}

}  // namespace

template <class R>
std::size_t selective_scan_forward_bytes(const SelectiveScanSizes& sizes, int threads) {
  return static_cast<std::size_t>(threads) * selective_forward_bytes_of_item<R>(sizes);
}

template <class R>
void selective_scan_forward(const SelectiveScanSizes& sizes,
                            const SelectiveScanArguments<R>& arguments, ThreadTeam& team,
                            void* workspace, std::size_t) {
  const SelectiveFunction<R> run = pick<SelectiveFunction<R>>(
      selective_forward_item<R, baseline_bytes>, selective_forward_item<R, avx2_bytes>,
      selective_forward_item<R, avx512_bytes>);
  run_items(SelectiveCall<R>{sizes, arguments}, run, team, workspace,
            selective_forward_bytes_of_item<R>(sizes));
}

template <class R>
std::size_t selective_scan_backward_bytes(const SelectiveScanSizes& sizes, int threads) {
  Workspace count;
  take_parts<R>(sizes, count);
  take_parts<R>(sizes, count);
  return static_cast<std::size_t>(threads) * selective_backward_bytes_of_item<R>(sizes) +
         count.used();
}

template <class R>
void selective_scan_backward(const SelectiveScanSizes& sizes,
                             const SelectiveScanArguments<R>& arguments,
                             const SelectiveScanGradients<R>& gradients, ThreadTeam& team,
                             void* workspace, std::size_t workspace_bytes) {
  const SelectiveFunction<R> run = pick<SelectiveFunction<R>>(
      selective_backward_item<R, baseline_bytes>, selective_backward_item<R, avx2_bytes>,
      selective_backward_item<R, avx512_bytes>);
  const std::size_t each = selective_backward_bytes_of_item<R>(sizes);
  const std::size_t items = static_cast<std::size_t>(team.size()) * each;
  Workspace space(static_cast<std::byte*>(workspace) + items, workspace_bytes - items);
  SelectiveCall<R> call{sizes, arguments, &gradients};
  call.d_inputs = take_parts<R>(sizes, space);
  call.d_reads = take_parts<R>(sizes, space);
  run_items(call, run, team, workspace, each);
  sum_items(call, team);
}

#define ATTNBENCH_INSTANTIATE(R)                                                                \
  template std::size_t selective_scan_forward_bytes<R>(const SelectiveScanSizes&, int);         \
  template void selective_scan_forward<R>(const SelectiveScanSizes&,                            \
                                          const SelectiveScanArguments<R>&, ThreadTeam&, void*, \
                                          std::size_t);                                         \
  template std::size_t selective_scan_backward_bytes<R>(const SelectiveScanSizes&, int);        \
  template void selective_scan_backward<R>(                                                     \
      const SelectiveScanSizes&, const SelectiveScanArguments<R>&,                              \
      const SelectiveScanGradients<R>&, ThreadTeam&, void*, std::size_t);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)

}  // namespace attnbench::kernels
