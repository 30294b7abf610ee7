// How a trained language model uses the states of a mixture of latents.
#pragma once

#include <optional>
#include <string>

#include "core/result/training.hpp"
#include "tasks/training/data.hpp"
#include "tasks/training/model.hpp"

namespace attnbench::tasks::lm {

/// States of a head whose probabilities a record holds: those that Latte v2, Figure 6 shows.
inline constexpr std::int64_t shown_states = 17;

/// The probabilities p(l | t) = softmax over l of the role `query_logits`, scaled as the mechanism
/// does: what the mix of the `index`-th block with a mechanism makes of `tokens` [B, T]. [B, H, T,
/// states] in double, on the CPU; undefined where the mechanism has no such role.
at::Tensor state_probabilities(training::Model& model, std::size_t index, const at::Tensor& tokens);

/// A byte in ASCII: itself, "\\" for a backslash, "\n", "\r" and "\t", otherwise "\xHH".
std::string byte_text(std::int64_t byte);
/// The id of a token that is no byte: "50256".
std::string id_text(std::int64_t id);

/// The probabilities of the first `tokens` tokens of the first test sequence, in the first head of
/// the last block with a mechanism, and the share of states in use. Nothing where `tokens` is 0, or
/// the mechanism is no mixture of latents.
std::optional<result::LatentProbabilities> latent_probabilities(
    training::Model& model, const training::DataSet& data, std::int64_t tokens,
    std::string (*text)(std::int64_t) = byte_text);

}  // namespace attnbench::tasks::lm
