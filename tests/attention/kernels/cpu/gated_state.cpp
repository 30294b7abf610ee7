// The gated state's kernel against its recurrence in double, on every instruction set.
#include "attention/kernels/gated_state.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "attention/kernels/cpu/simd/simd.hpp"
#include "tests/attention/kernels/arrays.hpp"
#include "tests/attention/kernels/closeness.hpp"

namespace attnbench::kernels::test {
namespace {

/// Two heads with their memory.
template <class R>
struct Gated {
  GatedStateSizes sizes;
  std::vector<R> query, key, values, decay, beta, removal, erased, d_out, out, memory;
  std::vector<R> d_query, d_key, d_values, d_beta, d_read, d_removal, d_erased;

  explicit Gated(const GatedStateSizes& s) : sizes(s) {
    std::mt19937 engine(7);
    const std::int64_t tokens = 2 * s.length;
    const double one = 1 / std::sqrt(static_cast<double>(s.rows));
    query = drawn<R>(engine, tokens * s.rows, 1);
    key = drawn<R>(engine, tokens * s.rows, one);
    values = drawn<R>(engine, tokens * s.width, 1);
    decay = drawn<R>(engine, tokens * std::max<std::int64_t>(s.gates, 1), 0.25);
    beta = drawn<R>(engine, tokens, 1);
    d_out = drawn<R>(engine, tokens * s.width, 1);
    removal = drawn<R>(engine, tokens * s.rows, one);
    erased = drawn<R>(engine, tokens * s.rows, 1);
    for (R& each : decay) each = -std::abs(each);
    for (R& each : beta) each = static_cast<R>(1 / (1 + std::exp(-each)));
    for (std::size_t i = 0; i < erased.size(); ++i) {  // a share of its own of each channel
      erased[i] = static_cast<R>(removal[i] / (1 + std::exp(-erased[i])));
    }
    out = d_values = values;
    d_query = d_key = d_read = d_removal = d_erased = query;
    d_beta = beta;
    memory.assign(static_cast<std::size_t>(2 * s.rows * s.width), R{0.25});
  }
  Gated<double> widened() const {
    Gated<double> copy(sizes);
    copy.query = in_double(query);
    copy.key = in_double(key);
    copy.values = in_double(values);
    copy.decay = in_double(decay);
    copy.beta = in_double(beta);
    copy.removal = in_double(removal);
    copy.erased = in_double(erased);
    copy.d_out = in_double(d_out);
    return copy;
  }
  template <class U>
  Rows<U> rows(std::vector<R>& x, std::int64_t width) const {
    return rows_of<U>(x, 2, sizes.length, width);
  }
  GatedStateArguments<R> arguments() {
    GatedStateArguments<R> a;
    a.query = rows<const R>(query, sizes.rows);
    a.key = rows<const R>(key, sizes.rows);
    a.values = rows<const R>(values, sizes.width);
    a.log_decay = rows<const R>(decay, std::max<std::int64_t>(sizes.gates, 1));
    a.beta = rows<const R>(beta, 1);
    a.removal = rows<const R>(removal, sizes.rows);
    a.erased = rows<const R>(erased, sizes.rows);
    a.out = rows<R>(out, sizes.width);
    return a;
  }
  void forward(bool from_memory) {
    auto a = arguments();
    if (from_memory) a.memory = memory.data();
    on_workspace(1, gated_state_forward_bytes<R>(sizes, 1),
                 [&](ThreadTeam& team, void* space, std::size_t bytes) {
                   gated_state_forward<R>(sizes, a, team, space, bytes);
                 });
  }
  void backward() {
    GatedStateGradients<R> gradients{rows<const R>(d_out, sizes.width),
                                     rows<R>(d_query, sizes.rows), rows<R>(d_key, sizes.rows),
                                     rows<R>(d_values, sizes.width)};
    if (sizes.erases) {
      gradients.d_beta = rows<R>(d_beta, 1);
      gradients.d_read = rows<R>(d_read, sizes.rows);
    }
    if (sizes.removes) {
      gradients.d_removal = rows<R>(d_removal, sizes.rows);
      gradients.d_erased = rows<R>(d_erased, sizes.rows);
    }
    on_workspace(1, gated_state_backward_bytes<R>(sizes, 1),
                 [&](ThreadTeam& team, void* space, std::size_t bytes) {
                   gated_state_backward<R>(sizes, arguments(), gradients, team, space, bytes);
                 });
  }

