// The gated state's kernel against plain loops, on every instruction set.
#include "attention/kernels/gated_state.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "attention/kernels/cpu/simd/simd.hpp"
#include "tests/support/catch.hpp"

namespace attnbench::kernels {
namespace {

struct ErasingGradients {
  std::vector<double> query, key, values, beta, read;
};

/// Random inputs of two heads, gradients included, and plain loops over them in double.
template <class R>
struct GatedTrial {
  GatedTrial(std::int64_t tokens, std::int64_t rows, std::int64_t width, std::int64_t gates,
             bool erases)
      : sizes{1, 2, tokens, rows, width, gates, erases},
        query(numbers(rows)),
        key(numbers(rows)),
        values(numbers(width)),
        decay(numbers(std::max<std::int64_t>(gates, 1))),
        beta(numbers(1)),
        d_out(numbers(width)) {
    for (R& each : decay) each = -std::abs(each) / 4;
    for (R& each : beta) each = static_cast<R>(1 / (1 + std::exp(-each)));
    for (R& each : key) each /= static_cast<R>(std::sqrt(static_cast<double>(rows)));
  }

  std::vector<R> numbers(std::int64_t width) {
    std::normal_distribution<double> normal;
    std::vector<R> all(static_cast<std::size_t>(2 * sizes.length * width));
    for (R& each : all) each = static_cast<R>(normal(generator));
    return all;
  }
  template <class V>
  auto rows_of(V& all, std::int64_t width) const {
    return Rows<std::remove_pointer_t<decltype(all.data())>>{all.data(), 2 * sizes.length * width,
                                                             sizes.length * width, width};
  }
  GatedStateArguments<R> arguments() const {
    GatedStateArguments<R> all;
    all.query = rows_of(query, sizes.rows);
    all.key = rows_of(key, sizes.rows);
    all.values = rows_of(values, sizes.width);
    all.log_decay = rows_of(decay, std::max<std::int64_t>(sizes.gates, 1));
    all.beta = rows_of(beta, 1);
    return all;
  }
  double decay_of(std::int64_t token, std::int64_t row) const {
    if (sizes.gates == 0) return 1;
    return std::exp(static_cast<double>(
        decay[static_cast<std::size_t>(token * sizes.gates + (sizes.gates == 1 ? 0 : row))]));
  }

  /// Tokens [begin, end) of head h, the state being [rows, width].
  void loops(std::int64_t h, std::vector<double>& state, std::vector<double>& out,
             std::vector<double>& d_query) const {
    const std::int64_t width = sizes.width;
    const auto at = [&](const std::vector<R>& all, std::int64_t token, std::int64_t w,
                        std::int64_t i) {
      return static_cast<double>(all[static_cast<std::size_t>(token * w + i)]);
    };
    for (std::int64_t t = h * sizes.length; t < (h + 1) * sizes.length; ++t) {
      for (std::int64_t j = 0; j < width; ++j) {
        double held = 0;
        for (std::int64_t d = 0; d < sizes.rows; ++d) {
          double& s = state[static_cast<std::size_t>(d * width + j)];
          s *= decay_of(t, d);
          held += at(key, t, sizes.rows, d) * s;
        }
        const double written =
            at(values, t, width, j) - (sizes.erases ? at(beta, t, 1, 0) * held : 0);
        double y = 0;
        for (std::int64_t d = 0; d < sizes.rows; ++d) {
          double& s = state[static_cast<std::size_t>(d * width + j)];
          s += at(key, t, sizes.rows, d) * written;
          y += at(query, t, sizes.rows, d) * s;
          d_query[static_cast<std::size_t>(t * sizes.rows + d)] += at(d_out, t, width, j) * s;
        }
        out[static_cast<std::size_t>(t * width + j)] = y;
      }
    }
  }
  /// The gradients of keys and values: the sum of q_s dy_s^T from the last token back.
  void loops_back(std::int64_t h, std::vector<double>& d_key, std::vector<double>& d_values) const {
    std::vector<double> sum(static_cast<std::size_t>(sizes.rows * sizes.width));
    for (std::int64_t t = (h + 1) * sizes.length - 1; t >= h * sizes.length; --t) {
      for (std::int64_t d = 0; d < sizes.rows; ++d) {
        for (std::int64_t j = 0; j < sizes.width; ++j) {
          double& s = sum[static_cast<std::size_t>(d * sizes.width + j)];
          const auto row = static_cast<std::size_t>(t * sizes.rows + d);
          const auto column = static_cast<std::size_t>(t * sizes.width + j);
          s += static_cast<double>(query[row]) * static_cast<double>(d_out[column]);
          d_key[row] += static_cast<double>(values[column]) * s;
          d_values[column] += static_cast<double>(key[row]) * s;
          s *= decay_of(t, d);
        }
      }
    }
  }

