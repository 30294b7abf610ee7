// The selective state space by its definition, a token and a channel at a time: Gu and Dao 2023,
// algorithm 2, with the discretisation of its code,
//   h_n = exp(-exp(a_log_n) delta) h_n + delta x_t B_t,n,  y_t = sum_n C_t,n h_n + skip x_t,
//   delta = softplus(z_t + bias),
// z_t a number of the channel, or sum_r step_weight_r z_t,r; and with selective = false, algorithm
// 1: z_t = 0, and B and C parameters. With turning, -exp(a_log_n) + i turn_n in place of
// -exp(a_log_n), and 2 Re(C_n h_n), C_n = read_weight_n + i read_turn_n. B and C of head h are
// those of its group; tokens that are not there give 0. With output = gated, y_t times g_t
// sigmoid(g_t).
#include <cmath>
#include <complex>

#include "attention/reference/recurrence.hpp"

namespace attnbench::reference {
namespace {

/// One channel of one head, and what its tokens say.
struct Channel {
  const ReferenceInputs& inputs;
  std::int64_t h, d;      ///< of head h, channel d
  std::int64_t group;     ///< of heads with the same B and C
  std::int64_t rows;      ///< N
  std::int64_t channels;  ///< of a head
  std::int64_t rank;
  bool selective, turns;

  /// A parameter [H, channels], or [H, rows, channels] at row n.
  double parameter(const char* name) const {
    return inputs.parameters.at(name).values[static_cast<std::size_t>(h * channels + d)];
  }
  double parameter(const char* name, std::int64_t n, std::int64_t count) const {
    const std::int64_t place = (h * count + n) * channels + d;
    return inputs.parameters.at(name).values[static_cast<std::size_t>(place)];
  }
  double step(const RowIndex& at) const {
    double said = 0;
    if (selective && rank == 0) said = inputs.roles.at("time_step").row(at.b, h, at.t)[d];
    for (std::int64_t r = 0; r < rank; ++r) {
      said += parameter("step_weight", r, rank) *
              inputs.roles.at("time_step").row(at.b, group, at.t)[r];
    }
    return softplus(said + parameter("bias"));
  }
  double input(const RowIndex& at, std::int64_t n) const {
    return selective ? inputs.roles.at("key").row(at.b, group, at.t)[n]
                     : parameter("input_weight", n, rows);
  }
  std::complex<double> read(const RowIndex& at, std::int64_t n) const {
    if (selective) return inputs.roles.at("query").row(at.b, group, at.t)[n];
    return {parameter("read_weight", n, rows), turns ? parameter("read_turn", n, rows) : 0};
  }
  std::complex<double> exponent(std::int64_t n) const {
    return {-std::exp(parameter("a_log", n, rows)), turns ? parameter("turn", n, rows) : 0};
  }
};

std::vector<double> mamba_rows(const Options& options, const Problem& problem,
                               const ReferenceInputs& inputs, const std::vector<RowIndex>& rows) {
  const Array& value = inputs.roles.at("value");
  const std::int64_t width = value.shape[3], count = options.integer("state");
  const auto channel = [&](const RowIndex& at, std::int64_t d) {
    return Channel{inputs,
                   at.h,
                   d,
                   at.h / (problem.heads / problem.kv_heads),
                   count,
                   width,
                   options.integer("step_rank"),
                   options.boolean("selective"),
                   options.text("turning") != "none"};
  };
  const auto advance = [&](const RowIndex& at, std::vector<double>& state) {
    for (std::int64_t d = 0; d < width; ++d) {
      const Channel own = channel(at, d);
      const double step = own.step(at);
      for (std::int64_t n = 0; n < count; ++n) {
        double* const number = state.data() + 2 * (d * count + n);  // its real part, and that of i
        const auto next = std::exp(own.exponent(n) * step) * std::complex(number[0], number[1]) +
                          step * value.row(at.b, at.h, at.t)[d] * own.input(at, n);
        number[0] = next.real();
        number[1] = next.imag();
      }
    }
  };
  const auto read = [&](const RowIndex& at, const std::vector<double>& state) {
    std::vector<double> y(static_cast<std::size_t>(width), 0.0);
    if (!inputs.visible(at.b, at.t, problem.key_length)) return y;
    for (std::int64_t d = 0; d < width; ++d) {
      const Channel own = channel(at, d);
      double& sum = y[static_cast<std::size_t>(d)];
      sum = own.parameter("skip") * value.row(at.b, at.h, at.t)[d];
      for (std::int64_t n = 0; n < count; ++n) {
        const double* const number = state.data() + 2 * (d * count + n);
        const auto found = own.read(at, n) * std::complex(number[0], number[1]);
        sum += own.turns ? 2 * found.real() : found.real();
      }
      if (options.text("output") != "gated") continue;
      const double gate = inputs.roles.at("output_gate").row(at.b, at.h, at.t)[d];
      sum *= gate / (1 + std::exp(-gate));
    }
    return y;
  };
  const std::vector<double> start(static_cast<std::size_t>(2 * width * count), 0.0);
  return rows_of_recurrence(problem, inputs, rows, start, advance, read);
}

}  // namespace

Reference mamba() { return mamba_rows; }

}  // namespace attnbench::reference
