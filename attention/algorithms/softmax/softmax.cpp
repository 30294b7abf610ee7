#include "attention/algorithms/softmax/softmax.hpp"

#include <algorithm>
#include <limits>

#include "attention/algorithms/tokens/tokens.hpp"
#include "attention/torch/product.hpp"

namespace attnbench {
namespace {

/// True where a query must not see a key, broadcastable to [B, H, T, S]; undefined = sees all.
at::Tensor hidden(const SoftmaxCall& call) {
  at::Tensor mask;
  if (!call.sees_all()) {
    const auto integers = call.q.options().dtype(at::kLong);
    const auto distance = at::arange(call.key_length(), integers).unsqueeze(0) -
                          at::arange(call.length(), integers).unsqueeze(1) - call.offset;
    mask = (distance < -call.left).logical_or_(distance > call.right);
  }
  const auto hide = [&mask](const at::Tensor& more) {
    mask = mask.defined() ? mask.logical_or(more) : more;
  };
  if (call.unseen.defined()) hide(call.unseen);
  if (call.key_mask.defined()) hide(call.key_mask.logical_not().unsqueeze(1).unsqueeze(1));
  return mask;
}

/// One ring buffer along dimension `dim` of its tensor, before token `position` is stored.
struct Ring {
  at::Tensor& slots;
  std::int64_t dim;
  std::int64_t position;

