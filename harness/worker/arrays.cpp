#include "harness/worker/arrays.hpp"

#include <algorithm>

namespace attnbench::worker {
namespace {

using arrays::ArrayFile;
using arrays::Element;
using arrays::InputArrays;

at::ScalarType type_of(Element element) {
  static const at::ScalarType types[] = {at::kFloat, at::kDouble, at::kLong, at::kBool, at::kByte};
  return types[static_cast<int>(element)];
}

Element element_of(const at::Tensor& tensor) {
  for (const Element element :
       {Element::float32, Element::float64, Element::int64, Element::boolean, Element::uint8}) {
    if (type_of(element) == tensor.scalar_type()) return element;
  }
  throw Error(std::string("a tensor of ") + c10::toString(tensor.scalar_type()) +
              " cannot be written as an array; expected float32, float64, int64, bool or uint8");
}

at::Tensor tensor_from(const ArrayFile& array) {
  at::Tensor tensor = at::empty(array.shape, at::TensorOptions().dtype(type_of(array.element)));
  arrays::read_array(array, tensor.data_ptr());
  return tensor;
}

[[noreturn]] void refuse(const ArrayFile& array, const std::string& what) {
  throw UsageError(array.file.string() + ": " + what);
}

/// Refuses the array where `bad` is true anywhere, naming the first place.
void refuse_where(const at::Tensor& bad, const ArrayFile& array, const std::string& found,
                  const std::string& remedy) {
  const std::int64_t count = bad.sum().item<std::int64_t>();
  if (count == 0) return;
  const at::Tensor place = bad.nonzero()[0].contiguous();
  const auto* index = place.data_ptr<std::int64_t>();
  refuse(array, found + " at " + arrays::to_string(arrays::Shape(index, index + place.numel())) +
                    (count > 1 ? " and " + std::to_string(count - 1) + " more" : "") + remedy);
}

/// `maskable`: of key tokens, which alone a mask can hide. `hidden`: by the mask that was given.
void require_finite(const at::Tensor& tensor, const ArrayFile& array, bool maskable = false,
                    const at::Tensor& hidden = {}) {
  if (!tensor.is_floating_point()) return;
  at::Tensor bad = at::isfinite(tensor).logical_not();
  if (hidden.defined()) bad = bad.logical_and(hidden.logical_not().unsqueeze(1).unsqueeze(-1));
  refuse_where(bad, array, "NaN or infinity",
               std::string("; expected finite numbers: mend them") +
                   (maskable ? ", hide their tokens with --mask," : "") + " or pass --allow-nan");
}

at::Tensor mask_from(const ArrayFile& array, const Problem& problem) {
  const arrays::Shape wanted{problem.batch, problem.key_length};
  if (array.shape != wanted) {
    refuse(array, "the mask is " + arrays::to_string(array.shape) + "; expected " +
                      arrays::to_string(wanted) + ", one number for each key token of the batch");
  }
  const at::Tensor mask = tensor_from(array);
  if (mask.scalar_type() == at::kByte) {
    refuse_where(mask > 1, array, "a number that is neither 0 nor 1",
                 "; expected 1 where the key token is real and 0 where it is padding");
  }
  return mask.to(at::kBool);
}

}  // namespace

Inputs inputs_from(const arrays::InputArrays& arrays, const Mechanism& mechanism, bool allow_nan) {
  Inputs inputs;
  if (arrays.mask) inputs.key_mask = mask_from(*arrays.mask, mechanism.problem);
  const at::Tensor hidden = arrays.mask ? inputs.key_mask.logical_not() : at::Tensor();
  for (const Role& role : mechanism.roles()) {
    const ArrayFile& array = arrays.roles.at(role.name);
    at::Tensor tensor = tensor_from(array);
    if (!allow_nan) {
      const bool of_keys = role.source == Source::key_tokens;
      require_finite(tensor, array, of_keys, of_keys ? hidden : at::Tensor());
    }
    if (role.source == Source::key_tokens && hidden.defined()) {
      // Not every implementation hides by selection: NaN times a weight of 0 would come through.
      tensor.masked_fill_(hidden.unsqueeze(1).unsqueeze(-1), 0);
    }
    inputs.tensors[role.name] = tensor;
  }
  return inputs;
}

at::Tensor upstream_from(const arrays::InputArrays& arrays, const Problem& problem,
                         bool allow_nan) {
  const arrays::Shape wanted{problem.batch, problem.heads, problem.length, problem.value_dim};
  if (!arrays.gradient) return at::ones(wanted, at::TensorOptions(scalar_type(problem.dtype)));
  if (arrays.gradient->shape != wanted) {
    refuse(*arrays.gradient, "the gradient is " + arrays::to_string(arrays.gradient->shape) +
                                 "; expected the output's shape, " + arrays::to_string(wanted));
  }
  const at::Tensor tensor = tensor_from(*arrays.gradient);
  if (!allow_nan) require_finite(tensor, *arrays.gradient);
  return tensor;
}

void set_parameters(const arrays::InputArrays& arrays, Mechanism& mechanism, bool allow_nan) {
  const at::NoGradGuard no_grad;
  for (auto& [name, tensor] : parameters_of(mechanism)) {
    const auto found = arrays.parameters.find(name);
    if (found == arrays.parameters.end()) continue;
    const ArrayFile& array = found->second;
    if (type_of(array.element) != tensor.scalar_type()) {
      refuse(array, "the parameter " + name + " is " + arrays::to_string(array.element) +
                        "; expected " + arrays::to_string(element_of(tensor)));
    }
    const at::Tensor said = tensor_from(array);
    if (!allow_nan) require_finite(said, array);
    at::Tensor(tensor).copy_(said);
  }
}

void write_tensor(const std::filesystem::path& file, const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach().contiguous();
  arrays::write_array(file, element_of(plain), plain.sizes().vec(), plain.data_ptr());
}

}  // namespace attnbench::worker
