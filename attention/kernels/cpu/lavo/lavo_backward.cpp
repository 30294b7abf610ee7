// Gradients of the running memory, head by head. A first sweep keeps the mean that every block
// reads; a second one goes backwards, with R the gradient of what later blocks have of a token's
// coordinates:
//   dm = B g,  da = dm u,  de = a (da - a.da),  dc = de u,  du = dm a + de c,
//   dq = scale B^T dc,  R_s = sum_{t that reads s} du_t / n_t,  dx_s = B^T R_s,
//   dB = m g^T + scale dc q^T + R x^T.
#include "attention/kernels/cpu/lavo/lavo_gradient.hpp"

namespace attnbench::kernels {
namespace {

/// One head, its sweeps.
template <class T, int Bytes>
class Sweep : MemoryGradient<T, Bytes> {
  using Base = MemoryGradient<T, Bytes>;
  using R = Compute<T>;
  using Base::across_, Base::along_, Base::b_, Base::bases_, Base::blocks_, Base::d_bases_,
      Base::h_, Base::in_, Base::out_, Base::s_, Base::sizes_, Base::units_;
  using Base::add_outer, Base::add_products, Base::load_tokens, Base::run_back, Base::store_tokens,
      Base::turn_back;
  using Base::all, Base::each, Base::mask, Base::windows;

 public:
  using Base::Base;

  ATTNBENCH_INLINE void run() const {
    std::fill_n(d_bases_, units_ * bases_.width, R{0});
    std::fill_n(s_.later, bases_.rows, R{0});
    std::fill_n(s_.inside, bases_.rows, R{0});
    const std::int64_t blocks = forward();
    std::int64_t end = sizes_.length;
    for (std::int64_t i = blocks - 1; i >= 0; --i) {
      const std::int64_t t = first_token(end);
      back(i, t, end - t);
      end = t;
    }
    if (all()) back_through_all();
  }

 private:
  /// Where the block that ends before `end` begins.
  std::int64_t first_token(std::int64_t end) const {
    const std::int64_t window = (blocks_.phase + end - 1) / blocks_.window * blocks_.window;
    const std::int64_t begin = std::max<std::int64_t>(0, window - blocks_.phase);
    return begin + (end - 1 - begin) / memory_tokens * memory_tokens;
  }

  /// Keeps the mean before each block. Returns how many there are.
  ATTNBENCH_INLINE std::int64_t forward() const {
    std::fill_n(s_.mean, bases_.rows, R{0});
    std::fill_n(s_.sum, bases_.width, R{0});
    RunningMean<R> mean{s_.mean, 0};
    std::int64_t begun = 0, block = 0;
    const auto fold = [&]() ATTNBENCH_INLINE_LAMBDA {
      bases_.template project<Bytes>(h_, s_.sum, s_.spread);
      mean.template take<Bytes>(s_.spread, begun, bases_.rows);
      std::fill_n(s_.sum, bases_.width, R{0});
      begun = 0;
    };
    if (all()) {
      for (std::int64_t t = 0; t < sizes_.memory_length; t += memory_tokens) {
        const std::int64_t count = std::min(memory_tokens, sizes_.memory_length - t);
        load_tokens(t, count);
        add_rows<R, Bytes>(s_.tokens, bases_.width, count, bases_.width, s_.sum);
        begun += real_tokens(mask(t), count);
      }
      fold();
    }
    for (std::int64_t t = 0; t < sizes_.length; ++block) {
      const std::int64_t count = blocks_.tokens(t, sizes_.length);
      std::copy_n(s_.mean, bases_.rows, s_.kept + block * bases_.rows);
      s_.counts[block] = mean.count;
      t += count;
      if (all()) continue;
      load_tokens(t - count, count);
      add_rows<R, Bytes>(s_.tokens, bases_.width, count, bases_.width, s_.sum);
      begun += real_tokens(mask(t - count), count);
      if (each() || blocks_.ends(t)) fold();
    }
    return block;
  }

