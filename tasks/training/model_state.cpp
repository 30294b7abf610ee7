// The model with a state.
#include "attention/torch/autocast.hpp"
#include "tasks/training/model.hpp"

namespace attnbench::tasks::training {

std::int64_t ModelState::bytes() const {
  std::int64_t sum = 0;
  for (const State& block : blocks) sum += block.bytes();
  return sum;
}

ModelState ModelState::clone() const {
  ModelState copy;
  copy.position = position;
  for (const State& block : blocks) copy.blocks.push_back(block.clone());
  return copy;
}

/// A state holds what mixes get: numbers in the dtype of products.
at::TensorOptions Model::state_options() const {
  return embedding_.options().requires_grad(false).dtype(
      products_.value_or(embedding_.scalar_type()));
}

Support Model::state_support() const {
  if (classifier_) {
    return Support::no("a model that classifies whole sequences does not predict the next token");
  }
  if (decoder_) {
    return Support::no("the model reads a whole sequence before its decoder answers");
  }
  if (mixing(0)->mechanism().problem.pattern != Pattern::causal) {
    return Support::no("a bidirectional model sees later tokens; say pattern causal");
  }
  try {
    for (const auto& block : blocks_) block->empty_state(1, 1, state_options());
  } catch (const UnsupportedError& error) {
    return Support::no(error.what());
  }
  return {};
}

ModelState Model::empty_state(std::int64_t batch, std::int64_t capacity) const {
  if (const Support support = state_support(); !support) throw UnsupportedError(support.reason);
  ModelState state;
  for (const auto& block : blocks_) {
    state.blocks.push_back(block->empty_state(batch, capacity, state_options()));
  }
  return state;
}

at::Tensor Model::features(const at::Tensor& input, ModelState& state) {
  const AutocastScope scope(embedding_.device(), products_);
  Stream stream = start(input, state.position);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    stream = blocks_[i]->forward(stream, {}, {}, &state.blocks.at(i));
  }
  state.position += input.size(1);
  return last_ ? last_->forward(stream.tokens) : stream.tokens;
}

at::Tensor Model::step(const at::Tensor& input, ModelState& state) {
  const at::NoGradGuard no_grad;
  return head(features(input, state));
}

at::Tensor Model::read(const at::Tensor& input, ModelState& state) {
  const at::NoGradGuard no_grad;
  return head(features(input, state).narrow(1, input.size(1) - 1, 1));
}

std::optional<std::int64_t> Model::max_tokens() const {
  if (position_kind_ != Positions::learned) return std::nullopt;
  return positions_.size(0);
}

StateBytes Model::state_bytes(std::int64_t tokens) const {
  StateBytes bytes;
  bool all = true;
  for (const auto& block : blocks_) {
    try {
      bytes[block->has_mechanism() ? "mechanism" : "convolution"] +=
          block->empty_state(1, tokens, state_options()).bytes();
    } catch (const UnsupportedError&) {
      all = false;  // without the state of one block there is none of a model
    }
  }
  if (!all) bytes.erase("mechanism");
  return bytes;
}

}  // namespace attnbench::tasks::training
