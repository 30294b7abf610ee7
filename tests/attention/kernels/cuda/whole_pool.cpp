#include "attention/kernels/cuda/whole_pool.hpp"

#include <cmath>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "tests/attention/kernels/cuda/recurrent_device.hpp"
#include "tests/attention/kernels/whole_pool_problem.hpp"

namespace attnbench::kernels::cuda::test {
namespace {

using kernels::test::Directed;
using kernels::test::gradient_error;
using kernels::test::in_double;
using kernels::test::pool_kinds;
using kernels::test::relative_rms;
using kernels::test::sized;
using kernels::test::stored;
using kernels::test::WholePool;

/// fp16 averages are made as bf16.
template <class T>
constexpr double pool_bar = bar<T>;
template <>
inline constexpr double pool_bar<Half> = bar<BFloat16>;

/// Rows of a problem on the device, `gap` numbers from one to the next.
template <class T>
struct Spaced {
  DeviceArray<T> numbers;
  Rows<T> rows;

  Spaced(const std::vector<T>& dense, std::int64_t heads, std::int64_t length, std::int64_t width,
         std::int64_t gap)
      : numbers(spread(dense, width, gap)),
        rows{numbers.data(), heads * length * (width + gap), length * (width + gap), width + gap} {}

  static std::vector<T> spread(const std::vector<T>& dense, std::int64_t width, std::int64_t gap) {
    std::vector<T> to;
    for (std::size_t i = 0; i < dense.size(); ++i) {
      to.push_back(dense[i]);
      if (static_cast<std::int64_t>(i) % width != width - 1) continue;
      for (std::int64_t j = 0; j < gap; ++j) to.push_back(stored<T>(NAN));
    }
    return to;
  }
  Rows<const T> read() const {
    return {rows.data, rows.batch_stride, rows.head_stride, rows.row_stride};
  }
  /// What was written, dense again; throws where something was written between rows.
  std::vector<T> written(std::int64_t width) const {
    const std::vector<T> all = numbers.values();
    std::vector<T> dense;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto column = static_cast<std::int64_t>(i) % rows.row_stride;
      if (column < width) {
        dense.push_back(all[i]);
      } else if (!std::isnan(widen(all[i]))) {
        throw std::logic_error("a kernel wrote between rows");
      }
    }
    return dense;
  }
};

/// A problem with its arrays on the device.
template <class T>
struct PoolOnDevice {
  WholePool<T> problem;
  std::int64_t gap;
  Spaced<T> query, scores, values;
  DeviceArray<std::uint8_t> mask;

  explicit PoolOnDevice(WholePool<T> p, std::int64_t between = 0)
      : problem(std::move(p)),
        gap(between),
        query(made(problem.query, problem.sizes.length, problem.sizes.latents)),
        scores(made(problem.scores, problem.sizes.key_length, problem.sizes.latents)),
        values(made(problem.values, problem.sizes.key_length, problem.sizes.value_dim)),
        mask(problem.mask) {}

