#include "attention/kernels/cuda/softmax/forward_sm90.hpp"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/attention/kernels/arrays.hpp"
#include "tests/attention/kernels/cuda/device_array.hpp"
#include "tests/attention/kernels/cuda/softmax_sizes.hpp"
#include "tests/support/catch.hpp"

namespace attnbench::kernels::cuda::test {
namespace {

using kernels::test::stored;
#ifdef ATTNBENCH_EMULATED
constexpr bool emulated = true;  // where every product costs time
#else
constexpr bool emulated = false;
#endif
constexpr std::int64_t many = emulated ? 1 : 2;

/// Rows of a [batch, heads, length, width] array, dense or with the heads inside of the tokens.
template <class T>
Rows<T> laid(T* data, std::int64_t heads, std::int64_t length, std::int64_t width,
             bool interleaved) {
  if (interleaved) return {data, length * heads * width, width, heads * width};
  return {data, heads * length * width, length * width, width};
}

/// A row of the output and its lse, by the definition in double.
template <class T>
double define_row(const SoftmaxSizes& z, const SoftmaxArguments<T>& a, std::int64_t b,
                  std::int64_t h, std::int64_t t, std::vector<double>& out) {
  out.assign(static_cast<std::size_t>(z.value_dim), 0.0);
  const std::int64_t kv = h / (z.heads / z.kv_heads);
  std::vector<double> scores;
  double greatest = -std::numeric_limits<double>::infinity();
  for (std::int64_t s = z.first_key(t); s <= z.last_key(t); ++s) {
    double score = 0;
    for (std::int64_t d = 0; d < z.head_dim; ++d) {
      score += double{widen(a.q.at(b, h, t)[d])} * double{widen(a.k.at(b, kv, s)[d])};
    }
    scores.push_back(score * z.scale);
    greatest = std::max(greatest, scores.back());
  }
  if (scores.empty()) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double weight = std::exp(scores[i] - greatest);
    sum += weight;
    const T* v = a.v.at(b, kv, z.first_key(t) + static_cast<std::int64_t>(i));
    for (std::int64_t d = 0; d < z.value_dim; ++d) out[d] += weight * double{widen(v[d])};
  }
  for (double& x : out) x /= sum;
  return greatest + std::log(sum);
}

/// Runs the kernel twice on fresh memory and holds it to the definition, on every row of a short
/// problem and on some rows of a long one.
template <class T>
void check(const SoftmaxSizes& z, double spread = 1, bool interleaved = false) {
  INFO(name_of(z) << (std::is_same_v<T, Half> ? " fp16" : " bf16") << " spread " << spread
                  << (interleaved ? " interleaved" : ""));
  std::mt19937 engine(11);
  std::normal_distribution<float> normal(0, static_cast<float>(spread));
  const auto random = [&](std::int64_t count) {
    std::vector<T> x(static_cast<std::size_t>(count));
    for (T& value : x) value = stored<T>(normal(engine));
    return x;
  };
  std::vector<T> q = random(z.batch * z.heads * z.length * z.head_dim);
  std::vector<T> k = random(z.batch * z.kv_heads * z.key_length * z.head_dim);
  std::vector<T> v = random(z.batch * z.kv_heads * z.key_length * z.value_dim);
  const DeviceArray<T> dq(q), dk(k), dv(v);
  SoftmaxArguments<T> on_host, on_device;
  on_host.q = laid<const T>(q.data(), z.heads, z.length, z.head_dim, interleaved);
  on_host.k = laid<const T>(k.data(), z.kv_heads, z.key_length, z.head_dim, interleaved);
  on_host.v = laid<const T>(v.data(), z.kv_heads, z.key_length, z.value_dim, interleaved);
  on_device.q = laid<const T>(dq.data(), z.heads, z.length, z.head_dim, interleaved);
  on_device.k = laid<const T>(dk.data(), z.kv_heads, z.key_length, z.head_dim, interleaved);
  on_device.v = laid<const T>(dv.data(), z.kv_heads, z.key_length, z.value_dim, interleaved);

  std::vector<T> out[2];
  std::vector<float> lse[2];
  for (int run = 0; run < 2; ++run) {
    const DeviceArray<T> d_out(q.size());
    const DeviceArray<float> d_lse(static_cast<std::size_t>(z.batch * z.heads * z.length));
    on_device.out = laid<T>(d_out.data(), z.heads, z.length, z.value_dim, interleaved);
    on_device.lse = d_lse.data();
    REQUIRE(softmax_sm90_refusal(z, on_device) == "");
    softmax_sm90_forward(z, on_device, Stream{});
    synchronize();
    out[run] = d_out.values();
    lse[run] = d_lse.values();
  }
  CHECK(lse[0] == lse[1]);
  bool same = true;
  for (std::size_t i = 0; i < q.size(); ++i) same = same && out[0][i].bits == out[1][i].bits;
  CHECK(same);

  on_host.out = laid<T>(out[0].data(), z.heads, z.length, z.value_dim, interleaved);
  const std::int64_t work = z.batch * z.heads * z.length * z.key_length;
  const std::int64_t step = std::max<std::int64_t>(1, work / (emulated ? 40000 : 150000)) | 1;
  double difference = 0, size = 0, worst_lse = 0;
  std::int64_t bad_infinities = 0, row = 0;
  std::vector<double> expected;
  for (std::int64_t b = 0; b < z.batch; ++b) {
    for (std::int64_t h = 0; h < z.heads; ++h) {
      for (std::int64_t t = 0; t < z.length; ++t, ++row) {
        if (row % step != 0 && t != z.length - 1 && t != 0) continue;
        const double expected_lse = define_row(z, on_host, b, h, t, expected);
        for (std::int64_t d = 0; d < z.value_dim; ++d) {
          const double found = widen(on_host.out.at(b, h, t)[d]);
          difference += (found - expected[d]) * (found - expected[d]);
          size += expected[d] * expected[d];
        }
        const double found_lse = lse[0][(b * z.heads + h) * z.length + t];
        if (std::isinf(expected_lse)) {
          bad_infinities += found_lse != expected_lse;
        } else {
          const double off = std::abs(found_lse - expected_lse) / (1 + std::abs(expected_lse));
          if (!(off <= worst_lse)) worst_lse = off;
        }
      }
    }
  }
  const double tolerance = std::is_same_v<T, Half> ? 1e-3 : 6e-3;
  CHECK(std::sqrt(difference / (size + 1e-300)) <= tolerance);
  CHECK(worst_lse <= 2e-5);
  CHECK(bad_infinities == 0);
}

bool no_hopper() {
  if (card().hopper()) return false;
  std::printf("needs a Hopper card, this is %s\n", card().name.c_str());
  return true;
}
#define NEEDS_HOPPER()  \
  NEEDS_DEVICE();       \
  if (no_hopper()) {    \
    SUCCEED("skipped"); \
    return;             \
  }

}  // namespace

