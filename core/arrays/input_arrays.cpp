#include "core/arrays/input_arrays.hpp"

#include <algorithm>

#include "core/failure.hpp"
#include "core/text/printable.hpp"

namespace attnbench::arrays {
namespace {

[[noreturn]] void refuse(const ArrayFile& array, const std::string& what) {
  throw UsageFailure(text::quotable(array.file.string()) + ": " + text::quotable(what, 600));
}

bool is_real(Element element) { return element == Element::float32 || element == Element::float64; }

void require_rank(const ArrayFile& array, const std::string& what, std::size_t rank,
                  const char* expected) {
  if (array.shape.size() != rank) {
    refuse(array, what + " has the shape " + to_string(array.shape) + " of " +
                      std::to_string(array.shape.size()) + " dimensions; expected " + expected +
                      ": reshape it before saving");
  }
  if (count_of(array.shape) == 0) {
    refuse(array, what + " is empty, " + to_string(array.shape) +
                      "; expected at least one number along each of " + expected);
  }
}

void require_batch(const ArrayFile& array, const std::string& what, const InputArrays& arrays) {
  const auto& [role, first] = *arrays.roles.begin();
  if (array.shape[0] == first.shape[0]) return;
  refuse(array, what + " is " + to_string(array.shape) + ", a batch of " +
                    std::to_string(array.shape[0]) + ", but " + role + " in " +
                    first.file.string() + " is " + to_string(first.shape) +
                    "; expected one batch size throughout");
}

void require_type(const ArrayFile& array, const std::string& what, const InputArrays& arrays) {
  if (array.element == arrays.element()) return;
  const auto& [role, first] = *arrays.roles.begin();
  const std::string type = to_string(arrays.element());
  refuse(array, what + " is " + to_string(array.element) + ", but " + role + " in " +
                    first.file.string() + " is " + type + "; expected one dtype throughout: save " +
                    "x.astype('" + type + "')");
}

ArrayFile open_role(const std::string& role, const std::string& file) {
  ArrayFile array = open_array(file);
  if (!is_real(array.element)) {
    refuse(array, role + " is " + to_string(array.element) +
                      "; expected float32 or float64: save x.astype('float32')");
  }
  require_rank(array, role, 4, "[batch, heads, tokens, width]");
  return array;
}

ArrayFile open_mask(const std::string& file, const InputArrays& arrays) {
  ArrayFile array = open_array(file);
  if (array.element != Element::boolean && array.element != Element::uint8) {
    refuse(array, std::string("the mask is ") + to_string(array.element) +
                      "; expected bool or uint8, true where the key token is real: save "
                      "mask.astype(bool)");
  }
  require_rank(array, "the mask", 2, "[batch, key tokens]");
  require_batch(array, "the mask", arrays);
  return array;
}

ArrayFile open_gradient(const std::string& file, const InputArrays& arrays) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    throw UsageFailure("--gradient " + file + ": no such file; expected the word ones, or an " +
                       "array [batch, heads, tokens, value width] written by numpy.save");
  }
  ArrayFile array = open_array(file);
  require_rank(array, "the gradient", 4, "[batch, heads, tokens, value width]");
  require_type(array, "the gradient", arrays);
  require_batch(array, "the gradient", arrays);
  return array;
}

}  // namespace

std::string flag_of_role(const std::string& role, const std::string& file) {
  const bool own = role == "query" || role == "key" || role == "value";
  return own ? "--" + role + " " + file : "--role " + role + "=" + file;
}

InputArrays open_input_arrays(const protocol::Apply& request) {
  InputArrays arrays;
  for (const auto& [role, file] : request.roles) {
    arrays.roles[role] = open_role(role, file);
    require_type(arrays.roles[role], role, arrays);
    require_batch(arrays.roles[role], role, arrays);
  }
  if (arrays.roles.empty()) throw UsageFailure("there is no array to apply the mechanism to");
  for (const auto& [name, file] : request.parameters) {
    const ArrayFile array = open_array(file);
    if (is_real(array.element)) require_type(array, "the parameter " + name, arrays);
    arrays.parameters[name] = array;
  }
  if (!request.mask.empty()) arrays.mask = open_mask(request.mask, arrays);
  if (!request.gradient.empty() && request.gradient != "ones") {
    arrays.gradient = open_gradient(request.gradient, arrays);
  }
  return arrays;
}

}  // namespace attnbench::arrays
