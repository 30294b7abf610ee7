#include "tasks/reference_rows.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <random>
#include <thread>

#include "attention/plugin/floating_point.hpp"
#include "attention/torch/draw.hpp"

namespace attnbench::tasks {

namespace {

/// The tokens t of sequences b that have rows, ordered by t, then b.
class RowTokens {
 public:
  RowTokens(const Problem& problem, const at::Tensor& real)
      : batch_(problem.batch), count_(problem.batch * problem.length) {
    if (!real.defined()) return;
    const at::Tensor shown =
        real.narrow(1, 0, problem.length).transpose(0, 1).to(at::kByte).cpu().contiguous();
    const auto* const values = shown.data_ptr<std::uint8_t>();
    for (std::int64_t i = 0; i < count_; ++i) {
      if (values[i] != 0) places_.push_back(i);
    }
    count_ = static_cast<std::int64_t>(places_.size());
    masked_ = true;
  }

  std::int64_t count() const { return count_; }
  reference::RowIndex row(std::int64_t index, std::int64_t head) const {
    const std::int64_t place = masked_ ? places_[static_cast<std::size_t>(index)] : index;
    return {place % batch_, head, place / batch_};
  }
  /// The sequences that have the token of `index`, the first or the last one.
  std::int64_t sequences_at(std::int64_t index) const {
    if (!masked_) return batch_;
    const std::int64_t token = row(index, 0).t;
    return std::count_if(places_.begin(), places_.end(),
                         [&](std::int64_t place) { return place / batch_ == token; });
  }

