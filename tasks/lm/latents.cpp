#include "tasks/lm/latents.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace attnbench::tasks::lm {
namespace {

/// Whether state 0 is a window: it has a probability and, unlike a latent, no scores of keys.
bool begins_with_window(const Inputs& inputs) {
  const auto keys = inputs.tensors.find("key_logits");
  return keys != inputs.tensors.end() && keys->second.size(3) < inputs["query_logits"].size(3);
}

/// The number of (head, state) whose mean over the tokens is above half of the uniform one.
std::int64_t count_in_use(const at::Tensor& probabilities) {
  const at::Tensor means = probabilities.mean(2);
  return means.gt(0.5 / static_cast<double>(means.size(2))).sum().item<std::int64_t>();
}

std::vector<std::vector<double>> first_rows(const at::Tensor& probabilities, std::int64_t tokens) {
  const std::int64_t states = std::min(probabilities.size(3), shown_states);
  const at::Tensor shown =
      probabilities[0][0].narrow(0, 0, tokens).narrow(1, 0, states).contiguous();
  std::vector<std::vector<double>> rows;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const double* const row = shown.data_ptr<double>() + t * states;
    rows.emplace_back(row, row + states);
  }
  return rows;
}

}  // namespace

at::Tensor state_probabilities(training::Model& model, std::size_t index,
                               const at::Tensor& tokens) {
  const at::NoGradGuard no_grad;
  const Inputs inputs = model.mix_inputs(index, tokens);
  const auto logits = inputs.tensors.find("query_logits");
  if (logits == inputs.tensors.end()) return {};
  const Options& options = model.mechanism(index).options;
  const double scale = options.has("logit_scale") ? options.number("logit_scale") : 1;
  return at::softmax(logits->second.to(at::kDouble) * scale, -1).cpu();
}

std::optional<result::LatentProbabilities> latent_probabilities(training::Model& model,
                                                                const training::DataSet& data,
                                                                std::int64_t tokens,
                                                                std::string (*text)(std::int64_t)) {
  if (tokens == 0 || model.mixes() == 0) return std::nullopt;
  const at::Tensor sequence = data.questions(training::Split::test, 0, {0}).tokens;
  const at::Tensor there = sequence.to(model.parameters().front().device());
  const std::size_t last = model.mixes() - 1;
  at::Tensor shown;
  std::int64_t used = 0, states = 0;
  for (std::size_t i = 0; i <= last; ++i) {
    shown = state_probabilities(model, i, there);
    if (!shown.defined()) return std::nullopt;
    used += count_in_use(shown);
    states += shown.size(1) * shown.size(3);
  }
  result::LatentProbabilities found;
  found.block = found.blocks = static_cast<std::int64_t>(model.mixes());
  found.head = 1;
  found.heads = shown.size(1);
  found.states = shown.size(3);
  const at::NoGradGuard no_grad;
  found.first_state = begins_with_window(model.mix_inputs(last, there)) ? "window" : "latent";
  for (std::int64_t t = 0; t < tokens; ++t) {
    found.tokens.push_back(text(sequence[0][t].item<std::int64_t>()));
  }
  found.probabilities = first_rows(shown, tokens);
  found.in_use = static_cast<double>(used) / static_cast<double>(states);
  found.length = sequence.size(1);
  return found;
}

std::string id_text(std::int64_t id) { return std::to_string(id); }

std::string byte_text(std::int64_t byte) {
  switch (byte) {
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      break;
  }
  if (byte >= 0x20 && byte < 0x7F) return {static_cast<char>(byte)};
  std::array<char, 16> escaped{};
  std::snprintf(escaped.data(), escaped.size(), "\\x%02x", static_cast<unsigned>(byte & 0xFF));
  return escaped.data();
}

}  // namespace attnbench::tasks::lm
