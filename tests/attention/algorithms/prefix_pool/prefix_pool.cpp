// The prefix pool's forms against plain loops in double, on scores that single scales cannot hold.
#include "attention/algorithms/prefix_pool/prefix_pool.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "attention/torch/torch.hpp"

#include "tests/attention/held.hpp"
#include "tests/attention/memory_count.hpp"
#include "tests/support/catch.hpp"

namespace attnbench::prefix_pool {
namespace {

using at::Tensor;
using test::relative_error;

struct Case {
  std::string name;
  Tensor query, scores, values;  ///< in double
};

Tensor normal(std::initializer_list<std::int64_t> shape) {
  return at::randn(at::IntArrayRef(shape), at::kDouble);
}

Case case_of(const std::string& name, const std::function<double(std::int64_t)>& score,
             double noise = 0) {
  constexpr std::int64_t kLength = 150, kLatents = 5, kWidth = 9;
  Case made{name, normal({1, 2, kLength, kLatents}), noise * normal({1, 2, kLength, kLatents}),
            normal({1, 2, kLength, kWidth})};
  for (std::int64_t t = 0; t < kLength; ++t) {
    for (std::int64_t l = 0; l < kLatents; ++l) {
      made.scores.select(2, t).select(2, l) += score(t) + 0.25 * static_cast<double>(l * t % 7);
    }
  }
  return made;
}

std::vector<Case> cases() {
  return {case_of("flat", [](std::int64_t) { return 0.0; }),
          case_of("ramp of +30 per token", [](std::int64_t t) { return 30.0 * t; }),
          case_of("ramp of -30 per token", [](std::int64_t t) { return -30.0 * t; }),
          case_of("up and down by 30",
                  [](std::int64_t t) { return 30.0 * (t % 40 < 20 ? t % 40 : 40 - t % 40); }),
          case_of("1, 10, 1000 and on",
                  [](std::int64_t t) { return t % 50 < 3 ? std::pow(10.0, t % 50) : 0.5; }),
          case_of(
              "deviation 15", [](std::int64_t) { return 0.0; }, 15)};
}

/// y by the definition, one latent and token at a time.
Tensor definition(const Case& given) {
  const Tensor p = at::softmax(given.query, -1);
  const Tensor y = at::zeros_like(given.values);
  for (std::int64_t t = 0; t < given.scores.size(2); ++t) {
    const Tensor weights = at::softmax(given.scores.narrow(2, 0, t + 1), 2);
    const Tensor means = at::matmul(weights.transpose(2, 3), given.values.narrow(2, 0, t + 1));
    y.select(2, t).copy_(at::matmul(p.narrow(2, t, 1), means).squeeze(2));
  }
  return y;
}

using Pool = std::function<Tensor(const Tensor&, const Tensor&, const Tensor&, Carry*)>;

std::vector<std::pair<std::string, Pool>> forms(Query kind = Query::logits) {
  const auto in_chunks = [kind](std::int64_t chunk) {
    return [kind, chunk](const Tensor& q, const Tensor& k, const Tensor& v, Carry* carry) {
      return chunked(q, kind, k, v, chunk, carry);
    };
  };
  return {{"materialised", [kind](const Tensor& q, const Tensor& k, const Tensor& v,
                                  Carry* carry) { return materialised(q, kind, k, v, carry); }},
          {"scan", [kind](const Tensor& q, const Tensor& k, const Tensor& v,
                          Carry* carry) { return scan(q, kind, k, v, carry); }},
          {"chunks of 64", in_chunks(64)},
          {"chunks of 24", in_chunks(24)},
          {"chunks of 7", in_chunks(7)},
          {"one chunk", in_chunks(1000)}};
}

struct Slopes {
  Tensor query, scores, values;
};

Slopes slopes_of(const std::function<Tensor(const Tensor&, const Tensor&, const Tensor&)>& pool,
                 const Case& given, at::ScalarType type, const Tensor& upstream) {
  const Tensor q = given.query.to(type).clone().requires_grad_(true);
  const Tensor k = given.scores.to(type).clone().requires_grad_(true);
  const Tensor v = given.values.to(type).clone().requires_grad_(true);
  torch::autograd::backward({pool(q, k, v)}, {upstream.to(type)});
  return {q.grad(), k.grad(), v.grad()};
}

/// Gradients of the definition through autograd, in double, prefix by prefix.
Slopes definition_slopes(const Case& given, const Tensor& upstream) {
  const auto pool = [](const Tensor& q, const Tensor& k, const Tensor& v) {
    const Tensor p = at::softmax(q, -1);
    std::vector<Tensor> rows;
    for (std::int64_t t = 0; t < k.size(2); ++t) {
      const Tensor weights = at::softmax(k.narrow(2, 0, t + 1), 2);
      const Tensor means = at::matmul(weights.transpose(2, 3), v.narrow(2, 0, t + 1));
      rows.push_back(at::matmul(p.narrow(2, t, 1), means));
    }
    return at::cat(rows, 2);
  };
  return slopes_of(pool, given, at::kDouble, upstream);
}

/// Relative to the gradient, or to the upstream's where the gradient all but vanishes: where one
/// token outweighs all others, latents agree and the differences that make gradients cancel.
double slope_error(const Tensor& got, const Tensor& expected, const Tensor& upstream) {
  const double size =
      std::max(expected.norm().item<double>(), 0.1 * upstream.norm().item<double>());
  // Not a number compares as false, hence as a failure.
  return (got.to(at::kDouble) - expected).norm().item<double>() / size;
}

}  // namespace

TEST_CASE("the prefix pool is right, not only finite, on any scores") {
  for (const Case& given : cases()) {
    const Tensor expected = definition(given);
    const Tensor upstream = at::randn_like(expected);
    const Slopes slopes = definition_slopes(given, upstream);
    for (const auto& [name, form] : forms()) {
      CAPTURE(given.name, name);
      // In float32 the scores themselves are rounded; multiples of 1/4 are not.
      const bool exact = given.name != "deviation 15";
      for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
        const bool wide = type == at::kDouble;
        CAPTURE(wide);
        const Tensor y =
            form(given.query.to(type), given.scores.to(type), given.values.to(type), nullptr);
        CHECK(relative_error(y, expected) < (wide ? 1e-12 : exact ? 1e-6 : 1e-5));
        const auto pool = [&](const Tensor& q, const Tensor& k, const Tensor& v) {
          return form(q, k, v, nullptr);
        };
        const Slopes got = slopes_of(pool, given, type, upstream);
        CHECK(slope_error(got.query, slopes.query, upstream) < (wide ? 1e-11 : 1e-5));
        CHECK(slope_error(got.scores, slopes.scores, upstream) < (wide ? 1e-11 : 1e-4));
        CHECK(relative_error(got.values, slopes.values) < (wide ? 1e-11 : 1e-5));
      }
    }
  }
}