  Spaced<T> made(const std::vector<T>& x, std::int64_t length, std::int64_t width) const {
    return {x, problem.sizes.heads, length, width, gap};
  }
  Spaced<T> unwritten(std::size_t count, std::int64_t length, std::int64_t width) const {
    return made(std::vector<T>(count, stored<T>(NAN)), length, width);
  }
  WholePoolArguments<T> arguments() const {
    WholePoolArguments<T> a;
    a.query = query.read();
    a.scores = scores.read();
    a.values = values.read();
    if (!problem.mask.empty()) a.key_mask = mask.data();
    a.mask_stride = problem.sizes.key_length;
    return a;
  }
  std::vector<T> forward() const {
    const auto& sizes = problem.sizes;
    const Spaced<T> out = unwritten(problem.out.size(), sizes.length, sizes.value_dim);
    auto a = arguments();
    a.out = out.rows;
    const std::size_t bytes = whole_pool_forward_bytes<T>(sizes);
    const DeviceArray<unsigned char> space(bytes);
    whole_pool_forward(sizes, a, {}, space.data(), bytes);
    synchronize();
    space.values();  // throws where something was written past the end
    return out.written(sizes.value_dim);
  }
  WholePool<T> backward() const {
    const auto& sizes = problem.sizes;
    const Spaced<T> d_out = made(problem.d_out, sizes.length, sizes.value_dim);
    const Spaced<T> d_query = unwritten(problem.query.size(), sizes.length, sizes.latents);
    const Spaced<T> d_scores = unwritten(problem.scores.size(), sizes.key_length, sizes.latents);
    const Spaced<T> d_values = unwritten(problem.values.size(), sizes.key_length, sizes.value_dim);
    const std::size_t bytes = whole_pool_backward_bytes<T>(sizes);
    const DeviceArray<unsigned char> space(bytes);
    const PrefixPoolGradients<T> gradients{d_out.read(), d_query.rows, d_scores.rows,
                                           d_values.rows};
    whole_pool_backward(sizes, arguments(), gradients, {}, space.data(), bytes);
    synchronize();
    space.values();
    WholePool<T> found = problem;
    found.d_query = d_query.written(sizes.latents);
    found.d_scores = d_scores.written(sizes.latents);
    found.d_values = d_values.written(sizes.value_dim);
    return found;
  }
};

/// Values against the definition.
template <class T>
void compare(const WholePoolSizes& sizes, double spread = 1, bool masked = false,
             std::int64_t gap = 0) {
  CAPTURE(static_cast<int>(sizes.query), sizes.length, sizes.key_length, sizes.latents,
          sizes.value_dim, spread, masked, gap);
  const PoolOnDevice<T> device(WholePool<T>(sizes, spread, masked), gap);
  CHECK(relative_rms(device.forward(), device.problem.define()) < pool_bar<T>);
}

/// Gradients against those of the CPU's kernel in double, which its tests trace back to the
/// definition.
template <class T>
void compare_gradients(const WholePool<T>& problem, std::int64_t gap = 0) {
  const auto& sizes = problem.sizes;
  CAPTURE(static_cast<int>(sizes.query), sizes.length, sizes.key_length, sizes.latents,
          sizes.value_dim, problem.mask.size(), gap);
  const WholePool<T> found = PoolOnDevice<T>(problem, gap).backward();
  auto exact = problem.widened();
  exact.backward(1);
  const auto& large = exact.d_values;
  CHECK(gradient_error(found.d_query, exact.d_query, large) < gradient_bar<T>);
  CHECK(gradient_error(found.d_scores, exact.d_scores, large) < gradient_bar<T>);
  CHECK(gradient_error(found.d_values, exact.d_values, large) < gradient_bar<T>);
}

/// Logits made of tokens in the kernel; `gap` as above.
template <class T>
std::vector<T> forward_directed(const Directed<T>& problem, std::int64_t gap = 0,
                                bool shared = false) {
  const WholePool<T>& given = problem.given;
  const auto& sizes = given.sizes;
  const auto made = [&](const std::vector<T>& x, std::int64_t length, std::int64_t width) {
    return Spaced<T>(x, sizes.heads, length, width, gap);
  };
  const Spaced<T> query = made(given.query, sizes.length, problem.dim);
  const Spaced<T> scores = made(given.scores, sizes.key_length, problem.dim);
  const Spaced<T> values = made(given.values, sizes.key_length, sizes.value_dim);
  const Spaced<T> out =
      made(std::vector<T>(given.out.size(), stored<T>(NAN)), sizes.length, sizes.value_dim);
  const DeviceArray<float> directions(problem.directions);
  const DeviceArray<std::uint8_t> mask(given.mask);
  WholePoolArguments<T> a;
  a.query = query.read();
  a.scores = scores.read();
  a.values = values.read();
  a.out = out.rows;
  a.directions = directions.template rows<const float>(sizes.heads, sizes.latents, problem.dim);
  if (shared) a.directions.head_stride = 0;
  if (!given.mask.empty()) a.key_mask = mask.data();
  a.mask_stride = sizes.key_length;
  const std::size_t bytes = whole_pool_forward_bytes<T>(sizes);
  const DeviceArray<unsigned char> space(bytes);
  whole_pool_forward(sizes, a, {}, space.data(), bytes);
  synchronize();
  space.values();
  return out.written(sizes.value_dim);
}

WholePoolSizes one_head(PoolQuery kind, std::int64_t length, std::int64_t keys,
                        std::int64_t latents, std::int64_t dim) {
  WholePoolSizes sizes = sized(kind, length, keys, latents, dim);
  sizes.batch = sizes.heads = 1;
  return sizes;
}

}  // namespace

TEMPLATE_TEST_CASE("cuda whole pool: values at awkward sizes", "", float, BFloat16, Half) {
  NEEDS_DEVICE();
  for (const PoolQuery kind : pool_kinds) {
    for (const auto& [length, keys] :
         {std::pair{1, 1}, {3, 70}, {65, 64}, {130, 33}, {16, 3}, {17, 129}}) {
      compare<TestType>(sized(kind, length, keys, 7, 43), 1, length % 2 == 0);
    }
    for (const int latents : {1, 16, 64, 65, 128, 130, 300}) {
      compare<TestType>(one_head(kind, 33, 70, latents, 24), 1, latents % 2 == 0);
    }
    for (const int dim : {1, 8, 64, 65, 80, 128, 200}) {
      compare<TestType>(one_head(kind, 20, 70, 40, dim), 3);  // averages that do not cancel
    }
  }
  compare<TestType>(one_head(PoolQuery::logits_and_normaliser, 20, 40, 1024, 16));
  compare<TestType>(one_head(PoolQuery::logits, 20, 40, 1700, 8));  // no block can hold these
}