  /// The recurrence from `state` [heads, rows, width], which is advanced.
  ATTNBENCH_PLAIN_LOOPS std::vector<double> define(std::vector<double>& state) const {
    const std::vector<double> queries = in_double(query), keys = in_double(key);
    const std::vector<double> given = in_double(values), decays = in_double(decay);
    const std::vector<double> betas = in_double(beta), removals = in_double(removal);
    const std::vector<double> shares = in_double(erased);
    std::vector<double> output(out.size(), 0.0), kept(static_cast<std::size_t>(sizes.rows), 1.0);
    const std::int64_t rows = sizes.rows, width = sizes.width;
    double *const keeps = kept.data(), *const states = state.data(), *const outputs = output.data();
    for (std::int64_t t = 0; t < 2 * sizes.length; ++t) {
      double* const own = states + t / sizes.length * rows * width;
      const double *const q = queries.data() + t * rows, *const k = keys.data() + t * rows;
      const double *const r = removals.data() + t * rows, *const e = shares.data() + t * rows;
      const double *const v = given.data() + t * width, *const g = decays.data() + t * sizes.gates;
      const double rate = sizes.erases ? betas.data()[t] : 0;
      for (std::int64_t d = 0; sizes.gates > 0 && d < rows; ++d) {
        keeps[d] = std::exp(g[sizes.gates == 1 ? 0 : d]);
      }
      for (std::int64_t j = 0; j < width; ++j) {
        double held = 0, removed = 0;
        for (std::int64_t d = 0; sizes.removes && d < rows; ++d) {
          removed += r[d] * own[d * width + j];
        }
        for (std::int64_t d = 0; d < rows; ++d) {
          double& s = own[d * width + j];
          s *= keeps[d];
          if (sizes.removes) s -= e[d] * removed;
          held += k[d] * s;
        }
        const double written = v[j] - rate * held;
        double y = 0;
        for (std::int64_t d = 0; d < rows; ++d) {
          own[d * width + j] += k[d] * written;
          y += q[d] * own[d * width + j];
        }
        outputs[t * width + j] = y;
      }
    }
    return output;
  }
  std::vector<double> define() const {
    std::vector<double> nothing(memory.size(), 0.0);
    return define(nothing);
  }
  /// The gradients of the log decays, which follow from the others.
  std::vector<double> d_decay() const {
    std::vector<double> all(decay.size(), 0.0);
    for (std::int64_t t = 2 * sizes.length - 1; t >= 0; --t) {
      for (std::int64_t d = 0; d < sizes.rows; ++d) {
        const auto i = static_cast<std::size_t>(t * sizes.rows + d);
        const std::int64_t gate = t * sizes.gates + (sizes.gates == 1 ? 0 : d);
        const double read = sizes.erases ? 2 * d_read[i] : 0;
        double flow = query[i] * d_query[i] + key[i] * (read - d_key[i]);
        if (sizes.removes) {
          const std::size_t next = i + static_cast<std::size_t>(sizes.rows);
          flow -= erased[i] * d_erased[i];
          if ((t + 1) % sizes.length != 0) flow += removal[next] * d_removal[next];
        }
        all[static_cast<std::size_t>(gate)] += flow;
      }
      for (std::int64_t g = 0; g < sizes.gates && (t + 1) % sizes.length != 0; ++g) {
        const auto i = static_cast<std::size_t>(t * sizes.gates + g);
        all[i] += all[i + static_cast<std::size_t>(sizes.gates)];
      }
    }
    return all;
  }
};

/// Values and memory against the recurrence; gradients against those of the kernel in double, which
/// `check_grads` traces back to the recurrence.
template <class R>
void compare(const GatedStateSizes& sizes) {
  Gated<R> problem(sizes);
  std::vector<double> state(problem.memory.size(), 0.25);
  problem.forward(true);
  CHECK(relative_rms(problem.out, problem.define(state)) < Bars<R>::forward);
  CHECK(relative_rms(problem.memory, state) < Bars<R>::forward);
  problem.backward();
  auto exact = problem.widened();
  exact.backward();
  CHECK(relative_rms(problem.d_query, exact.d_query) < Bars<R>::backward);
  CHECK(relative_rms(problem.d_key, exact.d_key) < Bars<R>::backward);
  CHECK(relative_rms(problem.d_values, exact.d_values) < Bars<R>::backward);
  if (sizes.removes) {
    const auto& large = exact.d_values;
    CHECK(gradient_error(problem.d_removal, exact.d_removal, large) < Bars<R>::backward);
    CHECK(gradient_error(problem.d_erased, exact.d_erased, large) < Bars<R>::backward);
  }
  if (!sizes.erases) return;  // the first token finds nothing, so that its beta has no gradient
  CHECK(gradient_error(problem.d_beta, exact.d_beta, exact.d_values) < Bars<R>::backward);
}

void check_grads(const GatedStateSizes& sizes) {
  Gated<double> problem(sizes);
  problem.backward();
  std::mt19937 engine(5);
  const auto loss = [&] { return inner(problem.define(), problem.d_out); };
  check_grad(engine, loss, problem.query, problem.d_query);
  check_grad(engine, loss, problem.key, problem.d_key);
  check_grad(engine, loss, problem.values, problem.d_values);
  if (sizes.erases) check_grad(engine, loss, problem.beta, problem.d_beta);
  if (sizes.removes) {
    check_grad(engine, loss, problem.removal, problem.d_removal);
    check_grad(engine, loss, problem.erased, problem.d_erased);
  }
  if (sizes.gates > 0) check_grad(engine, loss, problem.decay, problem.d_decay());
}

}  // namespace

TEST_CASE("gated state: every instruction set, gate and odd size equals the recurrence") {
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    limit_isa(isa);
    for (const bool erases : {false, true}) {
      for (const auto& [tokens, rows, width] : std::vector<std::array<std::int64_t, 3>>{
               {1, 1, 3}, {33, 7, 9}, {64, 8, 64}, {70, 43, 130}}) {
        for (const std::int64_t gates : {std::int64_t{0}, std::int64_t{1}, rows}) {
          CAPTURE(static_cast<int>(isa), erases, tokens, rows, width, gates);
          const GatedStateSizes sizes{1, 2, tokens, rows, width, gates, erases};
          compare<double>(sizes);
          compare<float>(sizes);
          check_grads(sizes);
        }
      }
    }
  }
  limit_isa(Isa::amx);
}

