#include "attention/kernels/softmax.hpp"

#include <cmath>
#include <limits>

#include "attention/kernels/cpu/simd/simd.hpp"
#include "tests/attention/kernels/closeness.hpp"
#include "tests/attention/kernels/guarded_pages.hpp"
#include "tests/attention/kernels/softmax_problem.hpp"

using namespace attnbench::kernels;
using namespace attnbench::kernels::test;

namespace {

template <class T>
void compare(const SoftmaxSizes& sizes, double spread = 1.0, bool masked = false, int threads = 2) {
  Problem<T> problem(sizes, spread, masked);
  problem.forward(threads);
  problem.backward(threads);
  const Expected expected = define(problem);
  CAPTURE(sizes.length, sizes.key_length, sizes.head_dim, sizes.value_dim, sizes.left, sizes.right,
          sizes.offset, spread, masked, threads);
  CHECK(relative_rms(problem.out, expected.out) < Bars<T>::forward);
  // One visible key leaves no gradient for q and k: what is left of it is rounding.
  if (sizes.left + sizes.right > 0 && sizes.key_length > 1) {
    CHECK(relative_rms(problem.dq, expected.dq) < Bars<T>::backward);
    CHECK(relative_rms(problem.dk, expected.dk) < Bars<T>::backward);
  }
  CHECK(relative_rms(problem.dv, expected.dv) < Bars<T>::backward);
}

SoftmaxSizes square(std::int64_t length, std::int64_t dim, bool causal) {
  SoftmaxSizes sizes;
  sizes.heads = sizes.kv_heads = 2;
  sizes.length = sizes.key_length = length;
  sizes.head_dim = sizes.value_dim = dim;
  sizes.scale = 1 / std::sqrt(static_cast<double>(dim));
  if (causal) sizes.right = 0;
  return sizes;
}

}  // namespace

TEMPLATE_TEST_CASE("kernels softmax: values and gradients at awkward sizes", "", float, double,
                   BFloat16) {
  for (const std::int64_t length : {1, 2, 3, 63, 64, 65, 257}) {
    for (const std::int64_t dim : {1, 3, 43, 64, 128}) {
      if (length == 257 && dim == 128) continue;
      compare<TestType>(square(length, dim, length % 2 == 1));
    }
  }
}

TEMPLATE_TEST_CASE("kernels softmax: on both sides of every tile's edge", "", float, BFloat16) {
  for (const std::int64_t length : {5, 6, 7, 8, 9, 16, 17, 47, 48, 49, 95, 96, 97, 145, 193}) {
    compare<TestType>(square(length, 16, length % 2 == 0));
    SoftmaxSizes band = square(length, 20, false);
    band.left = 11;
    band.right = 3;
    compare<TestType>(band, 1.0, length % 3 == 0);
  }
}

TEMPLATE_TEST_CASE("kernels softmax: windows, masks, grouped heads, unequal lengths", "", float,
                   double, BFloat16) {
  SoftmaxSizes sizes = square(131, 24, true);
  sizes.batch = 2;
  sizes.heads = 4;
  sizes.value_dim = 40;
  for (const std::int64_t left : {0, 1, 16, 130, 500}) {
    for (const std::int64_t right : {0, 7, 200}) {
      sizes.left = left;
      sizes.right = right;
      compare<TestType>(sizes);
      compare<TestType>(sizes, 1.0, true);
    }
  }
  sizes.left = SoftmaxSizes::far;
  sizes.right = 0;
  for (const std::int64_t keys : {1, 60, 131, 300, 700}) {
    sizes.key_length = keys;
    sizes.offset = keys - sizes.length;
    compare<TestType>(sizes);
    compare<TestType>(sizes, 1.0, true, 1);
  }
}

TEMPLATE_TEST_CASE("kernels softmax: narrow bands in one tile of keys, in two, and wider ones", "",
                   float, double) {
  SoftmaxSizes sizes = square(450, 16, true);
  for (const std::int64_t left : {127, 144, 145, 240, 336, 337}) {
    for (const std::int64_t right : {0, 1}) {
      sizes.left = left - right;
      sizes.right = right;
      compare<TestType>(sizes);
    }
    compare<TestType>(sizes, 1.0, true);
  }
  sizes.left = 9;  // queries before the first key and behind the last one
  sizes.key_length = 70;
  for (const std::int64_t offset : {-100, 0, 20}) {
    sizes.offset = offset;
    compare<TestType>(sizes);
  }
}

