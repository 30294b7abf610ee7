// A problem of the running memory with its memory, its values by the definition in double, and the
// kinds that both the CPU and the device are tested with.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "attention/kernels/lavo.hpp"
#include "tests/attention/kernels/arrays.hpp"
#include "tests/attention/kernels/closeness.hpp"

namespace attnbench::kernels::test {

inline LavoSizes sized(std::int64_t length, std::int64_t bases, std::int64_t dim,
                       std::int64_t heads = 2) {
  LavoSizes sizes;
  sizes.batch = 2;
  sizes.heads = heads;
  sizes.length = sizes.memory_length = length;
  sizes.bases = bases;
  sizes.head_dim = dim;
  sizes.scale = 2 / static_cast<double>(dim);  // weights that are not all but 0 or 1
  return sizes;
}

/// Everything that is computed differently, of the sizes of `each`.
inline std::vector<LavoSizes> kinds(const LavoSizes& each) {
  LavoSizes all = each;
  all.order = MemoryOrder::all;
  LavoSizes cross = all;
  cross.memory_length += 70;
  LavoSizes averaged = all;
  averaged.averaged = true;
  LavoSizes windows = averaged;
  windows.order = MemoryOrder::windows;
  windows.window = 7;
  LavoSizes wide = windows;
  wide.window = 130;
  wide.alone = true;
  LavoSizes begun = windows;
  begun.phase = 3;
  begun.averaged = false;
  LavoSizes single = windows;
  single.window = 1;
  LavoSizes single_alone = single;
  single_alone.alone = true;
  LavoSizes tiles = begun;
  tiles.window = 40;
  tiles.phase = 39;
  return {each, all, cross, averaged, windows, wide, begun, single, single_alone, tiles};
}

template <class T>
struct MemoryProblem {
  using R = Compute<T>;
  LavoSizes sizes;
  std::vector<T> query, tokens, bases, d_out, out, d_query, d_tokens;
  std::vector<R> d_bases;
  std::vector<std::uint8_t> mask;

  explicit MemoryProblem(const LavoSizes& s, double spread = 1, bool masked = false) : sizes(s) {
    if (sizes.memory_length == 0) sizes.memory_length = sizes.length;
    std::mt19937 engine(17);
    const std::int64_t heads = s.batch * s.heads;
    query = drawn<T>(engine, heads * sizes.length * s.head_dim, spread);
    tokens = drawn<T>(engine, heads * sizes.memory_length * s.head_dim, spread);
    bases = drawn<T>(engine, s.heads * s.bases * s.head_dim, 1);
    d_out = drawn<T>(engine, heads * sizes.length * s.head_dim, 1);
    out = d_out;
    d_query = query;
    d_tokens = tokens;
    d_bases.resize(bases.size());
    if (masked) mask = drawn_mask(engine, s.batch * sizes.memory_length);
  }
  /// The same numbers, as they are stored, in double.
  MemoryProblem<double> widened() const {
    MemoryProblem<double> copy(sizes);
    copy.query = in_double(query);
    copy.tokens = in_double(tokens);
    copy.bases = in_double(bases);
    copy.d_out = in_double(d_out);
    copy.mask = mask;
    return copy;
  }

  template <class U>
  Rows<U> rows(std::vector<T>& x, std::int64_t length, std::int64_t begin = 0) const {
    auto rows = rows_of<U>(x, sizes.heads, length, sizes.head_dim);
    rows.data += begin * sizes.head_dim;
    return rows;
  }
  /// Tokens from `begin` on.
  LavoArguments<T> arguments(std::int64_t begin = 0) {
    LavoArguments<T> a;
    a.query = rows<const T>(query, sizes.length, begin);
    a.tokens = rows<const T>(tokens, sizes.memory_length, begin);
    a.bases = rows<const T>(bases, sizes.bases);
    a.out = rows<T>(out, sizes.length, begin);
    if (!mask.empty()) a.key_mask = mask.data() + begin;
    a.mask_stride = sizes.memory_length;
    return a;
  }
  static void run(const LavoSizes& sizes, const LavoArguments<T>& arguments, int threads) {
    on_workspace(threads, lavo_forward_bytes<T>(sizes, threads),
                 [&](ThreadTeam& team, void* space, std::size_t bytes) {
                   lavo_forward(sizes, arguments, team, space, bytes);
                 });
  }
  void forward(int threads) { run(sizes, arguments(), threads); }
  void backward(int threads) {
    const LavoGradients<T> gradients{rows<const T>(d_out, sizes.length),
                                     rows<T>(d_query, sizes.length),
                                     rows<T>(d_tokens, sizes.memory_length), d_bases.data()};
    on_workspace(threads, lavo_backward_bytes<T>(sizes, threads),
                 [&](ThreadTeam& team, void* space, std::size_t bytes) {
                   lavo_backward(sizes, arguments(), gradients, team, space, bytes);
                 });
  }

