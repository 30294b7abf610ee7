#include "attention/algorithms/tokens/tokens.hpp"

#include <cmath>
#include <deque>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

namespace attnbench {

using at::Tensor;

namespace {

/// first, tokens, pairs, base, dtype.
using RotaryKey = std::tuple<std::int64_t, std::int64_t, std::int64_t, double, at::ScalarType>;

/// The tables of the last calls on the CPU.
class KeptTables {
 public:
  std::optional<RotaryTable> find(const RotaryKey& key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [kept, table] : tables_) {
      if (kept == key) return table;
    }
    return std::nullopt;
  }

  void keep(const RotaryKey& key, const RotaryTable& table) {
    const std::int64_t count = numbers(table);
    if (count > kMostNumbers) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    tables_.emplace_front(key, table);
    total_ += count;
    while (total_ > kMostNumbers || tables_.size() > kMostTables) {
      total_ -= numbers(tables_.back().second);
      tables_.pop_back();
    }
  }

 private:
  static constexpr std::int64_t kMostNumbers = std::int64_t{1} << 20;
  static constexpr std::size_t kMostTables = 8;

  static std::int64_t numbers(const RotaryTable& table) { return 2 * table.cosine.numel(); }

  std::mutex mutex_;
  std::deque<std::pair<RotaryKey, RotaryTable>> tables_;  ///< the latest first
  std::int64_t total_ = 0;
};

KeptTables& kept_tables() {
  // Never destroyed: LibTorch's allocator may be gone before a static object.
  static KeptTables* const tables = new KeptTables;
  return *tables;
}

}  // namespace

at::ScalarType compute_type(at::ScalarType type) {
  return type == at::kHalf || type == at::kBFloat16 ? at::kFloat : type;
}

at::TensorOptions compute_type(const at::TensorOptions& options) {
  return options.dtype(compute_type(c10::typeMetaToScalarType(options.dtype())));
}

bool gradient_wanted(const std::vector<Tensor>& tensors) {
  return at::GradMode::is_enabled() &&
         std::any_of(tensors.begin(), tensors.end(),
                     [](const Tensor& x) { return x.defined() && x.requires_grad(); });
}

Tensor padded_tokens(const Tensor& key_mask) {
  return key_mask.defined() ? key_mask.logical_not().unsqueeze(1).unsqueeze(-1) : Tensor();
}

Tensor without_padding(const Tensor& x, const Tensor& key_mask, double value) {
  return key_mask.defined() ? x.masked_fill(padded_tokens(key_mask), value) : x;
}

Tensor folded_heads(const Tensor& x, std::int64_t kv_heads) {
  return x.reshape({x.size(0), kv_heads, x.size(1) / kv_heads * x.size(2), x.size(3)});
}

Tensor unfolded_heads(const Tensor& x, std::int64_t heads) {
  return x.reshape({x.size(0), heads, x.size(2) * x.size(1) / heads, x.size(3)});
}

Tensor repeated_heads(const Tensor& x, std::int64_t heads) {
  const std::int64_t sharing = heads / x.size(1);
  return x.unsqueeze(2).expand({-1, -1, sharing, -1, -1}).flatten(1, 2);
}

RotaryTable rotary_table(const Tensor& x, std::int64_t first, double base) {
  const std::int64_t pairs = x.size(3) / 2;
  const auto type = compute_type(x.scalar_type());
  // A table made on one CUDA stream may not be ready on another.
  const bool keeps = x.device().is_cpu();
  const RotaryKey key{first, x.size(2), pairs, base, type};
  if (keeps) {
    if (const auto known = kept_tables().find(key)) return *known;
  }
  // Tensors made in inference mode are of no use to a later call that records gradients.
  const c10::InferenceMode normal(false);
  const auto exact = at::TensorOptions(at::kDouble).device(x.device());
  const Tensor speeds = (at::arange(pairs, exact) *
                         (-std::log(base) / static_cast<double>(std::max<std::int64_t>(pairs, 1))))
                            .exp();
  const Tensor angles = at::arange(first, first + x.size(2), exact).unsqueeze(-1) * speeds;
  const RotaryTable table{angles.cos().to(type), angles.sin().to(type)};
  if (keeps) kept_tables().keep(key, table);
  return table;
}

Tensor rotated(const Tensor& x, const RotaryTable& table, Rotation rotation) {
  const std::int64_t pairs = x.size(3) / 2;
  if (pairs == 0) return x;
  const auto type = compute_type(x.scalar_type());
  const Tensor& cosine = table.cosine;
  const Tensor sine = rotation == Rotation::forward ? table.sine : -table.sine;
  const Tensor even = x.narrow(3, 0, 2 * pairs).to(type).unflatten(3, {pairs, 2});
  const Tensor a = even.select(-1, 0);
  const Tensor b = even.select(-1, 1);
  const Tensor result =
      at::stack({a * cosine - b * sine, a * sine + b * cosine}, -1).flatten(-2).to(x.scalar_type());
  if (x.size(3) == 2 * pairs) return result;
  return at::cat({result, x.narrow(3, 2 * pairs, 1)}, 3);
}

Tensor rotated(const Tensor& x, std::int64_t first, double base, Rotation rotation) {
  return x.size(3) < 2 ? x : rotated(x, rotary_table(x, first, base), rotation);
}

std::vector<Piece> pieces_of(std::int64_t length, std::int64_t size, std::int64_t most) {
  std::vector<Piece> pieces;
  for (std::int64_t begin = 0; begin < length; begin += pieces.back().tokens()) {
    const std::int64_t whole = std::min((length - begin) / size, most);
    pieces.push_back(whole > 0 ? Piece{begin, whole, size} : Piece{begin, 1, length - begin});
  }
  return pieces;
}

Tensor part_of(const Tensor& whole, const Piece& piece, at::ScalarType type) {
  return whole.narrow(2, piece.begin, piece.tokens()).to(type).flatten(0, 1);
}

void put_part(const Tensor& whole, const Piece& piece, const Tensor& part) {
  const Tensor place = whole.narrow(2, piece.begin, piece.tokens());
  place.copy_(part.view(place.sizes()));
}

Tensor rows_of(const Tensor& whole, std::int64_t begin, std::int64_t count, at::ScalarType type) {
  return whole.narrow(2, begin, count).to(type).flatten(0, 1).transpose(0, 1).contiguous();
}

void put_rows(const Tensor& whole, std::int64_t begin, const Tensor& rows) {
  whole.narrow(2, begin, rows.size(0))
      .copy_(rows.transpose(0, 1).unflatten(0, at::IntArrayRef{whole.size(0), whole.size(1)}));
}

Tensor in_blocks(const Tensor& x, std::int64_t size, double filling) {
  const std::int64_t blocks = (x.size(1) + size - 1) / size;
  return at::constant_pad_nd(x, {0, 0, 0, blocks * size - x.size(1)}, filling)
      .unflatten(1, at::IntArrayRef{blocks, size});
}

Tensor carry_over(Tensor each, const Tensor& decay, Tensor past, bool reversed) {
  const auto count = each.size(1);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto place = reversed ? count - 1 - i : i;
    Tensor slot = each.select(1, place);
    const Tensor next =
        decay.defined() ? at::addcmul(slot, past, decay.select(1, place)) : slot + past;
    slot.copy_(past);
    past = next;
  }
  return past;
}

}  // namespace attnbench