TEMPLATE_TEST_CASE("cuda whole pool: many tokens, in segments and tiles", "", float, BFloat16,
                   Half) {
  NEEDS_DEVICE();
  for (const PoolQuery kind : pool_kinds) {
    compare<TestType>(one_head(kind, 40, 1500, 16, 24), 1, true);
    compare<TestType>(one_head(kind, 1500, 40, 16, 24));
    compare<TestType>(one_head(kind, 20, 700, 140, 72), 1, true);
  }
}

TEMPLATE_TEST_CASE("cuda whole pool: rows may lie anywhere", "", float, BFloat16, Half) {
  NEEDS_DEVICE();
  for (const PoolQuery kind : pool_kinds) {
    for (const std::int64_t gap : {1, 8}) {
      compare<TestType>(sized(kind, 35, 70, 16, 40), 1, true, gap);
      compare_gradients(WholePool<TestType>(sized(kind, 35, 70, 16, 40), 1, true), gap);
    }
  }
}

TEMPLATE_TEST_CASE("cuda whole pool: gradients", "", float, BFloat16, Half) {
  NEEDS_DEVICE();
  for (const PoolQuery kind : pool_kinds) {
    for (const bool masked : {false, true}) {
      for (const auto& [length, keys, latents, dim] : {std::tuple{1, 1, 5, 3},
                                                       {3, 70, 7, 43},
                                                       {65, 64, 5, 4},
                                                       {200, 130, 3, 2},
                                                       {20, 24, 70, 5},
                                                       {20, 24, 3, 70}}) {
        compare_gradients(WholePool<TestType>(sized(kind, length, keys, latents, dim), 1, masked));
      }
    }
    compare_gradients(WholePool<TestType>(one_head(kind, 700, 900, 4, 3)));
    if (kind != PoolQuery::weights) {
      compare_gradients(WholePool<TestType>(sized(kind, 40, 50, 8, 6), 15));
    }
  }
}

TEMPLATE_TEST_CASE("cuda whole pool: hidden tokens may hold anything, and a hidden row gives 0", "",
                   float, BFloat16, Half) {
  NEEDS_DEVICE();
  using T = TestType;
  for (const PoolQuery kind : pool_kinds) {
    WholePool<T> problem(sized(kind, 20, 70, 6, 16), 1, true);
    std::fill_n(problem.mask.begin(), 70, std::uint8_t{0});
    const auto expected = problem.define();
    for (std::size_t row = 0; row < 4 * 70; ++row) {
      if (problem.mask[row / 140 * 70 + row % 70] != 0) continue;
      std::fill_n(problem.scores.begin() + static_cast<std::ptrdiff_t>(row * 6), 6, stored<T>(NAN));
      std::fill_n(problem.values.begin() + static_cast<std::ptrdiff_t>(row * 16), 16,
                  stored<T>(NAN));
    }
    const PoolOnDevice<T> device(problem);
    const std::vector<T> out = device.forward();
    CHECK(relative_rms(out, expected) < pool_bar<T>);
    bool zero = true;
    for (std::size_t i = 0; i < out.size() / 2; ++i) zero = zero && widen(out[i]) == 0;
    CHECK(zero);
    const WholePool<T> found = device.backward();
    bool finite = true, hidden = true;
    for (const T each : found.d_query) finite = finite && std::isfinite(widen(each));
    for (std::size_t row = 0; row < 4 * 70; ++row) {
      const bool seen = problem.mask[row / 140 * 70 + row % 70] != 0;
      for (std::size_t l = 0; l < 6; ++l) {
        const float each = widen(found.d_scores[row * 6 + l]);
        finite = finite && std::isfinite(each);
        hidden = hidden && (seen || each == 0);
      }
      for (std::size_t d = 0; d < 16; ++d) {
        const float each = widen(found.d_values[row * 16 + d]);
        finite = finite && std::isfinite(each);
        hidden = hidden && (seen || each == 0);
      }
    }
    CHECK(finite);
    CHECK(hidden);
  }
}