TEST_CASE("kernels softmax: rows give the same bits where they lie and where they are packed") {
  for (const std::int64_t left : {std::int64_t{127}, std::int64_t{300}, SoftmaxSizes::far}) {
    SoftmaxSizes sizes = square(300, 64, true);
    sizes.left = left;
    Problem<float> problem(sizes);
    const std::size_t count = problem.q.size();
    Block memory(4 * count * sizeof(float));
    auto* const aligned = static_cast<float*>(memory.data());
    SoftmaxArguments<float> arguments = problem.arguments();
    float* place = aligned;
    for (auto* rows : {&arguments.q, &arguments.k, &arguments.v}) {
      std::copy_n(rows->data, count, place);
      rows->data = place;
      place += count;
    }
    arguments.out.data = place;
    on_workspace(2, softmax_forward_bytes<float>(sizes, 2),
                 [&](ThreadTeam& team, void* space, std::size_t bytes) {
                   softmax_forward(sizes, arguments, team, space, bytes);
                 });
    const std::vector<float> lying(place, place + count);
    std::fill_n(place, count, 0.0F);
    // One number further nothing is aligned.
    std::vector<float> moved(count + 64);
    auto* const odd =
        reinterpret_cast<float*>(reinterpret_cast<std::uintptr_t>(moved.data() + 17) / 64 * 64) + 1;
    arguments.k.data = std::copy_n(arguments.k.data, count, odd) - count;
    on_workspace(2, softmax_forward_bytes<float>(sizes, 2),
                 [&](ThreadTeam& team, void* space, std::size_t bytes) {
                   softmax_forward(sizes, arguments, team, space, bytes);
                 });
    CAPTURE(left);
    CHECK(memory.intact());
    CHECK(std::equal(lying.begin(), lying.end(), place));
    CHECK(relative_rms(lying, define(problem).out) < Bars<float>::forward);
  }
}

TEMPLATE_TEST_CASE("kernels softmax: nothing is read or written past the last row", "", float,
                   BFloat16) {
  // Rows of whole vectors, used where they lie; the last panels' keys end within a group of 8.
  for (const std::int64_t length : {16, 130, 191, 192, 193, 199, 384, 777}) {
    for (const std::int64_t left : {std::int64_t{127}, SoftmaxSizes::far}) {
      for (const std::int64_t right : {0, 127}) {
        if (length > 384 && (left != 127 || right != 0)) continue;  // one of more than one item
        SoftmaxSizes sizes = square(length, 64, true);
        sizes.left = left;
        sizes.right = right;
        Problem<TestType> problem(sizes);
        const GuardedPages<TestType> q(problem.q), k(problem.k), v(problem.v), out(problem.out);
        SoftmaxArguments<TestType> arguments = problem.arguments();
        arguments.q.data = q.data();
        arguments.k.data = k.data();
        arguments.v.data = v.data();
        arguments.out.data = out.data();
        REQUIRE(reinterpret_cast<std::uintptr_t>(k.data()) % 64 == 0);
        on_workspace(2, softmax_forward_bytes<TestType>(sizes, 2),
                     [&](ThreadTeam& team, void* space, std::size_t bytes) {
                       softmax_forward(sizes, arguments, team, space, bytes);
                     });
        CAPTURE(length, left, right);
        CHECK(relative_rms(out.copy(), define(problem).out) < Bars<TestType>::forward);
      }
    }
  }
}

TEMPLATE_TEST_CASE("kernels softmax: queries that end before their keys do", "", float, double,
                   BFloat16) {
  for (const std::int64_t length : {33, 90}) {
    SoftmaxSizes sizes = square(length, 24, true);
    sizes.key_length = 300;
    for (const std::int64_t offset : {0, 10, 75}) {
      sizes.offset = offset;
      sizes.left = SoftmaxSizes::far;
      compare<TestType>(sizes);
      sizes.left = 20;
      compare<TestType>(sizes, 1.0, true);
    }
  }
}

TEMPLATE_TEST_CASE("kernels softmax: a few queries at the end of many keys", "", float, double,
                   BFloat16) {
  for (const std::int64_t length : {1, 4, 5}) {
    SoftmaxSizes sizes = square(length, 43, true);
    sizes.heads = 4;
    sizes.key_length = 300;
    sizes.offset = 300 - length;
    compare<TestType>(sizes);
    compare<TestType>(sizes, 1.0, true);
    sizes.left = 70;
    compare<TestType>(sizes, 1.0, true, 1);
  }
}