 private:
  std::int64_t batch_;
  std::int64_t count_;
  bool masked_ = false;
  std::vector<std::int64_t> places_;
};

}  // namespace

Rows sampled_rows(const Problem& problem, std::int64_t count, std::uint64_t seed,
                  const at::Tensor& real) {
  const RowTokens tokens(problem, real);
  const std::int64_t total = tokens.count() * problem.heads;
  count = std::min(count, total);
  if (count == 0) return {};
  const std::int64_t first_rows = tokens.sequences_at(0) * problem.heads;
  const std::int64_t last_rows = tokens.sequences_at(tokens.count() - 1) * problem.heads;
  std::mt19937_64 random(seed);
  Rows rows;
  for (std::int64_t i = 0; i < count; ++i) {
    // Strata of the flattened (t, b, h) keep the rows distinct; both ends are included.
    const std::int64_t begin = i * total / count;
    const std::int64_t end = (i + 1) * total / count;
    std::int64_t at = std::uniform_int_distribution<std::int64_t>(begin, end - 1)(random);
    if (i == 0) at = std::min(at, first_rows - 1);
    if (i == count - 1) at = std::max(at, total - last_rows);
    rows.push_back(tokens.row(at / problem.heads, at % problem.heads));
  }
  return rows;
}

bool is_real(const Inputs& inputs, const reference::RowIndex& row) {
  return !inputs.key_mask.defined() || inputs.key_mask[row.b][row.t].item<bool>();
}

namespace {

/// Converted in this thread rather than by LibTorch, whose threads keep the floating-point mode
/// they were started with.
std::vector<double> doubles(const at::Tensor& tensor) {
  const KeepDenormals exact;
  at::Tensor plain = tensor.detach().cpu().contiguous();
  if (plain.scalar_type() == at::kDouble) {
    return {plain.data_ptr<double>(), plain.data_ptr<double>() + plain.numel()};
  }
  if (plain.scalar_type() == at::kBFloat16) {
    // A bfloat16 is the upper half of a float32: a shift cannot flush it.
    const auto* halves = static_cast<const std::uint16_t*>(plain.data_ptr());
    std::vector<double> values(static_cast<std::size_t>(plain.numel()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint32_t bits = static_cast<std::uint32_t>(halves[i]) << 16;
      float value = 0;
      std::memcpy(&value, &bits, sizeof(value));
      values[i] = static_cast<double>(value);
    }
    return values;
  }
  if (plain.scalar_type() != at::kFloat) {
    plain = plain.to(at::kDouble);
    return {plain.data_ptr<double>(), plain.data_ptr<double>() + plain.numel()};
  }
  return {plain.data_ptr<float>(), plain.data_ptr<float>() + plain.numel()};
}

}  // namespace

reference::Array to_array(const at::Tensor& tensor) {
  reference::Array array;
  array.shape = tensor.sizes().vec();
  array.values = doubles(tensor);
  return array;
}

reference::ReferenceInputs to_reference(const Mechanism& mechanism, const Inputs& inputs) {
  reference::ReferenceInputs converted;
  for (const auto& [role, tensor] : inputs.tensors) converted.roles[role] = to_array(tensor);
  for (const auto& item : mechanism.named_parameters()) {
    converted.parameters[item.key()] = to_array(item.value());
  }
  for (const auto& item : mechanism.named_buffers()) {
    converted.parameters[item.key()] = to_array(item.value());
  }
  if (inputs.key_mask.defined()) {
    const at::Tensor mask = inputs.key_mask.cpu().to(at::kByte).contiguous();
    const auto* values = mask.data_ptr<std::uint8_t>();
    converted.key_mask.assign(values, values + mask.numel());
  }
  return converted;
}

std::vector<double> rows_of(const at::Tensor& output, const Rows& rows) {
  std::vector<double> values;
  for (const auto& row : rows) {
    const std::vector<double> one = doubles(output.detach()[row.b][row.h][row.t]);
    values.insert(values.end(), one.begin(), one.end());
  }
  return values;
}

namespace {

/// Which rows each thread asks the definition for. The rows of a head go to one thread, since many
/// definitions prepare a head's keys once; where there are fewer heads than threads, every n-th
/// row, since later rows of a causal mechanism cost more.
std::vector<std::vector<std::size_t>> shared_out(const Rows& rows, std::size_t threads) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::size_t>> heads;
  for (std::size_t i = 0; i < rows.size(); ++i) heads[{rows[i].b, rows[i].h}].push_back(i);
  std::vector<std::vector<std::size_t>> shares(threads);
  if (heads.size() < threads) {
    for (std::size_t i = 0; i < rows.size(); ++i) shares[i % threads].push_back(i);
    return shares;
  }
  std::vector<std::int64_t> tokens(threads, 0);
  for (const auto& [head, indices] : heads) {
    const auto least = std::min_element(tokens.begin(), tokens.end()) - tokens.begin();
    for (const std::size_t i : indices) {
      shares[static_cast<std::size_t>(least)].push_back(i);
      tokens[static_cast<std::size_t>(least)] += rows[i].t + 1;
    }
  }
  return shares;
}

}  // namespace

std::vector<double> reference_rows(const reference::Reference& reference, const Options& options,
                                   const Problem& problem, const reference::ReferenceInputs& inputs,
                                   const Rows& rows) {
  const KeepDenormals exact;
  const std::size_t count = rows.size();
  const auto width = static_cast<std::size_t>(problem.value_dim);
  const std::size_t threads =
      std::clamp<std::size_t>(static_cast<std::size_t>(at::get_num_threads()), 1, count);
  std::vector<double> values(count * width);
  std::vector<std::exception_ptr> failures(threads);
  const std::vector<std::vector<std::size_t>> shares = shared_out(rows, threads);
  const auto share = [&](std::size_t thread) {
    Rows mine;
    for (const std::size_t i : shares[thread]) mine.push_back(rows[i]);
    const std::vector<double> found = reference(options, problem, inputs, mine);
    for (std::size_t k = 0; k < mine.size(); ++k) {
      std::copy_n(found.begin() + static_cast<std::ptrdiff_t>(k * width), width,
                  values.begin() + static_cast<std::ptrdiff_t>(shares[thread][k] * width));
    }
  };
  std::vector<std::thread> workers;
  for (std::size_t index = 0; index < threads; ++index) {
    workers.emplace_back([&, index] {
      try {
        share(index);
      } catch (...) {
        failures[index] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : workers) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return values;
}

at::Tensor seeded_normal(at::IntArrayRef shape, std::uint64_t seed, double scale,
                         at::ScalarType type, const std::string& device) {
  const at::Device place(device);
  const at::Generator generator = seeded_generator(seed, place);
  const auto wide = type == at::kDouble ? at::kDouble : at::kFloat;
  return at::randn(shape, generator, at::TensorOptions(wide).device(place)).mul_(scale).to(type);
}

}  // namespace attnbench::tasks