TEMPLATE_TEST_CASE("cuda whole pool: a latent that sees no token weighs nothing", "", float,
                   BFloat16, Half) {
  NEEDS_DEVICE();
  using T = TestType;
  for (const PoolQuery kind : pool_kinds) {
    WholePool<T> problem(one_head(kind, 20, 70, 6, 16));
    for (std::size_t s = 0; s < 70; ++s) problem.scores[s * 6 + 2] = stored<T>(-INFINITY);
    const PoolOnDevice<T> device(problem);
    CHECK(relative_rms(device.forward(), problem.define()) < pool_bar<T>);
    const WholePool<T> found = device.backward();
    bool fine = true;
    for (std::size_t s = 0; s < 70; ++s) fine = fine && widen(found.d_scores[s * 6 + 2]) == 0;
    for (const T each : found.d_query) fine = fine && std::isfinite(widen(each));
    for (const T each : found.d_values) fine = fine && std::isfinite(widen(each));
    CHECK(fine);
  }
}

TEMPLATE_TEST_CASE("cuda whole pool: huge logits and scores that rise by 30 a token stay right", "",
                   float, BFloat16, Half) {
  NEEDS_DEVICE();
  using T = TestType;
  for (const PoolQuery kind : pool_kinds) {
    for (const double slope : {30.0, -30.0}) {
      for (const int latents : {4, 70}) {
        CAPTURE(static_cast<int>(kind), slope, latents);
        WholePool<T> problem(one_head(kind, 50, 197, latents, 8));
        for (std::size_t i = 0; i < problem.scores.size(); ++i) {
          const auto t = static_cast<double>(i / static_cast<std::size_t>(latents));
          if (i % 3 == 0) {
            problem.scores[i] = stored<T>(double{widen(problem.scores[i])} + slope * t);
          }
        }
        problem.scores[40] = stored<T>(1000);
        if (kind != PoolQuery::weights) {
          for (std::size_t i = 0; i < problem.query.size(); i += 5) {
            problem.query[i] = stored<T>(double{widen(problem.query[i])} * 300);
          }
        }
        const PoolOnDevice<T> device(problem);
        CHECK(relative_rms(device.forward(), problem.define()) < std::max(pool_bar<T>, 2e-4));
        const WholePool<T> found = device.backward();
        bool finite = true;
        for (const T each : found.d_scores) finite = finite && std::isfinite(widen(each));
        for (const T each : found.d_query) finite = finite && std::isfinite(widen(each));
        CHECK(finite);
      }
    }
    if (kind != PoolQuery::weights) compare<T>(one_head(kind, 50, 97, 4, 8), 15);
    WholePoolSizes below = one_head(kind, 40, 97, 9, 8);
    below.scale = -0.7;
    compare<T>(below);
  }
}

TEMPLATE_TEST_CASE("cuda whole pool: logits may be made of tokens and directions", "", BFloat16,
                   Half) {
  NEEDS_DEVICE();
  using T = TestType;
  for (const PoolQuery kind : {PoolQuery::logits, PoolQuery::logits_and_normaliser}) {
    for (const bool half_square : {false, true}) {
      for (const auto& [length, keys, latents, dim, width] : {std::tuple{1, 1, 1, 1, 3},
                                                              {65, 74, 7, 5, 18},
                                                              {40, 300, 140, 16, 64},
                                                              {140, 40, 70, 64, 24},
                                                              {30, 70, 20, 100, 40},
                                                              {30, 70, 20, 33, 150}}) {
        CAPTURE(static_cast<int>(kind), half_square, length, keys, latents, dim, width);
        auto sizes = sized(kind, length, keys, latents, width);
        sizes.batch = latents < 20 ? 2 : 1;
        sizes.scale = 0.5;
        const bool masked = keys != 1;
        const Directed<T> problem(sizes, dim, half_square, masked);
        const std::int64_t gap = width == 18 ? 1 : (width == 24 ? 8 : 0);
        CHECK(relative_rms(forward_directed(problem, gap), problem.define()) < pool_bar<T>);
      }
    }
  }
}