TEMPLATE_TEST_CASE("kernels softmax: keys split among workers", "", float, double, BFloat16) {
  for (const std::int64_t length : {1, 7, 40}) {
    SoftmaxSizes sizes = square(length, 24, true);
    sizes.key_length = 2500;
    sizes.offset = sizes.key_length - length;
    compare<TestType>(sizes);
    compare<TestType>(sizes, 1.0, true);
    sizes.left = 1300;
    compare<TestType>(sizes, 1.0, true, 3);
  }
}

TEST_CASE("kernels softmax: one part of the keys may hold all the weight, or none that is seen") {
  SoftmaxSizes sizes = square(3, 8, false);
  sizes.key_length = 2500;
  Problem<float> problem(sizes, 1.0, true);
  std::fill(problem.mask.begin() + 600, problem.mask.end() - 600, std::uint8_t{0});
  for (std::size_t i = 0; i < 8; ++i) problem.k[100 * 8 + i] = 60 * problem.q[i];
  problem.forward(2);
  CHECK(relative_rms(problem.out, define(problem).out) < 3e-6);
  std::fill(problem.mask.begin(), problem.mask.end(), std::uint8_t{0});
  problem.forward(2);
  for (const float x : problem.out) REQUIRE(x == 0);
  for (const float x : problem.lse) REQUIRE(x == std::numeric_limits<float>::infinity());
}

TEST_CASE("kernels softmax: gradients equal finite differences") {
  SoftmaxSizes sizes = square(70, 5, true);
  sizes.left = 50;
  Problem<double> problem(sizes, 1.0, true);
  problem.forward(2);
  problem.backward(2);
  const auto loss = [&] {
    problem.forward(1);
    double sum = 0;
    for (std::size_t i = 0; i < problem.out.size(); ++i) sum += problem.out[i] * problem.d_out[i];
    return sum;
  };
  const auto check = [&](std::vector<double>& x, const std::vector<double>& gradient) {
    for (std::size_t i = 3; i < x.size(); i += 97) {
      const double at = x[i];
      const double step = 1e-5;
      x[i] = at + step;
      const double above = loss();
      x[i] = at - step;
      const double below = loss();
      x[i] = at;
      CHECK(gradient[i] == Approx((above - below) / (2 * step)).margin(1e-8).epsilon(1e-6));
    }
  };
  check(problem.q, problem.dq);
  check(problem.k, problem.dk);
  check(problem.v, problem.dv);
}

TEST_CASE("kernels softmax: every instruction set gives the same numbers") {
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::amx}) {
    limit_isa(isa);
    CAPTURE(static_cast<int>(best_isa()));
    compare<float>(square(2, 43, true));
    compare<float>(square(97, 43, true));
    compare<double>(square(97, 43, false));
    compare<BFloat16>(square(97, 43, true));
    compare<BFloat16>(square(150, 64, false), 1.0, true);
    SoftmaxSizes band = square(150, 43, true);
    band.left = 21;
    compare<float>(band);
    band.right = 5;
    compare<float>(band, 1.0, true);
    compare<double>(band);
  }
}

TEST_CASE("kernels softmax: a NaN in a key reaches the queries that see it, and no other") {
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    limit_isa(isa);
    CAPTURE(static_cast<int>(best_isa()));
    SoftmaxSizes band = square(200, 32, true);
    band.left = 25;
    Problem<float> problem(band);
    problem.forward(2);
    const auto out = problem.out;
    problem.k[100 * 32 + 7] = std::numeric_limits<float>::quiet_NaN();
    problem.forward(2);
    bool right = true;
    for (std::size_t i = 0; i < 200 * 32; ++i) {
      const bool sees = i / 32 >= 100 && i / 32 <= 125;
      right = right && (sees ? std::isnan(problem.out[i]) : problem.out[i] == out[i]);
    }
    CHECK(right);
  }
  limit_isa(Isa::amx);
}

TEMPLATE_TEST_CASE("kernels softmax: a negative scale", "", float, BFloat16) {
  SoftmaxSizes sizes = square(70, 40, true);
  sizes.scale = -0.4;
  compare<TestType>(sizes);
}

