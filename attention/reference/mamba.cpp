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

/// The roles and parameters, looked up once; null where the options leave one out.
struct Given {
  explicit Given(const ReferenceInputs& inputs)
      : query(found(inputs.roles, "query")),
        key(found(inputs.roles, "key")),
        time_step(found(inputs.roles, "time_step")),
        step_weight(found(inputs.parameters, "step_weight")),
        bias(found(inputs.parameters, "bias")),
        a_log(found(inputs.parameters, "a_log")),
        turn(found(inputs.parameters, "turn")),
        input_weight(found(inputs.parameters, "input_weight")),
        read_weight(found(inputs.parameters, "read_weight")),
        read_turn(found(inputs.parameters, "read_turn")),
        skip(found(inputs.parameters, "skip")) {}
  const Array *query, *key, *time_step;
  const Array *step_weight, *bias, *a_log, *turn, *input_weight, *read_weight, *read_turn, *skip;

 private:
  static const Array* found(const std::map<std::string, Array>& arrays, const char* name) {
    const auto place = arrays.find(name);
    return place == arrays.end() ? nullptr : &place->second;
  }
};

/// One channel of one head, and what its tokens say.
struct Channel {
  const Given& given;
  std::int64_t h, d;      ///< of head h, channel d
  std::int64_t group;     ///< of heads with the same B and C
  std::int64_t rows;      ///< N
  std::int64_t channels;  ///< of a head
  std::int64_t rank;
  bool selective, turns;

  /// Of a parameter [H, count, channels] the row n.
  double of(const Array* parameter, std::int64_t n = 0, std::int64_t count = 1) const {
    return parameter->values[static_cast<std::size_t>((h * count + n) * channels + d)];
  }
  double step(const RowIndex& at) const {
    double said = 0;
    if (selective && rank == 0) said = given.time_step->row(at.b, h, at.t)[d];
    for (std::int64_t r = 0; r < rank; ++r) {
      said += of(given.step_weight, r, rank) * given.time_step->row(at.b, group, at.t)[r];
    }
    return softplus(said + of(given.bias));
  }
  double input(const RowIndex& at, std::int64_t n) const {
    return selective ? given.key->row(at.b, group, at.t)[n] : of(given.input_weight, n, rows);
  }
  std::complex<double> read(const RowIndex& at, std::int64_t n) const {
    if (selective) return given.query->row(at.b, group, at.t)[n];
    return {of(given.read_weight, n, rows), turns ? of(given.read_turn, n, rows) : 0};
  }
  std::complex<double> exponent(std::int64_t n) const {
    return {-std::exp(of(given.a_log, n, rows)), turns ? of(given.turn, n, rows) : 0};
  }
};

std::vector<double> mamba_rows(const Options& options, const Problem& problem,
                               const ReferenceInputs& inputs, const std::vector<RowIndex>& rows) {
  const Array& value = inputs.roles.at("value");
  const Given given(inputs);
  const std::int64_t width = value.shape[3], count = options.integer("state");
  const std::int64_t rank = options.integer("step_rank");
  const std::int64_t shared = problem.heads / problem.kv_heads;
  const bool selective = options.boolean("selective"), turns = options.text("turning") != "none";
  const auto channel = [&](const RowIndex& at, std::int64_t d) {
    return Channel{given, at.h, d, at.h / shared, count, width, rank, selective, turns};
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
      sum = own.of(given.skip) * value.row(at.b, at.h, at.t)[d];
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