TEST_CASE("the Hopper kernel refuses unsupported calls with the reason") {
  SoftmaxArguments<BFloat16> a;
  const auto z = sizes_of(1, 1, 1, 8, 8, 64);
  a.q = a.k = a.v = Rows<const BFloat16>{nullptr, 512, 512, 64};
  a.out = Rows<BFloat16>{nullptr, 512, 512, 64};
  CHECK(softmax_sm90_refusal(sizes_of(1, 1, 1, 8, 8, 80), a) == "head_dim is none of 64, 128, 256");
  CHECK(softmax_sm90_refusal(sizes_of(1, 1, 1, 8, 0, 64), a) == "there are no keys");
  auto odd = a;
  odd.v.row_stride = 65;
  CHECK(softmax_sm90_refusal(z, odd) ==
        "v has strides that are not positive multiples of 16 bytes");
  odd = a;
  odd.k.data = reinterpret_cast<const BFloat16*>(std::uintptr_t{8});
  CHECK(softmax_sm90_refusal(z, odd) == "k is not aligned to 16 bytes");
  auto negative = z;
  negative.scale = -1;
  CHECK(softmax_sm90_refusal(negative, a) == "the scale is not positive");
  const std::uint8_t mask = 1;
  a.key_mask = &mask;
  CHECK(softmax_sm90_refusal(z, a) == "there is a key mask");
  CHECK_THROWS_AS(softmax_sm90_forward(z, a, Stream{}), std::logic_error);
}

