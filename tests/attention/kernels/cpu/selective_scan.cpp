// The selective scan's kernel against its recurrence in double, on every instruction set.
#include "attention/kernels/selective_scan.hpp"

#include <algorithm>
#include <cmath>

#include "attention/kernels/cpu/simd/simd.hpp"
#include "tests/attention/kernels/arrays.hpp"
#include "tests/attention/kernels/closeness.hpp"

namespace attnbench::kernels::test {
namespace {

/// A problem with its memory, each role dense.
template <class R>
struct Selective {
  SelectiveScanSizes sizes;
  int threads = 1;
  std::vector<R> step, values, input, read, rate, d_out, out, memory;
  std::vector<R> d_step, d_values, d_input, d_read, d_rate;

  explicit Selective(const SelectiveScanSizes& s) : sizes(s) {
    std::mt19937 engine(7);
    const std::int64_t tokens = s.batch * s.length;
    step = drawn<R>(engine, tokens * s.heads * s.width, 0.3);
    for (R& each : step) each = std::abs(each);
    values = drawn<R>(engine, tokens * s.heads * s.width, 1);
    input = drawn<R>(engine, tokens * s.groups * s.rows, 1);
    read = drawn<R>(engine, tokens * s.groups * s.rows, 1);
    rate = drawn<R>(engine, s.heads * s.rows * s.width, 2);
    for (R& each : rate) each = -std::abs(each);
    d_out = drawn<R>(engine, tokens * s.heads * s.width, 1);
    out = d_step = d_values = values;
    d_input = d_read = input;
    d_rate.resize(rate.size() * static_cast<std::size_t>(s.batch));
    memory.assign(static_cast<std::size_t>(s.batch * s.heads * s.rows * s.width), R{0.25});
  }
  Selective<double> widened() const {
    Selective<double> copy(sizes);
    copy.step = in_double(step);
    copy.values = in_double(values);
    copy.input = in_double(input);
    copy.read = in_double(read);
    copy.rate = in_double(rate);
    copy.d_out = in_double(d_out);
    return copy;
  }
  template <class U>
  Rows<U> own(std::vector<R>& x) const {
    return rows_of<U>(x, sizes.heads, sizes.length, sizes.width);
  }
  template <class U>
  Rows<U> shared(std::vector<R>& x) const {
    return rows_of<U>(x, sizes.groups, sizes.length, sizes.rows);
  }
  SelectiveScanArguments<R> arguments() {
    SelectiveScanArguments<R> a;
    a.step = own<const R>(step);
    a.values = own<const R>(values);
    a.input = shared<const R>(input);
    a.read = shared<const R>(read);
    a.rate = rate.data();
    a.out = own<R>(out);
    return a;
  }
  void forward(bool from_memory) {
    auto a = arguments();
    if (from_memory) a.memory = memory.data();
    on_workspace(threads, selective_scan_forward_bytes<R>(sizes, threads),
                 [&](ThreadTeam& team, void* space, std::size_t bytes) {
                   selective_scan_forward<R>(sizes, a, team, space, bytes);
                 });
  }
  void backward() {
    const SelectiveScanGradients<R> gradients{own<const R>(d_out), own<R>(d_step),
                                              own<R>(d_values),    shared<R>(d_input),
                                              shared<R>(d_read),   d_rate.data()};
    on_workspace(threads, selective_scan_backward_bytes<R>(sizes, threads),
                 [&](ThreadTeam& team, void* space, std::size_t bytes) {
                   selective_scan_backward<R>(sizes, arguments(), gradients, team, space, bytes);
                 });
  }