  /// All gradients of head h where tokens erase, by the chain rule from token to token.
  void erasing_back(std::int64_t h, ErasingGradients& to) const {
    const std::int64_t rows = sizes.rows, width = sizes.width, first = h * sizes.length;
    const auto wide = [](const std::vector<R>& all, std::int64_t i) {
      return static_cast<double>(all[static_cast<std::size_t>(i)]);
    };
    const auto size = static_cast<std::size_t>(rows * width);
    std::vector<std::vector<double>> found, after;  // the state before and after a token writes
    std::vector<double> state(size);
    for (std::int64_t t = first; t < first + sizes.length; ++t) {
      for (std::int64_t i = 0; i < rows * width; ++i) {
        state[static_cast<std::size_t>(i)] *= decay_of(t, i / width);
      }
      found.push_back(state);
      for (std::int64_t j = 0; j < width; ++j) {
        double held = 0;
        for (std::int64_t i = 0; i < rows; ++i) {
          held += wide(key, t * rows + i) * state[static_cast<std::size_t>(i * width + j)];
        }
        const double written = wide(values, t * width + j) - wide(beta, t) * held;
        for (std::int64_t i = 0; i < rows; ++i) {
          state[static_cast<std::size_t>(i * width + j)] += wide(key, t * rows + i) * written;
        }
      }
      after.push_back(state);
    }
    std::vector<double> d_state(size);
    for (std::int64_t t = first + sizes.length - 1; t >= first; --t) {
      const auto& before = found[static_cast<std::size_t>(t - first)];
      const auto& later = after[static_cast<std::size_t>(t - first)];
      for (std::int64_t j = 0; j < width; ++j) {
        const double dy = wide(d_out, t * width + j);
        double w = 0, held = 0;
        for (std::int64_t i = 0; i < rows; ++i) {
          const auto at = static_cast<std::size_t>(i * width + j);
          to.query[static_cast<std::size_t>(t * rows + i)] += later[at] * dy;
          d_state[at] += wide(query, t * rows + i) * dy;
          w += wide(key, t * rows + i) * d_state[at];
          held += wide(key, t * rows + i) * before[at];
        }
        const double written = wide(values, t * width + j) - wide(beta, t) * held;
        to.values[static_cast<std::size_t>(t * width + j)] = w;
        to.beta[static_cast<std::size_t>(t)] -= w * held;
        for (std::int64_t i = 0; i < rows; ++i) {
          const auto at = static_cast<std::size_t>(i * width + j);
          const auto row = static_cast<std::size_t>(t * rows + i);
          to.read[row] -= wide(beta, t) * before[at] * w;
          to.key[row] += d_state[at] * written - wide(beta, t) * before[at] * w;
          d_state[at] -= wide(beta, t) * wide(key, t * rows + i) * w;
          d_state[at] *= decay_of(t, i);
        }
      }
    }
  }

  std::mt19937_64 generator{7};
  GatedStateSizes sizes;
  std::vector<R> query, key, values, decay, beta, d_out;
};

template <class R>
double distance(const std::vector<R>& got, const std::vector<double>& want) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    error += std::pow(static_cast<double>(got[i]) - want[i], 2);
    size += want[i] * want[i];
  }
  return std::sqrt(error / size);
}

std::vector<std::max_align_t> room(std::size_t bytes) {
  return std::vector<std::max_align_t>(bytes / sizeof(std::max_align_t) + 8);
}

void* aligned(std::vector<std::max_align_t>& space) {
  const auto address = reinterpret_cast<std::uintptr_t>(space.data());
  return reinterpret_cast<void*>((address + 63) / 64 * 64);
}

template <class R>
void check_erasing_gradients(const GatedTrial<R>& trial, double bar) {
  const std::int64_t rows = trial.sizes.rows, width = trial.sizes.width;
  ErasingGradients want;
  for (auto* each : {&want.query, &want.key, &want.read}) each->resize(trial.query.size());
  want.values.resize(trial.values.size());
  want.beta.resize(trial.beta.size());
  for (std::int64_t h = 0; h < 2; ++h) trial.erasing_back(h, want);
  std::vector<R> dq(trial.query.size()), dk(dq.size()), read(dq.size());
  std::vector<R> dv(trial.values.size()), d_beta(trial.beta.size());
  SerialTeam team;
  const std::size_t bytes = gated_state_backward_bytes<R>(trial.sizes, 1);
  auto space = room(bytes);
  gated_state_backward<R>(
      trial.sizes, trial.arguments(),
      {trial.rows_of(trial.d_out, width), trial.rows_of(dq, rows), trial.rows_of(dk, rows),
       trial.rows_of(dv, width), trial.rows_of(d_beta, 1), trial.rows_of(read, rows)},
      team, aligned(space), bytes);
  CHECK(distance(dq, want.query) < bar);
  CHECK(distance(dk, want.key) < bar);
  CHECK(distance(dv, want.values) < bar);
  if (trial.sizes.length == 1) {  // nothing was there to be erased
    CHECK(std::all_of(d_beta.begin(), d_beta.end(), [&](R x) { return std::abs(x) < 10 * bar; }));
    return;
  }
  CHECK(distance(d_beta, want.beta) < bar);
  CHECK(distance(read, want.read) < bar);
}