TEST_CASE("softmax on Hopper is the definition at odd lengths") {
  NEEDS_HOPPER();
  for (const std::int64_t width : {64, 128, 256}) {
    for (const std::int64_t length : {1, 3, 64, 80, 127, 128, 129, 192, 193, 257, 577}) {
      if (emulated && length > 129 && length % 2 == 0) continue;  // 193, 257 and 577 are as odd
      check<BFloat16>(sizes_of(many, many, many, length, length, width));
      check<BFloat16>(sizes_of(1, many, many, length, length, width, far, 0));
    }
    check<Half>(sizes_of(1, many, many, 333, 333, width));
    check<Half>(sizes_of(1, many, many, 333, 333, width, far, 0));
  }
}

TEST_CASE(
    "softmax on Hopper is the definition with other numbers of keys, windows, grouped heads") {
  NEEDS_HOPPER();
  for (const std::int64_t width : {64, 128, 256}) {
    check<BFloat16>(sizes_of(1, many, many, 100, 700, width));
    check<BFloat16>(sizes_of(1, 1, 1, 70, 2100, width));
    check<BFloat16>(sizes_of(1, many, many, 100, 700, width, far, 0, 600));
    check<BFloat16>(sizes_of(1, many, many, 100, 700, width, far, 0));
    check<BFloat16>(sizes_of(1, many, many, 700, 100, width, far, 0, -600));  // 600 see none
    check<BFloat16>(sizes_of(1, 1, 1, 700, 700, width, 99, 0));
    check<BFloat16>(sizes_of(1, 1, 1, 500, 500, width, 99, 30));
    check<BFloat16>(sizes_of(1, 1, 1, 500, 500, width, 0, far));
    check<BFloat16>(sizes_of(1, 1, 1, 700, 300, width, 20, 20));  // the last 380 see none
    check<BFloat16>(sizes_of(1, 1, 1, 300, 300, width, 0, 0));
    check<BFloat16>(sizes_of(1, 1, 1, 300, 300, width, 60, -50));
    check<BFloat16>(sizes_of(many, 6, 2, 140, 140, width, far, 0));
    check<Half>(sizes_of(many, 4, 1, 100, 200, width));
    check<BFloat16>(sizes_of(2, 3, 3, 150, 100, width, far, 0), 1, true);
  }
}

TEST_CASE("softmax on Hopper is the definition for scores that spread wide") {
  NEEDS_HOPPER();
  for (const std::int64_t width : {64, 128, 256}) {
    check<BFloat16>(sizes_of(1, many, many, 400, 400, width), 15);
    check<BFloat16>(sizes_of(1, many, many, 400, 400, width, far, 0), 4);
    check<Half>(sizes_of(1, many, many, 300, 300, width), 4);
  }
}

TEST_CASE("softmax on Hopper is the definition when blocks have many tiles each") {
  NEEDS_HOPPER();
  if (emulated) {  // on four multiprocessors
    check<BFloat16>(sizes_of(2, 4, 4, 300, 300, 64, far, 0));
    check<BFloat16>(sizes_of(2, 4, 2, 300, 300, 128, far, 0));
    check<BFloat16>(sizes_of(2, 4, 4, 200, 200, 128));
    check<BFloat16>(sizes_of(1, 1, 1, 1500, 1500, 64, far, 0));
    return;
  }
  check<BFloat16>(sizes_of(4, 40, 40, 500, 500, 64, far, 0));
  check<BFloat16>(sizes_of(4, 40, 8, 500, 500, 128, far, 0));
  check<BFloat16>(sizes_of(4, 30, 30, 400, 400, 128));
  check<BFloat16>(sizes_of(1, 2, 2, 4000, 4000, 128, far, 0));
  check<BFloat16>(sizes_of(1, 2, 2, 4000, 4000, 64));
}

}  // namespace attnbench::kernels::cuda::test
