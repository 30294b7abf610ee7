#include <tuple>
#include <utility>

#include "tests/attention/kernels/cuda/whole_pool_device.hpp"

namespace attnbench::kernels::cuda::test {

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
  compare<TestType>(one_head(PoolQuery::logits_plus_z, 20, 40, 1024, 16));
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

TEMPLATE_TEST_CASE("cuda whole pool: gradients on the tensor cores", "", BFloat16, Half) {
  NEEDS_DEVICE();
  using T = TestType;
  for (const PoolQuery kind : pool_kinds) {
    for (const auto& [length, keys, latents, dim] : {std::tuple{130, 70, 64, 64},
                                                     {64, 128, 130, 40},
                                                     {70, 65, 65, 128},
                                                     {63, 129, 24, 100},
                                                     {20, 24, 9, 129}}) {
      compare_gradients(WholePool<T>(one_head(kind, length, keys, latents, dim), 1, true));
    }
    compare_gradients(WholePool<T>(one_head(kind, 700, 600, 16, 24)));  // in segments
    // Gradients of averages that leave the range of fp16, and those that fall below its numbers.
    // Results' gradients are much alike, so that those of queries are little more than six sums,
    // and differences of these: what their roundings add up to is chance, in bf16 6.1 to 6.3e-3
    // here and 4.7 to 7.0e-3 of a naive run.
    for (const float size : {3000.F, 0.01F}) {
      WholePool<T> problem(one_head(kind, 200, 70, 6, 24));
      for (T& each : problem.d_out) narrow(size * (1 + 0.3F * widen(each)), each);
      const double naive = std::is_same_v<T, BFloat16> ? naive_query_error(problem) : 0;
      compare_gradients(problem, 0, naive);
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
    CHECK(relative_rms(out, expected) < bar<T>);
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
    CHECK(relative_rms(device.forward(), problem.define()) < bar<T>);
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
    for (const double grad : {30.0, -30.0}) {
      for (const int latents : {4, 70}) {
        CAPTURE(static_cast<int>(kind), grad, latents);
        WholePool<T> problem(one_head(kind, 50, 197, latents, 8));
        for (std::size_t i = 0; i < problem.scores.size(); ++i) {
          const auto t = static_cast<double>(i / static_cast<std::size_t>(latents));
          if (i % 3 == 0) {
            problem.scores[i] = stored<T>(double{widen(problem.scores[i])} + grad * t);
          }
        }
        problem.scores[40] = stored<T>(1000);
        if (kind != PoolQuery::weights) {
          for (std::size_t i = 0; i < problem.query.size(); i += 5) {
            problem.query[i] = stored<T>(double{widen(problem.query[i])} * 300);
          }
        }
        const PoolOnDevice<T> device(problem);
        CHECK(relative_rms(device.forward(), problem.define()) < std::max(bar<T>, 2e-4));
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

TEMPLATE_TEST_CASE("cuda whole pool: many weights far below the greatest add up", "", float,
                   BFloat16, Half) {
  NEEDS_DEVICE();
  using T = TestType;
  for (const PoolQuery kind : pool_kinds) {
    WholePool<T> problem(one_head(kind, 3, 1500, 1, 8));
    outweigh(problem);
    for (T& each : problem.query) each = stored<T>(1);
    const PoolOnDevice<T> device(problem);
    CHECK(relative_rms(device.forward(), problem.define()) < bar<T>);
  }
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