TEMPLATE_TEST_CASE("cuda whole pool: directions keep to hidden tokens, shared heads and ramps", "",
                   BFloat16, Half) {
  NEEDS_DEVICE();
  using T = TestType;
  auto sizes = one_head(PoolQuery::logits_and_normaliser, 40, 900, 70, 16);
  sizes.scale = 0.5;
  Directed<T> problem(sizes, 12, true, true);
  std::fill_n(problem.given.mask.begin(), 130, std::uint8_t{0});
  const auto expected = problem.define();
  const std::vector<T> clean = forward_directed(problem);
  CHECK(relative_rms(clean, expected) < pool_bar<T>);
  for (std::size_t t = 0; t < 900; ++t) {
    if (problem.given.mask[t] != 0) continue;
    std::fill_n(problem.given.scores.begin() + static_cast<std::ptrdiff_t>(12 * t), 12,
                stored<T>(NAN));
    std::fill_n(problem.given.values.begin() + static_cast<std::ptrdiff_t>(16 * t), 16,
                stored<T>(NAN));
  }
  CHECK(in_double(forward_directed(problem)) == in_double(clean));
  std::fill(problem.given.mask.begin(), problem.given.mask.end(), std::uint8_t{0});
  bool zero = true;
  for (const T each : forward_directed(problem)) zero = zero && widen(each) == 0;
  CHECK(zero);
  Directed<T> same(sized(PoolQuery::logits, 20, 70, 9, 16), 12, true, true);
  std::copy_n(same.directions.begin(), 9 * 12, same.directions.begin() + 9 * 12);
  CHECK(relative_rms(forward_directed(same, 0, true), same.define()) < pool_bar<T>);
  // Logits so large that directions of 16 bits would not do.
  Directed<T> large(one_head(PoolQuery::logits_and_normaliser, 40, 150, 20, 16), 16, true, false);
  for (float& each : large.directions) each *= 6;
  for (T& each : large.given.scores) each = stored<T>(3 * double{widen(each)});
  for (T& each : large.given.query) each = stored<T>(3 * double{widen(each)});
  CHECK(relative_rms(forward_directed(large), large.define()) < pool_bar<T>);
  // Logits that rise by 30 a token along the first direction's axis, and of hundreds elsewhere.
  Directed<T> ramp(one_head(PoolQuery::logits, 40, 150, 5, 16), 4, false, false);
  for (std::size_t t = 0; t < 150; ++t) {
    ramp.given.scores[4 * t] = stored<T>(double(t));
    ramp.given.scores[4 * t + 1] = stored<T>(20 * double{widen(ramp.given.scores[4 * t + 1])});
  }
  for (std::size_t l = 0; l < 5; ++l) ramp.directions[4 * l] = 30 * (l % 2 == 0 ? 1.F : -1.F);
  CHECK(relative_rms(forward_directed(ramp), ramp.define()) < pool_bar<T>);
}

TEMPLATE_TEST_CASE("cuda whole pool: the same bits each time", "", float, BFloat16) {
  NEEDS_DEVICE();
  const PoolOnDevice<TestType> device(
      WholePool<TestType>(sized(PoolQuery::logits, 100, 700, 20, 24)));
  const auto bits = [](const std::vector<TestType>& x) {
    std::vector<double> y;
    for (const TestType each : x) y.push_back(double{widen(each)});
    return y;
  };
  CHECK(bits(device.forward()) == bits(device.forward()));
  CHECK(bits(device.backward().d_scores) == bits(device.backward().d_scores));
}

TEST_CASE("cuda whole pool: what cannot be done is refused with the reason") {
  WholePoolSizes sizes = sized(PoolQuery::logits, 8, 8, 4097, 8);
  CHECK(whole_pool_refusal(sizes).find("4096 latents") != std::string::npos);
  CHECK_THROWS_AS(whole_pool_forward_bytes<BFloat16>(sizes), std::logic_error);
  CHECK_THROWS_AS(whole_pool_backward_bytes<float>(sizes), std::logic_error);
  sizes.latents = 4096;
  CHECK(whole_pool_refusal(sizes).empty());
  sizes.directions.dim = 129;
  CHECK(whole_pool_refusal(sizes).find("128 numbers") != std::string::npos);
  sizes.directions.dim = 128;
  CHECK(whole_pool_refusal(sizes).empty());
  CHECK_THROWS_AS(whole_pool_forward_bytes<float>(sizes), std::logic_error);
  CHECK_THROWS_AS(whole_pool_backward_bytes<BFloat16>(sizes), std::logic_error);
  sizes.query = PoolQuery::weights;
  CHECK(whole_pool_refusal(sizes).find("weights") != std::string::npos);
  sizes.query = PoolQuery::logits;
  sizes.directions.dim = 0;
  sizes.key_length = -1;
  CHECK(whole_pool_refusal(sizes).find("negative") != std::string::npos);
  sizes.key_length = (std::int64_t{1} << 30) + 1;
  CHECK(whole_pool_refusal(sizes).find("2^30") != std::string::npos);
  sizes.key_length = 8;
  sizes.batch = std::int64_t{1} << 26;
  CHECK(whole_pool_refusal(sizes).find("heads") != std::string::npos);
}

}  // namespace attnbench::kernels::cuda::test