TEST_CASE("the prefix pool continues from a carry in blocks of any length") {
  for (const Case& given : cases()) {
    const Tensor expected = definition(given);
    for (const auto& [name, form] : forms()) {
      CAPTURE(given.name, name);
      Carry carry =
          empty_carry(1, 2, given.scores.size(3), given.values.size(3), given.values.options());
      std::vector<Tensor> parts;
      std::int64_t begin = 0;
      for (const std::int64_t count : {1, 16, 2, 70, 1, 60}) {
        parts.push_back(form(given.query.narrow(2, begin, count),
                             given.scores.narrow(2, begin, count),
                             given.values.narrow(2, begin, count), &carry));
        begin += count;
      }
      CHECK(relative_error(at::cat(parts, 2), expected) < 1e-12);
    }
  }
}

TEST_CASE("weights may be given in place of query logits") {
  const Case given = cases().front();
  const Tensor p = at::softmax(given.query, -1);
  const Tensor expected = definition(given);
  CHECK(relative_error(scan(p, Query::weights, given.scores, given.values), expected) < 1e-12);
  CHECK(relative_error(chunked(p, Query::weights, given.scores, given.values, 64), expected) <
        1e-12);
  // Weights need not add up to 1: half of them give half the result.
  CHECK(relative_error(chunked(p / 2, Query::weights, given.scores, given.values, 64),
                       expected / 2) < 1e-12);
  const Tensor weights = p.clone().requires_grad_(true);
  const Tensor means = definition({"", at::zeros_like(p), given.scores, given.values});
  chunked(weights, Query::weights, given.scores, given.values, 64).sum().backward();
  CHECK(relative_error(weights.grad().mean(-1), means.sum(-1)) < 1e-12);
}