TEST_CASE("gated state: a removal key on every instruction set equals the recurrence") {
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    limit_isa(isa);
    for (const auto& [tokens, rows, width] : std::vector<std::array<std::int64_t, 3>>{
             {1, 1, 3}, {33, 7, 9}, {40, 1, 2}, {64, 8, 64}, {70, 43, 130}, {66, 70, 5}}) {
      CAPTURE(static_cast<int>(isa), tokens, rows, width);
      const GatedStateSizes sizes{1, 2, tokens, rows, width, rows, false, 1, true};
      compare<double>(sizes);
      compare<float>(sizes);
      check_grads(sizes);
    }
  }
  limit_isa(Isa::amx);
}

TEST_CASE("gated state: a removal key finds what a strong gate then forgets") {
  const GatedStateSizes sizes{1, 2, 70, 9, 20, 9, false, 1, true};
  for (const double strength : {30.0, 1000.0, HUGE_VAL}) {
    Gated<float> problem(sizes);
    for (std::size_t i = 0; i < problem.decay.size(); i += 5) {
      problem.decay[i] = static_cast<float>(-strength);
    }
    CAPTURE(strength);
    problem.forward(false);
    CHECK(relative_rms(problem.out, problem.define()) < Bars<float>::forward);
    problem.backward();
    auto exact = problem.widened();
    exact.backward();
    CHECK(relative_rms(problem.d_removal, exact.d_removal) < Bars<float>::backward);
    CHECK(relative_rms(problem.d_erased, exact.d_erased) < Bars<float>::backward);
    std::mt19937 engine(3);
    const auto loss = [&] { return inner(exact.define(), exact.d_out); };
    check_grad(engine, loss, exact.key, exact.d_key);
    check_grad(engine, loss, exact.removal, exact.d_removal);
    check_grad(engine, loss, exact.erased, exact.d_erased);
  }
}

TEST_CASE("gated state: a log decay of minus infinity empties the state") {
  Gated<float> trial({1, 2, 40, 5, 6, 5, false});
  for (std::size_t i = 0; i < 5; ++i) trial.decay[20 * 5 + i] = -HUGE_VALF;
  Gated<float> later = trial;
  std::fill_n(later.values.begin(), 20 * 6, 100.0F);  // of the tokens before, which are forgotten
  trial.forward(false);
  later.forward(false);
  const auto &a = trial.out, &b = later.out;
  CHECK(std::equal(a.begin() + 20 * 6, a.begin() + 40 * 6, b.begin() + 20 * 6));
  CHECK_FALSE(std::equal(a.begin(), a.begin() + 20 * 6, b.begin()));
}

}  // namespace attnbench::kernels::test