template <class R>
void check_gated(std::int64_t tokens, std::int64_t rows, std::int64_t width, std::int64_t gates,
                 bool erases) {
  const GatedTrial<R> trial(tokens, rows, width, gates, erases);
  const double bar = sizeof(R) == 8 ? 1e-13 : 2e-6;
  SerialTeam team;
  std::vector<double> state(static_cast<std::size_t>(2 * rows * width));
  std::vector<double> out(trial.values.size()), d_query(trial.query.size());
  std::vector<double> d_key(trial.key.size()), d_values(trial.values.size());
  for (std::int64_t h = 0; h < 2; ++h) {
    std::vector<double> own(static_cast<std::size_t>(rows * width), 0.25);
    trial.loops(h, own, out, d_query);
    std::copy(own.begin(), own.end(), state.begin() + h * rows * width);
  }
  std::vector<R> got(trial.values.size()), memory(state.size(), R{0.25});
  auto arguments = trial.arguments();
  arguments.out = trial.rows_of(got, width);
  arguments.memory = memory.data();
  const std::size_t bytes = gated_state_forward_bytes<R>(trial.sizes, 1);
  auto space = room(bytes);
  gated_state_forward<R>(trial.sizes, arguments, team, aligned(space), bytes);
  CHECK(distance(got, out) < bar);
  CHECK(distance(memory, state) < bar);
  if (erases) return check_erasing_gradients(trial, bar);
  std::fill(d_query.begin(), d_query.end(), 0.0);
  for (std::int64_t h = 0; h < 2; ++h) {
    std::vector<double> own(static_cast<std::size_t>(rows * width));
    trial.loops(h, own, out, d_query);
    trial.loops_back(h, d_key, d_values);
  }
  std::vector<R> dq(d_query.size()), dk(d_key.size()), dv(d_values.size());
  const std::size_t more = gated_state_backward_bytes<R>(trial.sizes, 1);
  auto wider = room(more);
  arguments.memory = nullptr;
  gated_state_backward<R>(trial.sizes, arguments,
                          {trial.rows_of(trial.d_out, width), trial.rows_of(dq, rows),
                           trial.rows_of(dk, rows), trial.rows_of(dv, width)},
                          team, aligned(wider), more);
  CHECK(distance(dq, d_query) < bar);
  CHECK(distance(dk, d_key) < bar);
  CHECK(distance(dv, d_values) < bar);
}

}  // namespace

TEST_CASE("gated state: every instruction set, gate and odd size equals plain loops") {
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    limit_isa(isa);
    for (const bool erases : {false, true}) {
      for (const auto& [tokens, rows, width] : std::vector<std::array<std::int64_t, 3>>{
               {1, 1, 3}, {33, 7, 9}, {64, 8, 64}, {70, 43, 130}}) {
        for (const std::int64_t gates : {std::int64_t{0}, std::int64_t{1}, rows}) {
          CAPTURE(static_cast<int>(isa), erases, tokens, rows, width, gates);
          check_gated<double>(tokens, rows, width, gates, erases);
          check_gated<float>(tokens, rows, width, gates, erases);
        }
      }
    }
  }
  limit_isa(Isa::amx);
}

TEST_CASE("gated state: a log decay of minus infinity empties the state") {
  GatedTrial<float> trial(40, 5, 6, 5, false);
  for (std::size_t i = 0; i < 5; ++i) trial.decay[20 * 5 + i] = -HUGE_VALF;
  GatedTrial<float> later = trial;
  std::fill_n(later.values.begin(), 20 * 6, 100.0F);  // of the tokens before, which are forgotten
  SerialTeam team;
  const auto output = [&](const GatedTrial<float>& from) {
    std::vector<float> out(from.values.size());
    auto arguments = from.arguments();
    arguments.out = from.rows_of(out, 6);
    const std::size_t bytes = gated_state_forward_bytes<float>(from.sizes, 1);
    std::vector<std::max_align_t> space(bytes / sizeof(std::max_align_t) + 8);
    const auto address = reinterpret_cast<std::uintptr_t>(space.data());
    gated_state_forward<float>(from.sizes, arguments, team,
                               reinterpret_cast<void*>((address + 63) / 64 * 64), bytes);
    return out;
  };
  const auto a = output(trial), b = output(later);
  CHECK(std::equal(a.begin() + 20 * 6, a.begin() + 40 * 6, b.begin() + 20 * 6));
  CHECK_FALSE(std::equal(a.begin(), a.begin() + 20 * 6, b.begin()));
}

}  // namespace attnbench::kernels
