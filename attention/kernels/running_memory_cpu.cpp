#include "attention/kernels/running_memory.hpp"
#include "attention/kernels/running_memory_step.hpp"

namespace attnbench::kernels {
namespace {

/// One part of one head.
template <class T, int Bytes>
ATTNBENCH_INLINE void read_part(const MemoryCall<T>& call, const MemoryScratch<Compute<T>>& s,
                                std::int64_t b, std::int64_t h, std::int64_t k) {
  using R = Compute<T>;
  const auto& sizes = call.sizes;
  const auto& bases = call.shared.bases;
  const MemoryParts& parts = call.shared.reading;
  const MemoryBlocks blocks(sizes, sizes.length);
  const bool each = sizes.order == MemoryOrder::each_token;
  const bool windows = sizes.order == MemoryOrder::windows;
  auto [count, begun] = begin_part<T, Bytes>(call, s, b, h, k);
  RunningMean<R> mean{s.mean, count};
  for (std::int64_t t = parts.begin(k); t < parts.end(k);) {
    const std::int64_t tokens = blocks.tokens(t, parts.end(k));
    const std::int64_t rows = whole_units(tokens);
    const std::uint8_t* const mask = each || windows ? call.mask(b, t) : nullptr;
    load_memory_rows<T>(call.in.query.at(b, h, t), call.in.query.row_stride, nullptr, tokens,
                        sizes.head_dim, static_cast<R>(sizes.scale * log2_of_e), s.query,
                        bases.width);
    multiply<R, Bytes, false>(rows, bases.rows, sizes.head_dim, {s.query, bases.width, 1},
                              bases.along_of(h), bases.rows, s.logits, bases.rows);
    if (each || windows) {
      load_memory_rows(call.in.tokens.at(b, h, t), call.in.tokens.row_stride, mask, tokens,
                       sizes.head_dim, R{1}, s.tokens, bases.width);
    }
    const bool empty = mean.count == 0;
    if (each) {
      multiply<R, Bytes, false>(rows, bases.rows, sizes.head_dim, {s.tokens, bases.width, 1},
                                bases.along_of(h), bases.rows, s.means, bases.rows);
      mean.template run<Bytes>(s.means, mask, tokens, bases.rows);
    }
    for (std::int64_t i = 0; i < tokens; ++i) {
      read_row<R, Bytes>(s.logits + i * bases.rows, each ? s.means + i * bases.rows : s.mean,
                         bases.fence, bases.rows);
    }
    multiply<R, Bytes, false>(rows, bases.width, sizes.bases, {s.logits, bases.rows, 1},
                              bases.across_of(h), bases.width, s.out, bases.width);
    store_block(call, s, b, h, t, tokens, empty);
    t += tokens;
    if (!windows) continue;
    add_rows<R, Bytes>(s.tokens, tokens, bases.width, s.sum);
    begun += real_tokens(mask, tokens);
    if (blocks.ends(t)) {
      mean.template take<Bytes>(s.sum, begun, bases.along_of(h), sizes.head_dim, bases.rows);
      std::fill_n(s.sum, bases.width, R{0});
      begun = 0;
    }
  }
  if (k == parts.count - 1) end_sequence(call, s, b, h, mean.count, begun);
}

/// What is done with an item: the sum of a part's tokens, the reading of a part, or the whole steps
/// of some heads.
enum class Work { sum, read, step };

bool is_step(const RunningMemorySizes& sizes) {
  return sizes.length == 1 && sizes.order != MemoryOrder::all;
}

template <class T, int Bytes>
ATTNBENCH_INLINE void item(const MemoryCall<T>& call, const MemoryScratch<Compute<T>>& s,
                           std::int64_t b, std::int64_t h, std::int64_t k, Work work) {
  if (work == Work::sum) return sum_part<T, Bytes>(call, s, b, h, k);
  if (work == Work::step) return step_heads<T, Bytes>(call, s, k);
  read_part<T, Bytes>(call, s, b, h, k);
}

template <class T>
void item_baseline(const MemoryCall<T>& call, const MemoryScratch<Compute<T>>& s, std::int64_t b,
                   std::int64_t h, std::int64_t k, Work work) {
  item<T, 16>(call, s, b, h, k, work);
}
template <class T>
ATTNBENCH_AVX2 void item_avx2(const MemoryCall<T>& call, const MemoryScratch<Compute<T>>& s,
                              std::int64_t b, std::int64_t h, std::int64_t k, Work work) {
  item<T, 32>(call, s, b, h, k, work);
}
template <class T>
ATTNBENCH_AVX512 void item_avx512(const MemoryCall<T>& call, const MemoryScratch<Compute<T>>& s,
                                  std::int64_t b, std::int64_t h, std::int64_t k, Work work) {
  item<T, 64>(call, s, b, h, k, work);
}

/// The bytes of what is shared, and of what one worker holds.
template <class R>
std::pair<std::size_t, std::size_t> bytes_of(const RunningMemorySizes& sizes) {
  Workspace shared, own;
  const MemoryShared<R> laid(shared, sizes);
  MemoryScratch<R>(own, laid.bases, is_step(sizes));
  return {shared.used(), own.used()};
}

}  // namespace

template <class T>
std::size_t running_memory_forward_bytes(const RunningMemorySizes& sizes, int threads) {
  const auto [shared, own] = bytes_of<Compute<T>>(sizes);
  return shared + static_cast<std::size_t>(threads) * own;
}

template <class T>
void running_memory_forward(const RunningMemorySizes& sizes,
                            const RunningMemoryArguments<T>& arguments, ThreadTeam& team,
                            void* workspace, std::size_t workspace_bytes) {
  using R = Compute<T>;
  if (sizes.length == 0) return;
  Workspace space(workspace, workspace_bytes);
  const MemoryCall<T> call{sizes, arguments, {space, sizes}};
  const auto each = static_cast<std::int64_t>(bytes_of<R>(sizes).second);
  std::byte* const scratch = space.take<std::byte>(each * team.size());
  const auto run = pick(item_baseline<T>, item_avx2<T>, item_avx512<T>);
  call.shared.take(sizes, arguments.carry);
  const auto scratch_of = [&](int worker) {
    Workspace own(scratch + worker * each, static_cast<std::size_t>(each));
    return MemoryScratch<R>(own, call.shared.bases, is_step(sizes));
  };
  const std::int64_t heads = sizes.batch * sizes.heads;
  if (is_step(sizes)) {
    call.shared.bases.set_fence();
    const std::int64_t together = heads_together(sizes);
    return share(team, (heads + together - 1) / together, [&](int worker, std::int64_t index) {
      run(call, scratch_of(worker), 0, 0, index, Work::step);
    });
  }
  const auto over = [&](std::int64_t parts, Work work) {
    share(team, heads * parts, [&](int worker, std::int64_t index) {
      const std::int64_t head = index / parts;
      run(call, scratch_of(worker), head / sizes.heads, head % sizes.heads, index % parts, work);
    });
  };
  call.shared.bases.pack(arguments.bases, sizes.heads);
  const std::int64_t parts = call.shared.remembering.count;
  if (sizes.order == MemoryOrder::all || parts > 1) over(parts, Work::sum);
  over(call.shared.reading.count, Work::read);
}

#define ATTNBENCH_INSTANTIATE(T)                                                                \
  template std::size_t running_memory_forward_bytes<T>(const RunningMemorySizes&, int);         \
  template void running_memory_forward<T>(const RunningMemorySizes&,                            \
                                          const RunningMemoryArguments<T>&, ThreadTeam&, void*, \
                                          std::size_t);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)
ATTNBENCH_INSTANTIATE(BFloat16)

}  // namespace attnbench::kernels