  std::int64_t size() const { return slots.size(dim); }
  at::Tensor places(std::int64_t begin, std::int64_t end) const {
    return at::arange(begin, end, at::TensorOptions(at::kLong).device(slots.device()))
        .remainder(size());
  }
  /// The last `count` tokens before `position`, oldest first, then `fresh`.
  at::Tensor followed_by(const at::Tensor& fresh, std::int64_t count) const {
    if (count == 0) return fresh;
    return at::cat({slots.index_select(dim, places(position - count, position)), fresh}, dim);
  }
  void take(const at::Tensor& fresh) {
    const std::int64_t count = std::min(fresh.size(dim), size());
    const std::int64_t end = position + fresh.size(dim);
    slots.index_copy_(dim, places(end - count, end),
                      fresh.narrow(dim, fresh.size(dim) - count, count));
  }
};

}  // namespace

bool SoftmaxCall::sees_all() const {
  return length() - 1 + offset - left <= 0 && offset + right >= key_length() - 1;
}

bool SoftmaxCall::may_see_none() const {
  if (key_mask.defined() || unseen.defined() || key_length() == 0) return true;
  return offset + right < 0 || length() - 1 + offset - left > key_length() - 1;
}

SoftmaxCall SoftmaxCall::without_padding() const {
  SoftmaxCall clean = *this;
  clean.k = attnbench::without_padding(k, key_mask);
  clean.v = attnbench::without_padding(v, key_mask);
  return clean;
}

at::Tensor SoftmaxCall::added_decay(std::int64_t t0, std::int64_t rows, std::int64_t s0,
                                    std::int64_t keys, at::ScalarType type) const {
  const at::Tensor here = log_decay.narrow(2, t0 + offset, rows).unsqueeze(-1);
  return (here - log_decay.narrow(2, s0, keys).unsqueeze(-2)).to(type);
}

at::Tensor softmax_composite(const SoftmaxCall& given) {
  const SoftmaxCall call = given.without_padding();
  const auto heads = call.q.size(1), kv_heads = call.k.size(1);
  at::Tensor added;  // made first, so that what it takes in double is free before there are scores
  if (call.log_decay.defined()) {
    added = call.added_decay(0, call.length(), 0, call.key_length(),
                             compute_type(call.q.scalar_type()));
  }
  auto scores = unfolded_heads(
      product(folded_heads(call.q * call.scale, kv_heads), call.k.transpose(-2, -1)), heads);
  if (added.defined()) scores = scores.to(added.scalar_type()).add_(added);
  added.reset();
  const auto mask = hidden(call);
  at::Tensor blind;
  if (mask.defined()) {
    scores.masked_fill_(mask, -std::numeric_limits<double>::infinity());
    if (call.may_see_none()) {
      // An empty softmax is 0/0, in its gradient too: such rows get finite scores, and their output
      // is set to 0 afterwards.
      blind = mask.all(-1, true);
      scores.masked_fill_(blind, 0.0);
    }
  }
  auto output = [&] {
    const auto weights = at::softmax(scores, -1);
    scores.reset();
    return unfolded_heads(product(folded_heads(weights.to(call.v.scalar_type()), kv_heads), call.v),
                          heads);
  }();
  return blind.defined() ? output.masked_fill(blind, 0.0) : output;
}

void add_cache(State& state, const Problem& problem, std::int64_t batch, std::int64_t capacity,
               const at::TensorOptions& tensor) {
  state.tensors["key"] = at::zeros({batch, problem.kv_heads, capacity, problem.head_dim}, tensor);
  state.tensors["value"] =
      at::zeros({batch, problem.kv_heads, capacity, problem.value_dim}, tensor);
}

void take_into_cache(const std::string& mechanism, State& state, const NewTokens& tokens,
                     at::Tensor& key_mask) {
  const at::NoGradGuard no_grad;
  const at::Tensor first = *tokens.begin()->second;
  const auto begin = state.position;
  const auto count = first.size(2);
  const auto capacity = state[tokens.begin()->first].size(2);
  if (begin + count > capacity) {
    throw UsageError(mechanism + ": the state has room for " + std::to_string(capacity) +
                     " tokens, not for " + std::to_string(begin + count));
  }
  if (key_mask.defined() && state.tensors.count("key_mask") == 0) {
    state.tensors["key_mask"] = at::ones({first.size(0), capacity}, key_mask.options());
  }
  state.position = begin + count;
  for (const auto& [name, fresh] : tokens) {
    state[name].narrow(2, begin, count).copy_(*fresh);
    *fresh = state[name].narrow(2, 0, state.position);
  }
  if (state.tensors.count("key_mask") == 0) return;
  auto& mask = state["key_mask"];
  if (key_mask.defined()) mask.narrow(1, begin, count).copy_(key_mask);
  key_mask = mask.narrow(1, 0, state.position);
}

void take_into_cache(const std::string& mechanism, State& state, SoftmaxCall& call) {
  const at::NoGradGuard no_grad;
  NewTokens tokens{{"key", &call.k}, {"value", &call.v}};
  if (call.log_decay.defined()) {
    if (state.position > 0) {
      call.log_decay = call.log_decay + state["log_decay"].narrow(2, state.position - 1, 1);
    }
    tokens.emplace_back("log_decay", &call.log_decay);
  }
  take_into_cache(mechanism, state, tokens, call.key_mask);
}

void add_rings(State& state, const Problem& problem, std::int64_t batch, std::int64_t capacity,
               std::int64_t left, const at::TensorOptions& tensor) {
  const std::int64_t slots = std::min(capacity, left + 1);
  state.tensors["key"] = at::zeros({batch, problem.kv_heads, slots, problem.head_dim}, tensor);
  state.tensors["value"] = at::zeros({batch, problem.kv_heads, slots, problem.value_dim}, tensor);
}

void take_into_rings(State& state, SoftmaxCall& call) {
  const at::NoGradGuard no_grad;
  if (call.key_mask.defined() && state.tensors.count("key_mask") == 0) {
    state.tensors["key_mask"] =
        at::ones({call.k.size(0), state["key"].size(2)}, call.key_mask.options());
  }
  const auto count = call.length();
  const auto past = std::min({state.position, call.left, state["key"].size(2)});
  const auto advance_one = [&](const char* name, std::int64_t dim, at::Tensor& fresh) {
    Ring ring{state[name], dim, state.position};
    if (count == 1) {
      // The order of keys does not matter to softmax: the ring buffer is used without a copy.
      ring.take(fresh);
      fresh = ring.slots.narrow(dim, 0, std::min(state.position + 1, ring.size()));
    } else {
      auto all = ring.followed_by(fresh, past);
      ring.take(fresh);
      fresh = all;
    }
  };
  advance_one("key", 2, call.k);
  advance_one("value", 2, call.v);
  if (state.tensors.count("key_mask") != 0) {
    if (!call.key_mask.defined()) {
      call.key_mask = at::ones({call.k.size(0), count}, state["key_mask"].options());
    }
    advance_one("key_mask", 1, call.key_mask);
  }
  call.offset = call.key_length() - count;
}

void save(torch::autograd::AutogradContext* context, const SavedSoftmax& saved) {
  const SoftmaxCall& call = saved.call;
  context->save_for_backward({call.q, call.k, call.v, saved.out, saved.lse, call.log_decay});
  context->saved_data["scale"] = call.scale;
  context->saved_data["band"] = std::vector<std::int64_t>{call.left, call.right, call.offset};
  context->saved_data["key_mask"] = call.key_mask;
}

SavedSoftmax restore(torch::autograd::AutogradContext* context) {
  const auto tensors = context->get_saved_variables();
  const auto band = context->saved_data.at("band").toIntVector();
  const SoftmaxCall call{tensors[0],
                         tensors[1],
                         tensors[2],
                         context->saved_data.at("key_mask").toTensor(),
                         context->saved_data.at("scale").toDouble(),
                         band[0],
                         band[1],
                         band[2],
                         tensors[5]};
  return {call, tensors[3], tensors[4]};
}

}  // namespace attnbench
