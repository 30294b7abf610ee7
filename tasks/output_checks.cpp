#include "tasks/output_checks.hpp"

#include <time.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <map>
#include <sstream>
#include <thread>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "attention/torch/cuda.hpp"
#include "attention/torch/execution.hpp"

namespace attnbench::tasks {
namespace {

XXH128_hash_t hash_of(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach().contiguous();
  return XXH3_128bits(plain.data_ptr(), plain.nbytes());
}

/// Integers of the numbers' size, so that NaN can be compared.
at::Tensor as_integers(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach().contiguous();
  switch (plain.element_size()) {
    case 2:
      return plain.view(at::kShort);
    case 4:
      return plain.view(at::kInt);
    case 8:
      return plain.view(at::kLong);
    default:
      return plain;
  }
}

/// "float32" where LibTorch says "Float".
std::string dtype_name(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "float32";
    case at::kDouble:
      return "float64";
    case at::kHalf:
      return "float16";
    case at::kBFloat16:
      return "bfloat16";
    default:
      return at::toString(type);
  }
}

/// Mean squares of rows, in a dtype wide enough for them.
at::Tensor mean_squares(const at::Tensor& tensor) {
  const auto wide = tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  return tensor.detach().to(wide).square().mean(-1).to(at::kDouble);
}

/// The error of each row over its size: one number for each index before the last.
at::Tensor row_errors(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor size = mean_squares(b);
  const at::Tensor least = size.mean().clamp_min(1e-300);
  return (mean_squares(a.detach() - b.detach()) / at::maximum(size, least)).sqrt();
}

using std::chrono::milliseconds;

/// Threads of a pool spin for a few milliseconds before they sleep.
constexpr milliseconds spinning{5};
constexpr milliseconds watched{10};
/// CPU time of one thread in `watched` above which it counts as working: far above what a thread
/// needs to end or to sleep, and far below what a thread gets beside another one on its CPU.
constexpr double busy_seconds = 1e-3;

/// The threads of this process.
std::set<int> thread_numbers() {
  std::set<int> numbers;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    const std::string name = entry.path().filename();
    int number = 0;
    std::from_chars(name.data(), name.data() + name.size(), number);
    numbers.insert(number);
  }
  return numbers;
}

/// CPU time of one thread so far; negative where it has ended. The id of such a clock is the
/// thread's, inverted, followed by three bits for "per thread, scheduled time".
double cpu_seconds(int thread) {
  const auto clock = static_cast<clockid_t>((~static_cast<unsigned>(thread) << 3) | 6U);
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return -1;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

ReadTensors read_by(const Mechanism& mechanism, const Inputs& inputs) {
  ReadTensors tensors(inputs.tensors.begin(), inputs.tensors.end());
  if (inputs.key_mask.defined()) tensors.emplace_back("key mask", inputs.key_mask);
  for (const auto& item : mechanism.named_parameters()) {
    tensors.emplace_back("parameter " + item.key(), item.value());
  }
  return tensors;
}

Snapshot::Snapshot(ReadTensors tensors) {
  for (auto& [name, tensor] : tensors) {
    if (!tensor.defined()) continue;
    Content content{name, tensor.detach(), {0, 0}, {}};
    if (tensor.device().is_cpu()) {
      const XXH128_hash_t hash = hash_of(tensor);
      content.hash[0] = hash.low64;
      content.hash[1] = hash.high64;
    } else {
      content.copy = content.tensor.clone();
    }
    contents_.push_back(std::move(content));
  }
}

std::string Snapshot::changed() const {
  for (const Content& content : contents_) {
    if (content.copy.defined()) {
      if (!same_bits(content.tensor, content.copy)) return content.name;
      continue;
    }
    const XXH128_hash_t hash = hash_of(content.tensor);
    if (hash.low64 != content.hash[0] || hash.high64 != content.hash[1]) return content.name;
  }
  return "";
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  return at::equal(as_integers(a), as_integers(b));
}

std::int64_t count_not_finite(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  const at::Tensor finite = at::isfinite(tensor.detach());
  if (finite.all().item<bool>()) return 0;
  return tensor.numel() - finite.sum().item<std::int64_t>();
}

std::string not_finite_in(const at::Tensor& tensor) {
  const std::int64_t count = count_not_finite(tensor);
  if (count == 0) return "";
  return "numbers that are not finite: " + std::to_string(count) + " of " +
         std::to_string(tensor.numel());
}

std::string form_mismatch(const at::Tensor& output, at::IntArrayRef shape, at::ScalarType type,
                          const at::Device& device) {
  if (!output.defined()) return "no output";
  std::ostringstream text;
  if (output.sizes() != shape) {
    text << "an output of " << output.sizes() << ", expected " << shape;
  } else if (output.scalar_type() != type) {
    text << "an output of " << dtype_name(output.scalar_type()) << ", expected "
         << dtype_name(type);
  } else if (output.device().type() != device.type()) {
    text << "an output on " << output.device().str() << ", expected " << device.str();
  }
  return text.str();
}

double root_mean_square_of(const at::Tensor& output) {
  const at::NoGradGuard no_grad;
  return mean_squares(output).mean().sqrt().item<double>();
}

Rows differing_rows(const at::Tensor& a, const at::Tensor& b, double bar, std::size_t most) {
  const at::NoGradGuard no_grad;
  const at::Tensor off = row_errors(a, b).reshape({-1});
  const std::int64_t count =
      std::min((off > bar).sum().item<std::int64_t>(), static_cast<std::int64_t>(most));
  if (count == 0) return {};
  const at::Tensor places = std::get<1>(off.topk(count)).cpu().contiguous();
  const std::int64_t heads = b.size(1);
  const std::int64_t tokens = b.size(2);
  Rows rows;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t place = places.data_ptr<std::int64_t>()[i];
    rows.push_back({place / tokens / heads, place / tokens % heads, place % tokens});
  }
  return rows;
}

std::int64_t count_differing_rows(const at::Tensor& a, const at::Tensor& b, double bar) {
  const at::NoGradGuard no_grad;
  return (row_errors(a, b) > bar).sum().item<std::int64_t>();
}

AfterCallCheck::AfterCallCheck() {
  AtenTeam().run([](int) {});
  // A BLAS with its own threads starts them again in a forked process, at its first large product.
  static const bool started = [] {
    const at::NoGradGuard no_grad;
    at::mm(at::ones({256, 256}),
           at::ones({256, 256}));  // not kept: it would count as memory in use
    return true;
  }();
  static_cast<void>(started);
  threads_ = thread_numbers();
}

std::string AfterCallCheck::failure(const at::Tensor& output) {
  const Snapshot returned({{"output", output}});
  synchronize(output.device().str());
  std::this_thread::sleep_for(spinning);
  std::map<int, double> before;
  for (const int thread : thread_numbers()) {
    if (threads_.count(thread) == 0) before[thread] = cpu_seconds(thread);
  }
  std::this_thread::sleep_for(watched);
  if (!returned.changed().empty()) return "its output changed after the call had returned";
  if (!output.device().is_cpu()) return "";  // threads of the device's driver may spin
  int busy = 0;
  for (const auto& [thread, seconds] : before) {
    const double now = cpu_seconds(thread);
    if (seconds >= 0 && now >= 0 && now - seconds > busy_seconds) ++busy;
  }
  if (busy > 0) {
    note_ = std::to_string(busy) + (busy == 1 ? " thread" : " threads") +
            " that it started went on working after the call had returned";
  }
  return "";
}

}  // namespace attnbench::tasks