  ATTNBENCH_INLINE void back(std::int64_t block, std::int64_t t, std::int64_t count) const {
    const std::int64_t rows = whole_units(count), stride = bases_.rows, width = bases_.width;
    const std::int64_t before = s_.counts[block];
    std::copy_n(s_.kept + block * stride, stride, s_.mean);
    const bool alone = sizes_.alone && windows() && before == 0;
    const R read = sizes_.averaged ? R{1} / 2 : R{1};
    const auto to_2 = static_cast<R>(sizes_.scale * log2_of_e);
    load_memory_rows<T>(in_.query.at(b_, h_, t), in_.query.row_stride, nullptr, count,
                        sizes_.head_dim, to_2, s_.query, width);
    load_memory_rows<T>(out_.d_out.at(b_, h_, t), out_.d_out.row_stride, nullptr, count,
                        sizes_.head_dim, alone ? R{0} : read, s_.upstream, width);
    multiply<R, Bytes, false>(rows, stride, sizes_.head_dim, {s_.query, width, 1}, along_, stride,
                              s_.logits, stride);
    multiply<R, Bytes, false>(rows, stride, sizes_.head_dim, {s_.upstream, width, 1}, along_,
                              stride, s_.d_mean, stride);
    if (!all()) load_tokens(t, count);
    if (each()) {
      multiply<R, Bytes, false>(rows, stride, sizes_.head_dim, {s_.tokens, width, 1}, along_,
                                stride, s_.means, stride);
      RunningMean<R>{s_.mean, before}.template run<Bytes>(s_.means, mask(t), count, stride);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const R* const u = each() ? s_.means + i * stride : s_.mean;
      differentiate_read<R, Bytes>(s_.logits + i * stride, s_.d_mean + i * stride, u,
                                   s_.read + i * stride, bases_.fence, stride);
    }
    std::fill_n(s_.logits + count * stride, (rows - count) * stride, R{0});
    std::fill_n(s_.d_mean + count * stride, (rows - count) * stride, R{0});
    add_products(s_.read, s_.upstream, count);
    add_products(s_.logits, s_.query, count);
    multiply<R, Bytes, false>(rows, width, sizes_.bases, {s_.logits, stride, 1}, across_, width,
                              s_.product, width);
    for (std::int64_t i = 0; i < count; ++i) {
      T* const to = out_.d_query.at(b_, h_, t + i);
      for (std::int64_t d = 0; d < sizes_.head_dim; ++d) {
        narrow(to_2 * s_.product[i * width + d], to[d]);
      }
    }
    if (each()) return back_through_tokens(t, count, before);
    add_rows<R, Bytes>(s_.d_mean, stride, count, stride, s_.inside);
    if (windows()) back_through_window(t, count, before, alone ? R{1} : read);
  }

  ATTNBENCH_INLINE void back_through_tokens(std::int64_t t, std::int64_t count,
                                            std::int64_t before) const {
    run_back(t, count, before);
    add_products(s_.d_mean, s_.tokens, count);
    multiply<R, Bytes, false>(whole_units(count), bases_.width, sizes_.bases,
                              {s_.d_mean, bases_.rows, 1}, across_, bases_.width, s_.product,
                              bases_.width);
    store_tokens(s_.product, bases_.width, t, count, R{1} / 2);
  }

  /// Tokens of a window are read by the windows after it, and all by the same share.
  ATTNBENCH_INLINE void back_through_window(std::int64_t t, std::int64_t count, std::int64_t before,
                                            R own) const {
    std::fill_n(s_.sum, bases_.width, R{0});
    add_rows<R, Bytes>(s_.tokens, bases_.width, count, bases_.width, s_.sum);
    add_outer(s_.later, s_.sum);
    turn_back(s_.later);
    store_tokens(s_.back, 0, t, count, own);
    if (!blocks_.begins(t)) return;
    if (before > 0) {
      const R share = R{1} / static_cast<R>(before);
      for (std::int64_t j = 0; j < bases_.rows; ++j) s_.later[j] += share * s_.inside[j];
    }
    std::fill_n(s_.inside, bases_.rows, R{0});
  }

