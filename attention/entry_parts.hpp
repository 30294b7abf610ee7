// Parts that many entries share: roles, options, support checks and module construction.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "attention/mechanism.hpp"

namespace attnbench {

/// The roles query [B, H, T, D], key [B, G, S, D] and value [B, G, S, Dv].
std::vector<Role> query_key_value(const Problem& problem);

/// The options latents_total and latents_per_head, of which a user gives one, and then `others`.
std::vector<Option> latents_options(std::vector<Option> others = {});
/// Fills in both; if neither is given there are `default_per_head` latents per head. Throws
/// UsageError if they contradict each other or do not fit the heads. `mechanism` is its name, for
/// the message.
Options derive_latents(const std::string& mechanism, const Options& options, const Problem& problem,
                       std::int64_t default_per_head);

/// The option `chunk`: tokens per chunk of the implementation chunked.
Option chunk_option(std::int64_t chunk = 64);

/// Refuses patterns other than causal.
Support only_causal(const std::string& mechanism, const Problem& problem);
/// Refuses key heads that query heads share.
Support unshared_heads(const std::string& mechanism, const Problem& problem);

/// Refuses what the CPU kernels do not support: another device, float16.
Support on_cpu_kernels(const Problem& problem);

/// An implementation of the causal pattern only.
Implementation causal_implementation(const std::string& mechanism, const std::string& name,
                                     const std::string& title, Mix mix);

/// `Entry::make` for a module with Mechanism's constructor.
template <class Module>
std::function<std::shared_ptr<Mechanism>(const Options&, const Problem&)> maker(
    const std::string& name) {
  return [name](const Options& options, const Problem& problem) {
    auto module = std::make_shared<Module>(name, options, problem);
    if (!GivenWeights::any()) module->draw_parameters(0);
    return module;
  };
}

}  // namespace attnbench
