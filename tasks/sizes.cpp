#include "tasks/sizes.hpp"

#include "core/errors.hpp"
#include "core/sizes.hpp"

namespace attnbench::tasks {
namespace {

Option size(const char* name, std::int64_t fallback, const char* meaning) {
  return {name, OptionType::integer, fallback, meaning, fallback == 0 ? 0.0 : 1.0, {}, {}};
}

}  // namespace

std::vector<Option> size_settings() {
  Option dtype{"dtype",
               OptionType::text,
               std::string("float32"),
               "type of inputs and output",
               {},
               {},
               {"float32", "float64", "bfloat16", "float16"}};
  Option scale{"input_scale",
               OptionType::number,
               1.0,
               "standard deviation of the normal inputs",
               0.0,
               {},
               {}};
  return {size("batch", 1, "sequences in one call"),
          size("heads", 4, "query heads"),
          size("kv_heads", 0, "key and value heads, a divisor of heads; 0 = heads"),
          size("width", 0, "heads times head_dim; 0 = from head_dim"),
          size("head_dim", 0, "numbers per head; 0 = width / heads, or 64"),
          size("value_dim", 0, "numbers per head of the values; 0 = head_dim"),
          dtype,
          scale};
}

Problem problem_from(const Options& settings) {
  Sizes sizes;
  for (const char* name :
       {"batch", "heads", "kv_heads", "width", "head_dim", "value_dim", "length", "key_length"}) {
    sizes.add(name, settings.has(name) ? settings.integer(name) : 0);
  }
  for (const SizeFault& fault : sizes.contradictions()) throw UsageError(fault.reason + ".");
  Problem problem;
  problem.batch = sizes.value("batch");
  problem.heads = sizes.value("heads");
  problem.kv_heads = sizes.value("kv_heads");
  problem.head_dim = sizes.value("head_dim");
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
