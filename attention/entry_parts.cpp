#include "attention/entry_parts.hpp"

#include "core/sizes.hpp"

namespace attnbench {

std::vector<Role> query_key_value(const Problem& problem) {
  return {{"query", Source::query_tokens, problem.head_dim},
          {"key", Source::key_tokens, problem.head_dim},
          {"value", Source::key_tokens, problem.value_dim}};
}

std::vector<Option> latents_options(std::vector<Option> others) {
  std::vector<Option> options{
      Option::integer(
          "latents_total", 0,
          "latents of all heads together, the papers' L; 0 = latents_per_head times heads", 0),
      Option::integer(
          "latents_per_head", 0,
          "latents of each head; 0 = latents_total divided by heads, or the mechanism's "
          "default if neither is given",
          0)};
  for (Option& other : others) options.push_back(std::move(other));
  return options;
}

Options derive_latents(const std::string& mechanism, const Options& options, const Problem& problem,
                       std::int64_t default_per_head) {
  Sizes sizes;
  sizes.add("heads", problem.heads);
  sizes.add("latents_total", options.integer("latents_total"));
  sizes.add("latents_per_head", options.integer("latents_per_head"));
  for (const SizeFault& fault : sizes.contradictions()) {
    throw UsageError(mechanism + ": " + fault.reason + ".");
  }
  std::int64_t per_head = sizes.value("latents_per_head");
  if (per_head == 0) per_head = default_per_head;
  Options derived = options;
  derived.set("latents_per_head", per_head);
  derived.set("latents_total", per_head * problem.heads);
  return derived;
}

Option chunk_option(std::int64_t chunk) {
  return Option::integer("chunk", chunk, "tokens per chunk of the implementation chunked", 1);
}

Support only_causal(const std::string& mechanism, const Problem& problem) {
  if (problem.pattern == Pattern::causal) return {};
  return Support::no(mechanism + ": only the causal pattern has a recurrence; use composite");
}

Support unshared_heads(const std::string& mechanism, const Problem& problem) {
  if (problem.kv_heads == problem.heads) return {};
  return Support::no(mechanism +
                     ": key and value heads are not shared between query heads; expected "
                     "as many of them (kv_heads) as query heads (heads)");
}

Support on_cpu_kernels(const Problem& problem) {
  if (problem.device != "cpu") return Support::no("the kernel runs on the CPU only");
  if (problem.dtype == Dtype::float16) return Support::no("float16 has no CPU kernel");
  return {};
}

Implementation causal_implementation(const std::string& mechanism, const std::string& name,
                                     const std::string& title, Mix mix) {
  return {
      .name = name,
      .title = title,
      .supports = [mechanism](const Options&,
                              const Problem& problem) { return only_causal(mechanism, problem); },
      .mix = std::move(mix)};
}

}  // namespace attnbench