  /// The recurrence from `state`, which is laid out as a memory and advanced.
  std::vector<double> define(std::vector<double>& state) const {
    const auto at = [](const std::vector<R>& x, std::int64_t i) {
      return double{x[static_cast<std::size_t>(i)]};
    };
    std::vector<double> y(out.size(), 0.0);
    const SelectiveScanSizes& s = sizes;
    const std::int64_t in_group = s.heads / s.groups;
    for (std::int64_t b = 0; b < s.batch; ++b) {
      for (std::int64_t h = 0; h < s.heads; ++h) {
        const std::int64_t group = b * s.groups + h / in_group;
        for (std::int64_t t = 0; t < s.length; ++t) {
          for (std::int64_t d = 0; d < s.width; ++d) {
            const std::int64_t token = ((b * s.heads + h) * s.length + t) * s.width + d;
            double& to = y[static_cast<std::size_t>(token)];
            for (std::int64_t n = 0; n < s.rows; ++n) {
              const std::int64_t role = (group * s.length + t) * s.rows + n;
              const std::int64_t place =
                  (group * s.rows + n) * in_group * s.width + h % in_group * s.width + d;
              double& held = state[static_cast<std::size_t>(place)];
              held *= std::exp(at(rate, (h * s.rows + n) * s.width + d) * at(step, token));
              held += at(step, token) * at(values, token) * at(input, role);
              to += at(read, role) * held;
            }
          }
        }
      }
    }
    return y;
  }
  std::vector<double> define() const {
    std::vector<double> nothing(memory.size(), 0.0);
    return define(nothing);
  }
  /// The gradient of the rates, of all sequences together.
  std::vector<double> of_rates() const {
    std::vector<double> all(rate.size(), 0.0);
    for (std::size_t i = 0; i < d_rate.size(); ++i) all[i % all.size()] += double{d_rate[i]};
    return all;
  }
};

/// Values and memory against the recurrence; gradients against those of the kernel in double, which
/// `check_grads` traces back to the recurrence.
template <class R>
void compare(const SelectiveScanSizes& sizes) {
  Selective<R> problem(sizes);
  std::vector<double> state(problem.memory.size(), 0.25);
  problem.forward(true);
  CHECK(relative_rms(problem.out, problem.define(state)) < Bars<R>::forward);
  CHECK(relative_rms(problem.memory, state) < Bars<R>::forward);
  problem.backward();
  auto exact = problem.widened();
  exact.backward();
  CHECK(relative_rms(problem.d_step, exact.d_step) < Bars<R>::backward);
  CHECK(relative_rms(problem.d_values, exact.d_values) < Bars<R>::backward);
  CHECK(relative_rms(problem.d_input, exact.d_input) < Bars<R>::backward);
  CHECK(relative_rms(problem.d_read, exact.d_read) < Bars<R>::backward);
  // A single token decays nothing.
  CHECK(gradient_error(problem.of_rates(), exact.of_rates(), exact.d_step) < Bars<R>::backward);
}

void check_grads(const SelectiveScanSizes& sizes) {
  Selective<double> problem(sizes);
  problem.backward();
  std::mt19937 engine(5);
  const auto loss = [&] { return inner(problem.define(), problem.d_out); };
  check_grad(engine, loss, problem.step, problem.d_step);
  check_grad(engine, loss, problem.values, problem.d_values);
  check_grad(engine, loss, problem.input, problem.d_input);
  check_grad(engine, loss, problem.read, problem.d_read);
  check_grad(engine, loss, problem.rate, problem.of_rates());
}

}  // namespace

TEST_CASE("selective scan: every instruction set, group and odd size equals the recurrence") {
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    limit_isa(isa);
    for (const SelectiveScanSizes& sizes :
         {SelectiveScanSizes{1, 1, 1, 1, 1, 3}, SelectiveScanSizes{2, 2, 1, 33, 16, 9},
          SelectiveScanSizes{1, 4, 2, 64, 5, 64}, SelectiveScanSizes{2, 2, 2, 70, 7, 130}}) {
      CAPTURE(static_cast<int>(isa), sizes.length, sizes.rows, sizes.width);
      compare<double>(sizes);
      compare<float>(sizes);
      check_grads(sizes);
    }
  }
  limit_isa(Isa::amx);
}

TEST_CASE("selective scan: threads give the same bits") {
  Selective<float> one({2, 4, 2, 70, 16, 80});
  Selective<float> three = one;
  three.threads = 3;
  for (Selective<float>* each : {&one, &three}) {
    each->forward(true);
    each->backward();
  }
  CHECK(one.out == three.out);
  CHECK(one.memory == three.memory);
  CHECK(one.d_step == three.d_step);
  CHECK(one.d_values == three.d_values);
  CHECK(one.d_input == three.d_input);
  CHECK(one.d_read == three.d_read);
  CHECK(one.d_rate == three.d_rate);
}

TEST_CASE("selective scan: thousands of decays near 1 are rounded without a bias") {
  // It would add up: a state that is written once, and read at the end. Steps differ, else the same
  // decay would be rounded the same way each time.
  constexpr std::int64_t length = 20000, width = 64;
  Selective<float> trial({1, 1, 1, length, 1, width});
  std::mt19937 engine(3);
  std::uniform_real_distribution<float> between(0.5e-4F, 1.5e-4F);
  for (float& each : trial.step) each = between(engine);
  std::fill(trial.values.begin(), trial.values.end(), 0.0F);
  std::fill_n(trial.values.begin(), width, 1.0F);
  std::fill(trial.input.begin(), trial.input.end(), 1.0F);
  std::fill(trial.read.begin(), trial.read.end(), 1.0F);
  trial.forward(false);
  const std::vector<double> last(trial.out.end() - width, trial.out.end());
  std::vector<double> want;
  for (std::int64_t d = 0; d < width; ++d) {
    double sum = 0;
    for (std::int64_t t = 1; t < length; ++t) {
      sum += double{trial.step[static_cast<std::size_t>(t * width + d)]};
    }
    const auto channel = static_cast<std::size_t>(d);
    want.push_back(double{trial.step[channel]} * std::exp(double{trial.rate[channel]} * sum));
  }
  CHECK(relative_rms(last, want) < 2e-5);
}

TEST_CASE("selective scan: a step without end empties the state") {
  Selective<float> trial({1, 2, 1, 40, 5, 6});
  for (std::size_t i = 0; i < 12; ++i) {
    trial.step[(i / 6 * 40 + 20) * 6 + i % 6] = 1e30F;
    trial.values[(i / 6 * 40 + 20) * 6 + i % 6] = 0;
  }
  for (float& each : trial.rate) each -= 1;
  Selective<float> other = trial;
  std::fill_n(other.values.begin(), 20 * 6, 100.0F);  // of the first head, before
  trial.forward(false);
  other.forward(false);
  const auto &a = trial.out, &b = other.out;
  CHECK(std::equal(a.begin() + 20 * 6, a.begin() + 40 * 6, b.begin() + 20 * 6));
  CHECK_FALSE(std::equal(a.begin(), a.begin() + 20 * 6, b.begin()));
}

}  // namespace attnbench::kernels::test