TEST_CASE("with z in its query logits the pool is linear attention with features exp") {
  // Pair by pair: the weight of s in t is softmax over s <= t of log sum_l exp(q_tl + k_sl).
  const auto pairs = [](const Tensor& q, const Tensor& k, const Tensor& v) {
    const auto length = q.size(2);
    const Tensor later = at::ones({length, length}, at::kBool).triu(1);
    const Tensor logits = at::logsumexp(q.unsqueeze(3) + k.unsqueeze(2), -1);
    return at::matmul(at::softmax(logits.masked_fill(later, -1e300), -1), v);
  };
  for (const Case& given : cases()) {
    const Tensor expected = pairs(given.query, given.scores, given.values);
    const Tensor upstream = at::randn_like(expected);
    const Slopes slopes = slopes_of(pairs, given, at::kDouble, upstream);
    for (const auto& [name, form] : forms(Query::logits_plus_z)) {
      CAPTURE(given.name, name);
      const auto pool = [&form = form](const Tensor& q, const Tensor& k, const Tensor& v) {
        return form(q, k, v, nullptr);
      };
      CHECK(relative_error(pool(given.query, given.scores, given.values), expected) < 1e-12);
      const Slopes got = slopes_of(pool, given, at::kDouble, upstream);
      CHECK(slope_error(got.query, slopes.query, upstream) < 1e-11);
      CHECK(slope_error(got.scores, slopes.scores, upstream) < 1e-11);
      CHECK(relative_error(got.values, slopes.values) < 1e-11);
      Carry carry = empty_carry(1, 2, 5, 9, given.values.options());
      std::vector<Tensor> parts;
      std::int64_t begin = 0;
      for (const std::int64_t count : {1, 16, 2, 70, 1, 60}) {
        const auto of = [&](const Tensor& x) { return x.narrow(2, begin, count); };
        parts.push_back(form(of(given.query), of(given.scores), of(given.values), &carry));
        begin += count;
      }
      CHECK(relative_error(at::cat(parts, 2), expected) < 1e-12);
    }
  }
}

TEST_CASE("a latent that has seen nothing gives nothing, until it sees something") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [name, form] : forms()) {
    for (const double level : {0.0, -1000.0, 1000.0}) {
      CAPTURE(name, level);
      Case given = cases().front();
      given.scores += level;
      given.scores.narrow(2, 0, 70).fill_(-infinity);
      given.scores.narrow(2, 100, 30).fill_(-infinity);
      const Tensor y = form(given.query, given.scores, given.values, nullptr);
      CHECK(y.narrow(2, 0, 70).abs().max().item<double>() == 0);
      const auto shown = at::cat({at::arange(70, 100), at::arange(130, 150)});
      const auto of = [&](const Tensor& x) { return x.index_select(2, shown); };
      const Tensor expected = definition({"", of(given.query), of(given.scores), of(given.values)});
      CHECK(relative_error(of(y), expected) < 1e-12);

      const Tensor upstream = at::randn_like(y);
      const auto pool = [&](const Tensor& q, const Tensor& k, const Tensor& v) {
        return form(q, k, v, nullptr);
      };
      const Slopes got = slopes_of(pool, given, at::kDouble, upstream);
      CHECK(at::isfinite(got.query).all().item<bool>());
      CHECK(got.scores.narrow(2, 0, 70).abs().max().item<double>() == 0);
      CHECK(got.scores.narrow(2, 100, 30).abs().max().item<double>() == 0);
      CHECK(got.values.narrow(2, 0, 70).abs().max().item<double>() == 0);
      CHECK(at::isfinite(got.scores).all().item<bool>());
    }
  }
}

TEST_CASE("the prefix pool's scan and chunks keep nothing but their inputs") {
  const auto measure = [](const Pool& form, std::int64_t length) {
    const Tensor q = at::randn({1, 1, length, 16}).requires_grad_(true);
    const Tensor k = at::randn({1, 1, length, 16}).requires_grad_(true);
    const Tensor v = at::randn({1, 1, length, 16}).requires_grad_(true);
    struct {
      std::int64_t saved, forward, backward;
    } bytes{};
    const test::MemoryCount count;
    const Tensor y = form(q, k, v, nullptr);
    const auto output = static_cast<std::int64_t>(y.nbytes());
    bytes.saved = count.live() - output;
    bytes.forward = count.peak() - output;
    torch::autograd::backward({y}, {at::ones_like(y)});
    bytes.backward = count.peak();
    return bytes;
  };
  for (const auto& [name, form] : forms()) {
    if (name == "materialised" || name == "one chunk") continue;
    CAPTURE(name);
    const auto once = measure(form, 1024);
    const auto twice = measure(form, 2048);
    CHECK(once.saved < 1024);
    CHECK(twice.forward == once.forward);
    // Gradients, upstream and slopes: a few numbers per token and latent, not L D of them.
    CHECK(twice.backward - once.backward < 10 * 1024 * 16 * 4);
  }
}

}  // namespace attnbench::prefix_pool
