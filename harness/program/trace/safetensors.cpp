#include "harness/program/trace/safetensors.hpp"

#include <algorithm>
#include <cstring>

#include "core/failure.hpp"
#include "core/json_file.hpp"
#include "core/json_object.hpp"
#include "core/text/printable.hpp"
#include "core/text/spelling.hpp"

namespace attnbench::trace {
namespace {

constexpr const char* expected_file = "a file of safetensors";
constexpr std::size_t size_bytes = 8;

/// A tensor as the header has it.
struct TensorEntry {
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> data_offsets;
};

ATTNBENCH_JSON_READER(TensorEntry) {
  JSON_AT(dtype, shape, data_offsets);
  json.finish();
}

/// Numbers are little-endian, as on all machines that attnbench runs on.
template <class Number>
std::vector<std::int64_t> numbers_of(const std::string& bytes) {
  std::vector<Number> numbers(bytes.size() / sizeof(Number));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return {numbers.begin(), numbers.end()};
}

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& what) {
  throw UsageFailure(text::quotable(file.string()) + ": " + text::quotable(what, 400));
}

TensorEntry entry_of(const std::filesystem::path& file, const Json& header,
                     const std::string& name) {
  if (!header.is_object())
    refuse(file, std::string("the header is no object; expected ") + expected_file);
  const auto found = header.find(name);
  if (found == header.end()) {
    std::vector<std::string> names;
    for (const auto& [key, ignored] : header.items()) names.push_back(key);
    refuse(file, "there is no tensor \"" + name + "\"; " + text::suggestion(name, names));
  }
  try {
    return found->get<TensorEntry>();
  } catch (const SchemaError& error) {
    refuse(file, "/" + name + error.what());
  }
}

}  // namespace

std::vector<std::int64_t> whole_numbers(const std::filesystem::path& file,
                                        const std::string& name) {
  const std::string content = read_file(file, expected_file);
  std::uint64_t size = 0;
  if (content.size() >= size_bytes) std::memcpy(&size, content.data(), size_bytes);
  if (content.size() < size_bytes || size > content.size() - size_bytes) {
    refuse(file, "it ends within its header; expected " + std::string(expected_file));
  }
  const std::string_view header = std::string_view(content).substr(size_bytes, size);
  const TensorEntry entry = entry_of(file, parse_json(header, file.string(), expected_file), name);
  const std::string data = content.substr(size_bytes + size);
  const bool wide = entry.dtype == "I64";
  if ((!wide && entry.dtype != "I32") || entry.shape.size() != 1) {
    refuse(file, "the tensor \"" + name + "\" is " + entry.dtype + " of " +
                     std::to_string(entry.shape.size()) +
                     " dimensions; expected a list of I32 or I64");
  }
  const std::int64_t bytes = wide ? 8 : 4;
  const auto end = static_cast<std::int64_t>(data.size());
  const bool within = entry.data_offsets.size() == 2 && entry.data_offsets[0] >= 0 &&
                      entry.data_offsets[1] <= end && entry.shape[0] >= 0 &&
                      entry.shape[0] <= end / bytes &&
                      entry.data_offsets[1] - entry.data_offsets[0] == entry.shape[0] * bytes;
  if (!within) {
    refuse(file, "the tensor \"" + name + "\" is not within the file; expected " +
                     std::string(expected_file) + " as it was written");
  }
  const std::string own = data.substr(static_cast<std::size_t>(entry.data_offsets[0]),
                                      static_cast<std::size_t>(entry.shape[0] * bytes));
  return wide ? numbers_of<std::int64_t>(own) : numbers_of<std::int32_t>(own);
}

}  // namespace attnbench::trace