  /// All queries read all tokens, each by the same share.
  ATTNBENCH_INLINE void back_through_all() const {
    std::fill_n(s_.sum, bases_.width, R{0});
    std::int64_t count = 0;
    for (std::int64_t t = 0; t < sizes_.memory_length; t += memory_tokens) {
      const std::int64_t tokens = std::min(memory_tokens, sizes_.memory_length - t);
      load_tokens(t, tokens);
      add_rows<R, Bytes>(s_.tokens, bases_.width, tokens, bases_.width, s_.sum);
      count += real_tokens(mask(t), tokens);
    }
    const R share = count == 0 ? R{0} : R{1} / static_cast<R>(count);
    for (std::int64_t j = 0; j < bases_.rows; ++j) s_.spread[j] = share * s_.inside[j];
    add_outer(s_.spread, s_.sum);
    turn_back(s_.spread);
    for (std::int64_t t = 0; t < sizes_.memory_length; t += memory_tokens) {
      store_tokens(s_.back, 0, t, std::min(memory_tokens, sizes_.memory_length - t), R{1} / 2);
    }
  }
};

template <class T>
struct Call {
  const LavoSizes& sizes;
  const LavoArguments<T>& in;
  const LavoGradients<T>& out;
  MemoryGradientShared<Compute<T>> shared;
};

template <class T>
void head_baseline(const Call<T>& call, const MemoryGradientScratch<Compute<T>>& s, std::int64_t b,
                   std::int64_t h) {
  Sweep<T, baseline_bytes>(call.sizes, call.in, call.out, call.shared, s, b, h).run();
}
template <class T>
ATTNBENCH_AVX2 void head_avx2(const Call<T>& call, const MemoryGradientScratch<Compute<T>>& s,
                              std::int64_t b, std::int64_t h) {
  Sweep<T, avx2_bytes>(call.sizes, call.in, call.out, call.shared, s, b, h).run();
}
template <class T>
ATTNBENCH_AVX512 void head_avx512(const Call<T>& call, const MemoryGradientScratch<Compute<T>>& s,
                                  std::int64_t b, std::int64_t h) {
  Sweep<T, avx512_bytes>(call.sizes, call.in, call.out, call.shared, s, b, h).run();
}

/// The bases' gradient, the batch rows added up in order.
template <class T>
void add_batch_rows(const Call<T>& call) {
  using R = Compute<T>;
  const auto& [sizes, in, out, shared] = call;
  const std::int64_t each = shared.units * shared.bases.width;
  for (std::int64_t h = 0; h < sizes.heads; ++h) {
    for (std::int64_t j = 0; j < sizes.bases; ++j) {
      for (std::int64_t d = 0; d < sizes.head_dim; ++d) {
        R sum = 0;
        for (std::int64_t b = 0; b < sizes.batch; ++b) {
          sum += shared.d_bases[(b * sizes.heads + h) * each + j * shared.bases.width + d];
        }
        out.d_bases[(h * sizes.bases + j) * sizes.head_dim + d] = sum;
      }
    }
  }
}

/// The bytes of what is shared, and of what one worker holds.
template <class R>
std::pair<std::size_t, std::size_t> bytes_of(const LavoSizes& sizes) {
  Workspace shared, own;
  const MemoryGradientShared<R> laid(shared, sizes);
  MemoryGradientScratch<R>(own, sizes, laid.bases);
  return {shared.used(), own.used()};
}

}  // namespace

template <class T>
std::size_t lavo_backward_bytes(const LavoSizes& sizes, int threads) {
  const auto [shared, own] = bytes_of<Compute<T>>(sizes);
  return shared + static_cast<std::size_t>(threads) * own;
}

template <class T>
void lavo_backward(const LavoSizes& sizes, const LavoArguments<T>& arguments,
                   const LavoGradients<T>& gradients, ThreadTeam& team, void* workspace,
                   std::size_t workspace_bytes) {
  using R = Compute<T>;
  Workspace space(workspace, workspace_bytes);
  const Call<T> call{sizes, arguments, gradients, {space, sizes}};
  const auto each = static_cast<std::int64_t>(bytes_of<R>(sizes).second);
  std::byte* const scratch = space.take<std::byte>(each * team.size());
  const auto run = pick(head_baseline<T>, head_avx2<T>, head_avx512<T>);
  call.shared.bases.set_fence();
  for (std::int64_t h = 0; h < sizes.heads; ++h) {
    call.shared.bases.template pack<T, baseline_bytes>(arguments.bases, h);
  }
  share(team, sizes.batch * sizes.heads, [&](int worker, std::int64_t head) {
    Workspace own(scratch + worker * each, static_cast<std::size_t>(each));
    const MemoryGradientScratch<R> s(own, sizes, call.shared.bases);
    run(call, s, head / sizes.heads, head % sizes.heads);
  });
  add_batch_rows(call);
}

#define ATTNBENCH_INSTANTIATE(T)                                            \
  template std::size_t lavo_backward_bytes<T>(const LavoSizes&, int);       \
  template void lavo_backward<T>(const LavoSizes&, const LavoArguments<T>&, \
                                 const LavoGradients<T>&, ThreadTeam&, void*, std::size_t);
ATTNBENCH_FOR_TYPES(ATTNBENCH_INSTANTIATE)

}  // namespace attnbench::kernels
