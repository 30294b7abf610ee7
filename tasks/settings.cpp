#include "tasks/settings.hpp"

#include "core/sizes.hpp"

namespace attnbench::tasks {

Option integer_setting(const char* name, std::int64_t fallback, const char* meaning,
                       double minimum) {
  return {name, OptionType::integer, fallback, meaning, minimum, {}, {}};
}

Option number_setting(const char* name, double fallback, const char* meaning, double minimum,
                      std::optional<double> maximum) {
  return {name, OptionType::number, fallback, meaning, minimum, maximum, {}};
}

Option boolean_setting(const char* name, bool fallback, const char* meaning) {
  return {name, OptionType::boolean, fallback, meaning, {}, {}, {}};
}

Option text_setting(const char* name, const char* fallback, const char* meaning,
                    std::vector<std::string> choices) {
  return {name, OptionType::text, std::string(fallback), meaning, {}, {}, std::move(choices)};
}

void append(std::vector<Option>& settings, std::vector<Option> more) {
  for (Option& one : more) settings.push_back(std::move(one));
}

std::vector<Option> size_settings() {
  return {integer_setting("batch", 1, "sequences in one call"),
          integer_setting("heads", 4, "query heads"),
          integer_setting("kv_heads", 0, "key and value heads, a divisor of heads; 0 = heads", 0),
          integer_setting("width", 0, "heads times head_dim; 0 = from head_dim", 0),
          integer_setting("head_dim", 0, "numbers per head; 0 = width / heads, or 64", 0),
          integer_setting("value_dim", 0, "numbers per head of the values; 0 = head_dim", 0),
          integer_setting("key_dim", 0, "numbers per head of queries and keys; 0 = head_dim", 0),
          text_setting("dtype", "float32", "type of inputs and output",
                       {"float32", "float64", "bfloat16", "float16"}),
          number_setting("input_scale", 1, "standard deviation of the normal inputs")};
}

Problem problem_from(const Options& settings) {
  Sizes sizes;
  for (const char* name : {"batch", "heads", "kv_heads", "width", "head_dim", "value_dim",
                           "key_dim", "length", "key_length"}) {
    sizes.add(name, settings.has(name) ? settings.integer(name) : 0);
  }
  for (const SizeFault& fault : sizes.contradictions()) throw UsageError(fault.reason + ".");
  Problem problem;
  problem.batch = sizes.value("batch");
  problem.heads = sizes.value("heads");
  problem.kv_heads = sizes.value("kv_heads");
  problem.head_dim = sizes.value("key_dim");
  if (problem.head_dim != sizes.value("head_dim")) problem.model_width = sizes.value("width");
  problem.value_dim = sizes.value("value_dim");
  problem.length = sizes.value("length");
  problem.key_length = sizes.value("key_length");
  problem.dtype = dtype_from(settings.text("dtype"));
  problem.pattern =
      settings.has("pattern") ? pattern_from(settings.text("pattern")) : Pattern::causal;
  if (problem.key_length != problem.length && problem.pattern != Pattern::cross) {
    throw UsageError("key_length " + std::to_string(problem.key_length) + " differs from length " +
                     std::to_string(problem.length) +
                     ", which only the pattern cross allows, not " + to_string(problem.pattern) +
                     ".");
  }
  return problem;
}

}  // namespace attnbench::tasks
