#include "tasks/learning/checkpoint.hpp"

#include <fcntl.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "attention/errors.hpp"

namespace attnbench::tasks::learning {
namespace {

namespace fs = std::filesystem;

/// Raised whenever a checkpoint means something else than before.
constexpr int version = 2;

/// What a file holds, in this order. The digest is of all the rest.
struct Content {
  std::string digest;
  std::string head;  ///< version, identity and facts, as JSON
  NamedTensors tensors;
};

using HashState = std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)>;

HashState new_hash() {
  HashState state(XXH3_createState(), XXH3_freeState);
  XXH3_128bits_reset(state.get());
  return state;
}

std::string hexadecimal(const HashState& state) {
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  std::array<char, 33> text{};
  std::snprintf(text.data(), text.size(), "%016llx%016llx",
                static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text.data();
}

std::string digest_of(const std::string& head, const NamedTensors& tensors) {
  const HashState state = new_hash();
  XXH3_128bits_update(state.get(), head.data(), head.size() + 1);
  for (const auto& [name, tensor] : tensors) {
    const char* dtype = c10::toString(tensor.scalar_type());
    XXH3_128bits_update(state.get(), dtype, std::strlen(dtype) + 1);
  }
  const std::string rest = hash_of(tensors);
  XXH3_128bits_update(state.get(), rest.data(), rest.size());
  return hexadecimal(state);
}

std::vector<char> encoded(const std::string& head, const NamedTensors& tensors) {
  c10::Dict<std::string, at::Tensor> named;
  for (const auto& [name, tensor] : tensors) named.insert(name, tensor.contiguous());
  return torch::jit::pickle_save(c10::ivalue::Tuple::create(
      {c10::IValue(digest_of(head, tensors)), c10::IValue(head), c10::IValue(named)}));
}

/// Throws Error where the bytes are not what `encoded` makes, or made before version 2.
Content decoded(const std::vector<char>& bytes) {
  try {
    const c10::IValue value = torch::jit::pickle_load(bytes);
    const auto& elements = value.toTupleRef().elements();
    // Version 1 had no digest in front.
    const std::size_t head = elements.size() == 2 ? 0 : 1;
    Content content;
    if (head == 1) content.digest = elements.at(0).toStringRef();
    content.head = elements.at(head).toStringRef();
    for (const auto& item : elements.at(head + 1).toGenericDict()) {
      content.tensors[item.key().toStringRef()] = item.value().toTensor();
    }
    return content;
  } catch (const std::exception&) {
    throw Error("is cut short, damaged or no checkpoint");
  }
}

/// "learning_rate is 0.01 there and 0.001 here".
std::string difference(const Json& there, const Json& here, const std::string& name) {
  if (there == here) return {};
  if (there.is_object() && here.is_object()) {
    for (const auto& [key, value] : here.items()) {
      const std::string inside = difference(there.value(key, Json()), value, key);
      if (!inside.empty()) return inside;
    }
    for (const auto& [key, value] : there.items()) {
      if (!here.contains(key)) return key + " is " + value.dump() + " there and unknown here";
    }
  }
  if (name == "binary") return "the worker or a plugin was built anew since it was written";
  const auto said = [](const Json& value) { return value.is_null() ? "unknown" : value.dump(); };
  return name + " is " + said(there) + " there and " + said(here) + " here";
}

Checkpoint checked(const std::vector<char>& bytes, const Json& identity) {
  Content content = decoded(bytes);
  const Json head = Json::parse(content.head, nullptr, /*allow_exceptions=*/false);
  const Json own_version = head.is_object() ? head.value("version", Json()) : Json();
  if (own_version != version) {
    throw Error("is a checkpoint of version " + own_version.dump() + ", not " +
                std::to_string(version));
  }
  if (content.digest != digest_of(content.head, content.tensors)) {
    throw Error("is damaged: its bits have changed");
  }
  const std::string other = difference(head.value("identity", Json()), identity, "identity");
  if (!other.empty()) throw Error("is of another training: " + other);
  return {head.at("facts"), std::move(content.tensors)};
}

void write_whole(const fs::path& file, const std::vector<char>& bytes) {
  const auto fail = [&](const std::string& reason) {
    throw CheckpointError(file.string() + " cannot be written: " + reason);
  };
  const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) fail(std::strerror(errno));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = write(descriptor, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  const int error = done < bytes.size() || fsync(descriptor) != 0 ? errno : 0;
  close(descriptor);
  if (error == 0) return;
  std::error_code ignored;
  fs::remove(file, ignored);
  fail(std::strerror(error));
}

}  // namespace

std::string hash_of(const NamedTensors& tensors) {
  const HashState state = new_hash();
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor plain = tensor.detach().cpu().contiguous();
    XXH3_128bits_update(state.get(), name.data(), name.size() + 1);
    XXH3_128bits_update(state.get(), plain.sizes().data(),
                        plain.sizes().size() * sizeof(std::int64_t));
    XXH3_128bits_update(state.get(), plain.data_ptr(), plain.nbytes());
  }
  return hexadecimal(state);
}

std::optional<Checkpoint> Checkpoints::load(const std::function<void(const Checkpoint&)>& take) {
  for (const fs::path& file : {newest(), previous()}) {
    std::ifstream stream(file, std::ios::binary);
    if (!stream) continue;
    const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
    try {
      Checkpoint checkpoint = checked(bytes, identity_);
      if (take) take(checkpoint);
      return checkpoint;
    } catch (const std::exception& error) {
      const std::string why = error.what();  // of LibTorch with a backtrace
      refused_.push_back(file.string() + " " + why.substr(0, why.find('\n')));
      std::fprintf(stderr, "%s\n", refused_.back().c_str());
      if (file == newest()) newest_is_good_ = false;
    }
  }
  return std::nullopt;
}

void Checkpoints::save(const Checkpoint& checkpoint) {
  const Json head = {
      {"version", version}, {"identity", identity_}, {"facts", checkpoint.facts}};
  const std::vector<char> bytes = encoded(head.dump(), checkpoint.tensors);
  const fs::path written = folder_ / "checkpoint.writing.pt";
  try {
    fs::create_directories(folder_);
    write_whole(written, bytes);
    // One that is no good must not take the place of one that is.
    if (newest_is_good_ && fs::exists(newest())) fs::rename(newest(), previous());
    fs::rename(written, newest());
    newest_is_good_ = true;
  } catch (const fs::filesystem_error& error) {
    throw CheckpointError(error.what());
  }
}

}  // namespace attnbench::tasks::learning
