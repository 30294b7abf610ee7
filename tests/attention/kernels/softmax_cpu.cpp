#include "attention/kernels/softmax.hpp"

#include <random>
#include <vector>

#include "attention/kernels/simd.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/thread_team.hpp"

using namespace attnbench::kernels;
using attnbench::test::StdTeam;

namespace {

/// 64-byte aligned memory with a guard behind it.
class Block {
 public:
  explicit Block(std::size_t bytes) : bytes_(bytes), storage_(bytes + 128, std::byte{0x5a}) {}
  void* data() {
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
    return storage_.data() + (64 - address % 64) % 64;
  }
  bool intact() {
    const auto* guard = static_cast<std::byte*>(data()) + bytes_;
    return guard[0] == std::byte{0x5a} && guard[31] == std::byte{0x5a};
  }

 private:
  std::size_t bytes_;
  std::vector<std::byte> storage_;
};

template <class T>
Rows<T> rows_of(std::vector<std::remove_const_t<T>>& data, std::int64_t heads, std::int64_t length,
                std::int64_t width) {
  return {data.data(), heads * length * width, length * width, width};
}

template <class T>
T stored(double x) {
  T value;
  narrow(static_cast<Compute<T>>(x), value);
  return value;
}

template <class T>
struct Problem {
  SoftmaxSizes sizes;
  std::vector<T> q, k, v, d_out, out, dq, dk, dv;
  std::vector<std::uint8_t> mask;
  std::vector<Compute<T>> lse;

