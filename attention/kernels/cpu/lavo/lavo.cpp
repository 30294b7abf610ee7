#include "attention/kernels/lavo.hpp"
#include "attention/kernels/cpu/lavo/lavo_read.hpp"
#include "attention/kernels/cpu/lavo/lavo_step.hpp"

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
    const std::int64_t rows = whole_units(tokens), stride = bases.rows;
    const BlockPlace place{b, h, t, tokens};
    const std::uint8_t* const mask = each || windows ? call.mask(b, t) : nullptr;
    SpreadPrefetch prefetch(tokens);
    if (const std::int64_t next = t + tokens; next < parts.end(k)) {
      prefetch.add(call.in.query, b, h, next, sizes.head_dim);
      if (each || windows) prefetch.add(call.in.tokens, b, h, next, sizes.head_dim);
    }
    prefetch.spread(FetchingProduct<R>::tiles(rows, stride) +
                    FetchingProduct<R>::tiles(rows, bases.width));
    const auto coordinates = [&](const Operand<R>& x, R* to) ATTNBENCH_INLINE_LAMBDA {
      FetchingProduct<R>{
          rows, stride, sizes.head_dim, {x.data, x.stride, 1}, bases.along_of(h), stride, nullptr,
          0,    to,     stride}
          .template run<Bytes>(prefetch);
    };
    coordinates(
        open_units<T, Bytes>(call.in.query, nullptr, place, sizes.head_dim, s.query, bases.width),
        s.logits);
    const bool empty = mean.count == 0;
    if (each || windows) {
      const Operand<R> x = open_tokens<T, Bytes>(call, s, place);
      if (windows) add_rows<R, Bytes>(x.data, x.stride, tokens, bases.width, s.sum);
      if (each) {
        coordinates(x, s.means);
        mean.template run<Bytes>(s.means, mask, tokens, stride);
      }
    }
    weigh_memory<R, Bytes>(bases, s, each ? s.means : s.mean, each ? stride : 0,
                           static_cast<R>(sizes.scale * log2_of_e), tokens);
    put_memory<T, Bytes>(call, s, place, empty, prefetch);
    t += tokens;
    if (!windows) continue;
    begun += real_tokens(mask, tokens);
    if (blocks.ends(t)) {
      bases.template project<Bytes>(h, s.sum, s.means);
      mean.template take<Bytes>(s.means, begun, bases.rows);
      std::fill_n(s.sum, bases.width, R{0});
      begun = 0;
    }
  }
  if (k == parts.count - 1) end_sequence(call, s, b, h, mean.count, begun);
}

/// What is done with an item: a head's bases are packed, a part's tokens summed, a part read, or
/// the whole steps of some heads.
enum class Work { pack, sum, read, step };

bool is_step(const LavoSizes& sizes) {
  return sizes.length == 1 && sizes.order != MemoryOrder::all;
}

template <class T, int Bytes>
ATTNBENCH_INLINE void item(const MemoryCall<T>& call, const MemoryScratch<Compute<T>>& s,
                           std::int64_t b, std::int64_t h, std::int64_t k, Work work) {
  if (work == Work::pack) return call.shared.bases.template pack<T, Bytes>(call.in.bases, h);
  if (work == Work::sum) return sum_part<T, Bytes>(call, s, b, h, k);
  if (work == Work::step) return step_heads<T, Bytes>(call, s, k);
  read_part<T, Bytes>(call, s, b, h, k);
}

template <class T>
void item_baseline(const MemoryCall<T>& call, const MemoryScratch<Compute<T>>& s, std::int64_t b,
                   std::int64_t h, std::int64_t k, Work work) {
  item<T, baseline_bytes>(call, s, b, h, k, work);
}
template <class T>
ATTNBENCH_AVX2 void item_avx2(const MemoryCall<T>& call, const MemoryScratch<Compute<T>>& s,
                              std::int64_t b, std::int64_t h, std::int64_t k, Work work) {
  item<T, avx2_bytes>(call, s, b, h, k, work);
}
template <class T>
ATTNBENCH_AVX512 void item_avx512(const MemoryCall<T>& call, const MemoryScratch<Compute<T>>& s,
                                  std::int64_t b, std::int64_t h, std::int64_t k, Work work) {
  item<T, avx512_bytes>(call, s, b, h, k, work);
}

/// The bytes of what is shared, and of what one worker holds.
template <class R>
std::pair<std::size_t, std::size_t> bytes_of(const LavoSizes& sizes) {
  Workspace shared, own;
  const MemoryShared<R> laid(shared, sizes);
  MemoryScratch<R>(own, laid.bases, is_step(sizes));
  return {shared.used(), own.used()};
}

}  // namespace

template <class T>
std::size_t lavo_forward_bytes(const LavoSizes& sizes, int threads) {
  const auto [shared, own] = bytes_of<Compute<T>>(sizes);
  return shared + static_cast<std::size_t>(threads) * own;
}

template <class T>
void lavo_forward(const LavoSizes& sizes, const LavoArguments<T>& arguments, ThreadTeam& team,
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
  call.shared.bases.set_fence();
  share(team, sizes.heads,
        [&](int worker, std::int64_t h) { run(call, scratch_of(worker), 0, h, 0, Work::pack); });
  const std::int64_t parts = call.shared.remembering.count;
  if (sizes.order == MemoryOrder::all || parts > 1) over(parts, Work::sum);
  over(call.shared.reading.count, Work::read);
}

#define ATTNBENCH_INSTANTIATE(T)                                                               \
  template std::size_t lavo_forward_bytes<T>(const LavoSizes&, int);                           \
  template void lavo_forward<T>(const LavoSizes&, const LavoArguments<T>&, ThreadTeam&, void*, \
                                std::size_t);
ATTNBENCH_FOR_TYPES(ATTNBENCH_INSTANTIATE)

}  // namespace attnbench::kernels
