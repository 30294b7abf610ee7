// What many entries say alike: roles, options, reasons for a no, and how a module is made.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "attention/mechanism.hpp"

namespace attnbench {

/// query [B, H, T, D], key [B, G, S, D] and value [B, G, S, Dv].
std::vector<Role> query_key_value(const Problem& problem);

/// latents_total and latents_per_head, of which one is said.
std::vector<Option> latents_options();
/// Both of them filled in; with neither said there are `unsaid` per head. Throws UsageError where
/// they contradict each other or do not fit the heads. `mechanism` is for the message.
Options derive_latents(const std::string& mechanism, const Options& options, const Problem& problem,
                       std::int64_t unsaid);

/// `chunk`: tokens that the implementation chunked takes together.
Option chunk_option(std::int64_t chunk = 64);

/// No, with the reason, where the pattern is not causal.
Support only_causal(const std::string& mechanism, const Problem& problem);
/// No, with the reason, where key heads are shared between query heads.
Support unshared_heads(const std::string& mechanism, const Problem& problem);

/// No, with the reason, where our CPU kernels do not run: another device, float16.
Support on_cpu_kernels(const Problem& problem);

using Mix = std::function<Mixed(Mechanism&, const Inputs&, State*)>;
/// An implementation that computes the causal pattern only.
Implementation causal_implementation(const std::string& mechanism, const std::string& name,
                                     const std::string& title, Mix mix);

/// What `Entry::make` is to be for a module with Mechanism's constructor.
template <class Module>
std::function<std::shared_ptr<Mechanism>(const Options&, const Problem&)> maker(
    const std::string& name) {
  return [name](const Options& options, const Problem& problem) {
    auto module = std::make_shared<Module>(name, options, problem);
    module->draw_parameters(0);
    return module;
  };
}

}  // namespace attnbench
