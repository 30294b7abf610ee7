// The running memory on the device, for tests: a problem and its arrays.
#pragma once

#include <utility>

#include "attention/kernels/cuda/lavo/lavo.hpp"
#include "tests/attention/kernels/cuda/device_array.hpp"
#include "tests/attention/kernels/lavo_problem.hpp"

namespace attnbench::kernels::cuda::test {

using kernels::test::sized;

/// A problem with its arrays on the device.
template <class T>
struct MemoryOnDevice {
  kernels::test::MemoryProblem<T> problem;
  DeviceArray<T> query, tokens, bases, d_out;
  DeviceArray<std::uint8_t> mask;

  explicit MemoryOnDevice(kernels::test::MemoryProblem<T> p)
      : problem(std::move(p)),
        query(problem.query),
        tokens(problem.tokens),
        bases(problem.bases),
        d_out(problem.d_out),
        mask(problem.mask) {}

  Rows<const T> read(const DeviceArray<T>& x, std::int64_t length, std::int64_t begin = 0) const {
    auto rows = written(x, length, begin);
    return {rows.data, rows.batch_stride, rows.head_stride, rows.row_stride};
  }
  Rows<T> written(const DeviceArray<T>& x, std::int64_t length, std::int64_t begin = 0) const {
    auto rows = x.template rows<T>(problem.sizes.heads, length, problem.sizes.head_dim);
    rows.data += begin * problem.sizes.head_dim;
    return rows;
  }
  /// Tokens from `begin` on, without results.
  LavoArguments<T> arguments(std::int64_t begin = 0) const {
    const LavoSizes& s = problem.sizes;
    LavoArguments<T> a;
    a.query = read(query, s.length, begin);
    a.tokens = read(tokens, s.memory_length, begin);
    a.bases = read(bases, s.bases);
    if (!problem.mask.empty()) a.key_mask = mask.data() + begin;
    a.mask_stride = s.memory_length;
    return a;
  }
  static void run(const LavoSizes& sizes, const LavoArguments<T>& arguments, Stream stream = {}) {
    const std::size_t bytes = lavo_forward_bytes<T>(sizes);
    const DeviceArray<unsigned char> space(bytes);
    lavo_forward(sizes, arguments, stream, space.data(), bytes);
    synchronize(stream);
    space.values();  // throws where something was written past the end
  }
  std::vector<T> forward() const {
    DeviceArray<T> out(problem.out.size());
    auto a = arguments();
    a.out = written(out, problem.sizes.length);
    run(problem.sizes, a);
    return out.values();
  }
  /// The gradients into `to`, of which nothing else is looked at.
  void backward(kernels::test::MemoryProblem<T>& to) const {
    const LavoSizes& s = problem.sizes;
    DeviceArray<T> d_query(problem.query.size()), d_tokens(problem.tokens.size());
    DeviceArray<float> d_bases(problem.bases.size());
    const std::size_t bytes = lavo_backward_bytes<T>(s);
    const DeviceArray<unsigned char> space(bytes);
    lavo_backward<T>(s, arguments(),
                     {read(d_out, s.length), written(d_query, s.length),
                      written(d_tokens, s.memory_length), d_bases.data()},
                     {}, space.data(), bytes);
    synchronize();
    space.values();
    to.d_query = d_query.values();
    to.d_tokens = d_tokens.values();
    to.d_bases = d_bases.values();
  }
};

}  // namespace attnbench::kernels::cuda::test
