#include "core/cell.hpp"

#include "core/claims_json.hpp"

namespace attnbench {

using Json = nlohmann::json;

ATTNBENCH_JSON_CODEC(Problem) {
  JSON_AT(batch, heads, kv_heads, length, key_length, head_dim, value_dim);
  JSON_MAYBE(model_width);
  json.word("pattern", value.pattern, to_string, pattern_from);
  json.word("dtype", value.dtype, to_string, dtype_from);
}

ATTNBENCH_JSON_CODEC(Cell) {
  JSON_AT(id, label, task, task_label, mechanism, implementation, device, options, settings);
  JSON_MAYBE(varies);
}

ATTNBENCH_JSON_CODEC(Forecast) {
  JSON_AT(id, supported);
  JSON_MAYBE(reason, problem);
  if (value.problem) {
    JSON_AT(implementation, implementation_reason, cost, growth);
  }
  JSON_MAYBE(peak_bytes, options, once, calls, calls_cost, prefill_cost, unclocked_cost, status,
             detail, refused);
}

}  // namespace attnbench