  /// Tokens [0, n) that query t reads.
  std::int64_t remembered(std::int64_t t) const {
    if (sizes.order == MemoryOrder::all) return sizes.memory_length;
    if (sizes.order == MemoryOrder::each_token) return t + 1;
    const std::int64_t place = (sizes.phase + t) / sizes.window * sizes.window - sizes.phase;
    return std::max<std::int64_t>(0, place);
  }

  std::vector<double> define() const {
    const auto dim = static_cast<std::size_t>(sizes.head_dim);
    std::vector<double> y(out.size(), 0.0);
    for (std::int64_t head = 0; head < sizes.batch * sizes.heads; ++head) {
      const T* x = tokens.data() + head * sizes.memory_length * sizes.head_dim;
      const T* basis = bases.data() + head % sizes.heads * sizes.bases * sizes.head_dim;
      for (std::int64_t t = 0; t < sizes.length; ++t) {
        std::vector<double> mean(dim, 0.0);
        double count = 0;
        for (std::int64_t s = 0; s < remembered(t); ++s) {
          const std::int64_t place = head / sizes.heads * sizes.memory_length + s;
          if (!mask.empty() && mask[static_cast<std::size_t>(place)] == 0) continue;
          ++count;
          for (std::size_t d = 0; d < dim; ++d) mean[d] += widen(x[s * sizes.head_dim + d]);
        }
        for (double& each : mean) each /= std::max(1.0, count);
        const T* q = query.data() + (head * sizes.length + t) * sizes.head_dim;
        std::vector<double> u, logits;
        for (std::int64_t j = 0; j < sizes.bases; ++j) {
          double along = 0, asked = 0;
          for (std::size_t d = 0; d < dim; ++d) {
            along += widen(basis[j * sizes.head_dim + d]) * mean[d];
            asked += widen(basis[j * sizes.head_dim + d]) * double{widen(q[d])};
          }
          u.push_back(along);
          logits.push_back(sizes.scale * asked * along);
        }
        const double most = *std::max_element(logits.begin(), logits.end());
        double total = 0;
        for (double& each : logits) total += each = std::exp(each - most);
        double* to = y.data() + (head * sizes.length + t) * sizes.head_dim;
        for (std::size_t j = 0; j < u.size(); ++j) {
          for (std::size_t d = 0; d < dim; ++d) {
            to[d] += logits[j] / total * u[j] * widen(basis[j * dim + d]);
          }
        }
        if (!sizes.averaged) continue;
        for (std::size_t d = 0; d < dim; ++d) {
          const double own = widen(x[t * sizes.head_dim + static_cast<std::int64_t>(d)]);
          const bool alone = sizes.alone && count == 0;
          to[d] = alone ? own : (own + to[d]) / 2;
        }
      }
    }
    return y;
  }
};

/// The gradients of `found` against those in double.
template <class T>
void check_gradients(const MemoryProblem<T>& found, const MemoryProblem<double>& exact) {
  // One basis has the weight 1 whatever is asked, and there may be nothing to read.
  const auto& large = norm(exact.d_bases) > norm(exact.d_tokens) ? exact.d_bases : exact.d_tokens;
  CHECK(gradient_error(found.d_query, exact.d_query, large) < Bars<T>::backward);
  CHECK(gradient_error(found.d_tokens, exact.d_tokens, large) < Bars<T>::backward);
  CHECK(gradient_error(found.d_bases, exact.d_bases, large) < Bars<T>::backward);
}

}  // namespace attnbench::kernels::test
