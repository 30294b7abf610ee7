#include "attention/kernels/softmax_pool.hpp"

#include "attention/kernels/cpu/softmax/slots_sum.hpp"

namespace attnbench::kernels {
namespace {

/// The softmax whose values are the keys, of the same weights.
template <class T>
struct OfKeys {
  SoftmaxSizes sizes;
  SoftmaxArguments<T> arguments;

  OfKeys(const SoftmaxSizes& given, const SoftmaxPoolArguments<T>& in)
      : sizes(given), arguments(in) {
    sizes.value_dim = sizes.head_dim;
    arguments.v = in.k;
    arguments.out = in.keys_out;
    arguments.lse = nullptr;
  }
};

template <class T>
void item_baseline(const ForwardCall<T>& values, const ForwardCall<T>& keys, void* scratch,
                   const ForwardItem& item) {
  sum_slots<T, baseline_bytes>(values, &keys, scratch, item);
}
template <class T>
ATTNBENCH_AVX2 void item_avx2(const ForwardCall<T>& values, const ForwardCall<T>& keys,
                              void* scratch, const ForwardItem& item) {
  sum_slots<T, avx2_bytes>(values, &keys, scratch, item);
}
template <class T>
ATTNBENCH_AVX512 void item_avx512(const ForwardCall<T>& values, const ForwardCall<T>& keys,
                                  void* scratch, const ForwardItem& item) {
  sum_slots<T, avx512_bytes>(values, &keys, scratch, item);
}

}  // namespace

template <class T>
std::size_t softmax_pool_bytes(const SoftmaxSizes& sizes, int threads) {
  const Cut cut = slots_cut(sizes);
  Workspace count;
  PartialSums<T>(count, sizes, cut);
  PartialSums<T>(count, OfKeys<T>(sizes, {}).sizes, cut);
  return count.used() + static_cast<std::size_t>(threads) * slot_sums_bytes<T>(sizes, cut, true);
}

template <class T>
void softmax_pool(const SoftmaxSizes& sizes, const SoftmaxPoolArguments<T>& arguments,
                  ThreadTeam& team, void* workspace, std::size_t workspace_bytes) {
  if (sizes.length == 0) return;
  const Cut cut = slots_cut(sizes);
  const OfKeys<T> of_keys(sizes, arguments);
  Workspace space(workspace, workspace_bytes);
  const ForwardCall<T> values{sizes, arguments, cut, {space, sizes, cut}, nullptr};
  const ForwardCall<T> keys{
      of_keys.sizes, of_keys.arguments, cut, {space, of_keys.sizes, cut}, nullptr};
  const auto each = static_cast<std::int64_t>(slot_sums_bytes<T>(sizes, cut, true));
  std::byte* const scratch = space.take<std::byte>(each * team.size());
  const auto work = pick(item_baseline<T>, item_avx2<T>, item_avx512<T>);
  const auto item_of = [&](std::int64_t index, std::int64_t parts) {
    const std::int64_t block = index / parts, head = block / cut.blocks;
    return ForwardItem{head / sizes.heads, head % sizes.heads, block % cut.blocks, index % parts};
  };
  const std::int64_t blocks = sizes.batch * sizes.heads * cut.blocks;
  share(team, blocks * cut.parts, [&](int worker, std::int64_t index) {
    work(values, keys, scratch + worker * each, item_of(index, cut.parts));
  });
  if (cut.parts == 1) return;
  share(team, blocks, [&](int, std::int64_t index) {
    combine(values, item_of(index, 1));
    combine(keys, item_of(index, 1));
  });
}

#define ATTNBENCH_INSTANTIATE(T)                                                                  \
  template std::size_t softmax_pool_bytes<T>(const SoftmaxSizes&, int);                           \
  template void softmax_pool<T>(const SoftmaxSizes&, const SoftmaxPoolArguments<T>&, ThreadTeam&, \
                                void*, std::size_t);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)

}  // namespace attnbench::kernels
