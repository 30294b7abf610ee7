// The pool whose logits are made of tokens in the kernel, on the device.
#include <tuple>

#include "tests/attention/kernels/cuda/whole_pool_device.hpp"

namespace attnbench::kernels::cuda::test {
namespace {

using kernels::test::Directed;

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

}  // namespace

TEMPLATE_TEST_CASE("cuda whole pool: logits may be made of tokens and directions", "", BFloat16,
                   Half) {
  NEEDS_DEVICE();
  using T = TestType;
  for (const PoolQuery kind : {PoolQuery::logits, PoolQuery::logits_plus_z}) {
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
        CHECK(relative_rms(forward_directed(problem, gap), problem.define()) < bar<T>);
      }
    }
  }
}

TEMPLATE_TEST_CASE("cuda whole pool: directions keep to hidden tokens, shared heads and ramps", "",
                   BFloat16, Half) {
  NEEDS_DEVICE();
  using T = TestType;
  auto sizes = one_head(PoolQuery::logits_plus_z, 40, 900, 70, 16);
  sizes.scale = 0.5;
  Directed<T> problem(sizes, 12, true, true);
  std::fill_n(problem.given.mask.begin(), 130, std::uint8_t{0});
  const auto expected = problem.define();
  const std::vector<T> clean = forward_directed(problem);
  CHECK(relative_rms(clean, expected) < bar<T>);
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
  CHECK(relative_rms(forward_directed(same, 0, true), same.define()) < bar<T>);
  // Logits so large that directions of 16 bits would not do.
  Directed<T> large(one_head(PoolQuery::logits_plus_z, 40, 150, 20, 16), 16, true, false);
  for (float& each : large.directions) each *= 6;
  for (T& each : large.given.scores) each = stored<T>(3 * double{widen(each)});
  for (T& each : large.given.query) each = stored<T>(3 * double{widen(each)});
  CHECK(relative_rms(forward_directed(large), large.define()) < bar<T>);
  // Logits that rise by 30 a token along the first direction's axis, and of hundreds elsewhere.
  Directed<T> ramp(one_head(PoolQuery::logits, 40, 150, 5, 16), 4, false, false);
  for (std::size_t t = 0; t < 150; ++t) {
    ramp.given.scores[4 * t] = stored<T>(double(t));
    ramp.given.scores[4 * t + 1] = stored<T>(20 * double{widen(ramp.given.scores[4 * t + 1])});
  }
  for (std::size_t l = 0; l < 5; ++l) ramp.directions[4 * l] = 30 * (l % 2 == 0 ? 1.F : -1.F);
  CHECK(relative_rms(forward_directed(ramp), ramp.define()) < bar<T>);
  // Many tokens whose weights are far below the greatest.
  Directed<T> many(one_head(PoolQuery::logits, 3, 1500, 1, 8), 1, false, false);
  outweigh(many.given);
  many.directions[0] = 1;
  CHECK(relative_rms(forward_directed(many), many.define()) < bar<T>);
}

}  // namespace attnbench::kernels::cuda::test