  explicit Problem(const SoftmaxSizes& s, double spread = 1.0, bool masked = false) : sizes(s) {
    std::mt19937 engine(7);
    std::normal_distribution<double> normal(0, spread);
    const auto fill = [&](std::vector<T>& x, std::int64_t count) {
      x.resize(static_cast<std::size_t>(count));
      for (auto& value : x) value = stored<T>(normal(engine));
    };
    fill(q, s.batch * s.heads * s.length * s.head_dim);
    fill(k, s.batch * s.kv_heads * s.key_length * s.head_dim);
    fill(v, s.batch * s.kv_heads * s.key_length * s.value_dim);
    fill(d_out, s.batch * s.heads * s.length * s.value_dim);
    out.resize(d_out.size());
    dq.resize(q.size());
    dk.resize(k.size());
    dv.resize(v.size());
    lse.resize(static_cast<std::size_t>(s.batch * s.heads * s.length));
    for (std::int64_t i = 0; masked && i < s.batch * s.key_length; ++i) {
      mask.push_back(engine() % 4 != 0);
    }
  }
  SoftmaxArguments<T> arguments() {
    SoftmaxArguments<T> a;
    a.q = rows_of<const T>(q, sizes.heads, sizes.length, sizes.head_dim);
    a.k = rows_of<const T>(k, sizes.kv_heads, sizes.key_length, sizes.head_dim);
    a.v = rows_of<const T>(v, sizes.kv_heads, sizes.key_length, sizes.value_dim);
    a.out = rows_of<T>(out, sizes.heads, sizes.length, sizes.value_dim);
    a.lse = lse.data();
    if (!mask.empty()) a.key_mask = mask.data();
    a.mask_stride = sizes.key_length;
    return a;
  }
  void forward(int threads) {
    StdTeam team(threads);
    Block block(softmax_forward_bytes<T>(sizes, threads));
    softmax_forward(sizes, arguments(), team, block.data(),
                    softmax_forward_bytes<T>(sizes, threads));
    REQUIRE(block.intact());
  }
  void backward(int threads) {
    SoftmaxGradients<T> g;
    g.d_out = rows_of<const T>(d_out, sizes.heads, sizes.length, sizes.value_dim);
    g.dq = rows_of<T>(dq, sizes.heads, sizes.length, sizes.head_dim);
    g.dk = rows_of<T>(dk, sizes.kv_heads, sizes.key_length, sizes.head_dim);
    g.dv = rows_of<T>(dv, sizes.kv_heads, sizes.key_length, sizes.value_dim);
    StdTeam team(threads);
    Block block(softmax_backward_bytes<T>(sizes, threads));
    softmax_backward(sizes, arguments(), g, team, block.data(),
                     softmax_backward_bytes<T>(sizes, threads));
    REQUIRE(block.intact());
  }
  bool sees(std::int64_t b, std::int64_t t, std::int64_t s) const {
    const std::int64_t distance = s - t - sizes.offset;
    return distance >= -sizes.left && distance <= sizes.right &&
           (mask.empty() || mask[static_cast<std::size_t>(b * sizes.key_length + s)] != 0);
  }
};

/// Values and gradients by the definition, in double.
struct Expected {
  std::vector<double> out, dq, dk, dv;
};

template <class T>
Expected define(const Problem<T>& p) {
  const auto& z = p.sizes;
  Expected e{std::vector<double>(p.out.size()), std::vector<double>(p.q.size()),
             std::vector<double>(p.k.size()), std::vector<double>(p.v.size())};
  const auto dot = [](const T* a, const T* b, std::int64_t n) {
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += double{widen(a[i])} * double{widen(b[i])};
    return sum;
  };
  for (std::int64_t head = 0; head < z.batch * z.heads; ++head) {
    const std::int64_t b = head / z.heads;
    const std::int64_t kv = b * z.kv_heads + head % z.heads / (z.heads / z.kv_heads);
    for (std::int64_t t = 0; t < z.length; ++t) {
      const std::int64_t q0 = (head * z.length + t) * z.head_dim;
      const std::int64_t o0 = (head * z.length + t) * z.value_dim;
      std::vector<double> weight(static_cast<std::size_t>(z.key_length), 0.0);
      double greatest = -1e300, sum = 0;
      for (std::int64_t s = 0; s < z.key_length; ++s) {
        if (!p.sees(b, t, s)) continue;
        const std::int64_t k0 = (kv * z.key_length + s) * z.head_dim;
        weight[s] = z.scale * dot(&p.q[q0], &p.k[k0], z.head_dim);
        greatest = std::max(greatest, weight[s]);
      }
      for (std::int64_t s = 0; s < z.key_length; ++s) {
        weight[s] = p.sees(b, t, s) ? std::exp(weight[s] - greatest) : 0;
        sum += weight[s];
      }
      if (sum == 0) continue;
      double delta = 0;
      std::vector<double> d_weight(weight.size(), 0.0);
      for (std::int64_t s = 0; s < z.key_length; ++s) {
        weight[s] /= sum;
        const std::int64_t v0 = (kv * z.key_length + s) * z.value_dim;
        d_weight[s] = dot(&p.d_out[o0], &p.v[v0], z.value_dim);
        delta += weight[s] * d_weight[s];
        for (std::int64_t d = 0; d < z.value_dim; ++d) {
          e.out[o0 + d] += weight[s] * widen(p.v[v0 + d]);
          e.dv[v0 + d] += weight[s] * widen(p.d_out[o0 + d]);
        }
      }
      for (std::int64_t s = 0; s < z.key_length; ++s) {
        const double d_score = z.scale * weight[s] * (d_weight[s] - delta);
        const std::int64_t k0 = (kv * z.key_length + s) * z.head_dim;
        for (std::int64_t d = 0; d < z.head_dim; ++d) {
          e.dq[q0 + d] += d_score * widen(p.k[k0 + d]);
          e.dk[k0 + d] += d_score * widen(p.q[q0 + d]);
        }
      }
    }
  }
  return e;
}

template <class T>
double relative_rms(const std::vector<T>& found, const std::vector<double>& expected) {
  double difference = 0, size = 1e-300;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double d = double{widen(found[i])} - expected[i];
    difference += d * d;
    size += expected[i] * expected[i];
  }
  return std::sqrt(difference / size);
}

template <class T>
struct Bars;
template <>
struct Bars<float> {
  static constexpr double forward = 3e-6, backward = 1e-5;
};
template <>
struct Bars<double> {
  static constexpr double forward = 1e-13, backward = 1e-12;
};
template <>
struct Bars<BFloat16> {
  static constexpr double forward = 5e-3, backward = 1e-2;
};

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

TEMPLATE_TEST_CASE("kernels softmax: windows, masks, grouped heads, unequal lengths", "", float,
                   double) {
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
  for (const std::int64_t keys : {1, 60, 131, 300}) {
    sizes.key_length = keys;
    sizes.offset = keys - sizes.length;
    compare<TestType>(sizes);
    compare<TestType>(sizes, 1.0, true, 1);
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
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    limit_isa(isa);
    compare<float>(square(2, 43, true));
    compare<float>(square(97, 43, true));
    compare<double>(square(97, 43, false));
    compare<BFloat16>(square(97, 43, true));
  }
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

TEST_CASE("kernels softmax: the forward workspace does not grow with the length") {
  CHECK(softmax_forward_bytes<float>(square(1 << 20, 64, true), 2) ==
        softmax_forward_bytes<float>(square(1 << 12, 64, true), 2));
}
