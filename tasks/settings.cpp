#include "tasks/settings.hpp"

namespace attnbench::tasks {
namespace {

std::string said(const char* name, std::int64_t value) {
  return std::string(name) + " " + std::to_string(value);
}

std::int64_t head_dim_from(const Options& settings, std::int64_t heads) {
  const std::int64_t width = settings.integer("width");
  const std::int64_t head_dim = settings.integer("head_dim");
  if (width == 0) return head_dim == 0 ? 64 : head_dim;
  if (width % heads != 0) {
    throw UsageError(said("width", width) + " is not a multiple of " + said("heads", heads) +
                     ": every head takes an equal share of it.");
  }
  if (head_dim != 0 && head_dim * heads != width) {
    throw UsageError(said("width", width) + " is not " + said("heads", heads) + " times " +
                     said("head_dim", head_dim) + ": say one of width and head_dim.");
  }
  return width / heads;
}

}  // namespace

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
          text_setting("dtype", "float32", "type of inputs and output",
                       {"float32", "float64", "bfloat16", "float16"}),
          number_setting("input_scale", 1, "standard deviation of the normal inputs")};
}

Problem problem_from(const Options& settings) {
  Problem problem;
  problem.batch = settings.integer("batch");
  problem.heads = settings.integer("heads");
  const std::int64_t kv_heads = settings.integer("kv_heads");
  problem.kv_heads = kv_heads == 0 ? problem.heads : kv_heads;
  if (problem.heads % problem.kv_heads != 0) {
    throw UsageError(said("kv_heads", kv_heads) + " does not divide " +
                     said("heads", problem.heads) +
                     ": each serves an equal number of query heads.");
  }
  problem.head_dim = head_dim_from(settings, problem.heads);
  const std::int64_t value_dim = settings.integer("value_dim");
  problem.value_dim = value_dim == 0 ? problem.head_dim : value_dim;
  problem.dtype = dtype_from(settings.text("dtype"));
  problem.pattern =
      settings.has("pattern") ? pattern_from(settings.text("pattern")) : Pattern::causal;
  problem.length = settings.integer("length");
  const std::int64_t key_length = settings.has("key_length") ? settings.integer("key_length") : 0;
  problem.key_length = key_length == 0 ? problem.length : key_length;
  if (problem.key_length != problem.length && problem.pattern != Pattern::cross) {
    throw UsageError(
        said("key_length", key_length) + " differs from " + said("length", problem.length) +
        ", which only the pattern cross allows, not " + to_string(problem.pattern) + ".");
  }
  return problem;
}

}  // namespace attnbench::tasks