TEST_CASE("kernels softmax: sharp logits stay finite and right") {
  compare<double>(square(130, 16, true), 8.0);
  Problem<float> problem(square(130, 16, true), 15.0);
  problem.forward(2);
  problem.backward(2);
  const Expected expected = define(problem);
  CHECK(relative_rms(problem.out, expected.out) < 1e-4);
  for (const float x : problem.dq) REQUIRE(std::isfinite(x));
}

TEST_CASE("kernels softmax: a query that sees no key has output 0, gradient 0 and lse +infinity") {
  SoftmaxSizes sizes = square(70, 8, true);
  sizes.key_length = 10;
  sizes.offset = -60;
  Problem<float> problem(sizes);
  problem.forward(1);
  problem.backward(1);
  for (std::size_t i = 0; i < 60 * 8; ++i) {
    REQUIRE(problem.out[i] == 0);
    REQUIRE(problem.dq[i] == 0);
  }
  CHECK(problem.lse[0] == std::numeric_limits<float>::infinity());
  CHECK(std::isfinite(problem.lse[60]));
}

TEST_CASE("kernels softmax: ramps of 30 a token") {
  for (const double slope : {-30.0, 30.0}) {
    SoftmaxSizes sizes = square(150, 8, true);
    sizes.scale = 1;
    Problem<float> problem(sizes);
    for (std::int64_t head = 0; head < 2; ++head) {
      for (std::int64_t t = 0; t < sizes.length; ++t) {
        const auto at = static_cast<std::size_t>((head * sizes.length + t) * 8);
        std::fill_n(problem.q.begin() + static_cast<std::ptrdiff_t>(at), 8, 0.0F);
        std::fill_n(problem.k.begin() + static_cast<std::ptrdiff_t>(at), 8, 0.0F);
        problem.q[at] = 1;
        problem.k[at] = static_cast<float>(slope * static_cast<double>(t));
      }
    }
    problem.forward(2);
    problem.backward(2);
    const Expected expected = define(problem);
    CHECK(relative_rms(problem.out, expected.out) < 3e-6);
    CHECK(relative_rms(problem.dv, expected.dv) < 1e-5);
    for (const float x : problem.dq) REQUIRE(std::isfinite(x));
    for (const float x : problem.dk) REQUIRE(std::isfinite(x));
  }
}

TEMPLATE_TEST_CASE("kernels softmax: the same bits for any number of threads", "", float,
                   BFloat16) {
  const auto bits_of = [](const std::vector<TestType>& x) {
    std::vector<double> bits;
    for (const auto value : x) bits.push_back(double{widen(value)});
    return bits;
  };
  for (const std::int64_t length : {40, 500}) {
    SoftmaxSizes sizes = square(length, 32, true);
    sizes.heads = sizes.kv_heads = 1;
    sizes.key_length = 1200;
    sizes.offset = sizes.key_length - length;
    Problem<TestType> one(sizes);
    Problem<TestType> many(sizes);
    one.forward(1);
    one.backward(1);
    many.forward(5);
    many.backward(5);
    CHECK(bits_of(one.out) == bits_of(many.out));
    CHECK(bits_of(one.dq) == bits_of(many.dq));
    CHECK(bits_of(one.dk) == bits_of(many.dk));
    CHECK(bits_of(one.dv) == bits_of(many.dv));
  }
}

TEST_CASE("kernels softmax: the same bits twice, and a future key changes nothing before it") {
  Problem<float> problem(square(200, 32, true));
  problem.forward(2);
  problem.backward(2);
  const auto out = problem.out;
  const auto dq = problem.dq;
  problem.forward(2);
  problem.backward(2);
  CHECK(out == problem.out);
  CHECK(dq == problem.dq);
  for (std::size_t d = 0; d < 32; ++d) problem.k[150 * 32 + d] *= 1000;
  problem.forward(2);
  CHECK(std::equal(out.begin(), out.begin() + 150 * 32, problem.out.begin()));
  CHECK(!std::equal(out.begin(), out.begin() + 200 * 32, problem.out.begin()));
}

TEMPLATE_TEST_CASE("kernels softmax: the forward workspace does not grow with the length", "",
                   float, double, BFloat16) {
  for (const std::int64_t length : {64, 500, 1 << 12, 1 << 20}) {
    CAPTURE(length);
    CHECK(softmax_forward_bytes<TestType>(square(length, 64, true), 2) ==
          softmax_forward_bytes<TestType>(square(9, 64, true), 2));
  }
}
