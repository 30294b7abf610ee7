#include "tasks/training/checkpoint.hpp"

#include <fcntl.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/errors.hpp"
#include "core/json_object.hpp"

namespace attnbench::tasks::training {
namespace {

namespace fs = std::filesystem;

/// What a checkpoint says of itself, beside its tensors.
struct Head {
  Json version;
  Json identity;
  Json facts;
};

ATTNBENCH_JSON_CODEC(Head) {
  JSON_MAYBE(version, identity, facts);
  JSON_IGNORE_REST;
}

/// Raised whenever the meaning of a checkpoint changes.
constexpr int version = 2;

/// Digits of a hash.
constexpr std::size_t digits = 32;

// The last record of a zip archive: its size, its signature and the offset of the two bytes that
// hold the length of the comment after it.
constexpr std::size_t end_size = 22;
constexpr std::size_t comment_length_at = 20;
constexpr std::string_view end_signature = "PK\x05\x06";

std::string hexadecimal(const XXH128_hash_t& hash) {
  std::array<char, digits + 1> text{};
  std::snprintf(text.data(), text.size(), "%016llx%016llx",
                static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text.data();
}

/// Whether the last record begins at `place` and announces a comment of this length.
bool ends_at(const std::vector<char>& bytes, std::size_t place, std::size_t comment) {
  return std::string_view(bytes.data() + place, end_signature.size()) == end_signature &&
         static_cast<unsigned char>(bytes[place + comment_length_at]) == comment &&
         bytes[place + comment_length_at + 1] == 0;
}

/// Throws Error unless every byte is as `sealed` wrote it.
void require_whole(const std::vector<char>& bytes) {
  const std::size_t size = bytes.size();
  if (size >= end_size && ends_at(bytes, size - end_size, 0)) {
    throw Error("has no digest: another version of attnbench wrote it");
  }
  if (size < end_size + digits || !ends_at(bytes, size - end_size - digits, digits)) {
    throw Error("is cut short, damaged or no checkpoint");
  }
  const std::string_view said(bytes.data() + size - digits, digits);
  if (said != hexadecimal(XXH3_128bits(bytes.data(), size - digits))) {
    throw Error("is damaged: its bits have changed");
  }
}

/// Head, as JSON, and tensors by name, as one pickled pair.
std::vector<char> encoded(const Head& head, const NamedTensors& tensors) {
  c10::Dict<std::string, at::Tensor> named;
  for (const auto& [name, tensor] : tensors) named.insert(name, tensor.contiguous());
  return sealed(torch::jit::pickle_save(
      c10::ivalue::Tuple::create({c10::IValue(Json(head).dump()), c10::IValue(named)})));
}

/// Head and tensors. Throws Error where the bytes are not what `encoded` makes.
std::pair<Head, NamedTensors> decoded(const std::vector<char>& bytes) {
  require_whole(bytes);
  try {
    const c10::IValue value = torch::jit::pickle_load(bytes);
    const auto& elements = value.toTupleRef().elements();
    auto head = Json::parse(elements.at(0).toStringRef()).get<Head>();
    NamedTensors tensors;
    for (const auto& item : elements.at(1).toGenericDict()) {
      tensors[item.key().toStringRef()] = item.value().toTensor();
    }
    return {std::move(head), std::move(tensors)};
  } catch (const std::exception&) {
    throw Error("is no checkpoint");
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
  if (name == "data") {
    return "it learned from data with the content hash " + said(there) + ", and those here have " +
           said(here);
  }
  return name + " is " + said(there) + " there and " + said(here) + " here";
}

/// Throws Error for a checkpoint of another version.
std::pair<Head, NamedTensors> of_this_version(const std::vector<char>& bytes) {
  auto found = decoded(bytes);
  if (found.first.version == version) return found;
  throw Error("is a checkpoint of version " + found.first.version.dump() + ", not " +
              std::to_string(version));
}

Checkpoint checked(const std::vector<char>& bytes, const Json& identity) {
  auto [head, tensors] = of_this_version(bytes);
  const std::string other = difference(head.identity, identity, "identity");
  if (!other.empty()) throw Error("is of another training: " + other);
  return {std::move(head.facts), std::move(tensors)};
}

std::vector<char> content_of(std::ifstream& stream) {
  return {std::istreambuf_iterator<char>(stream), {}};
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

std::vector<char> sealed(std::vector<char> archive) {
  if (archive.size() < end_size || !ends_at(archive, archive.size() - end_size, 0)) {
    throw std::logic_error("only a zip archive without a comment can be sealed");
  }
  archive[archive.size() - end_size + comment_length_at] = static_cast<char>(digits);
  const std::string digest = hexadecimal(XXH3_128bits(archive.data(), archive.size()));
  archive.insert(archive.end(), digest.begin(), digest.end());
  return archive;
}

std::string hash_of(const NamedTensors& tensors) {
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                              XXH3_freeState);
  XXH3_128bits_reset(state.get());
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor plain = tensor.detach().cpu().contiguous();
    XXH3_128bits_update(state.get(), name.data(), name.size() + 1);
    XXH3_128bits_update(state.get(), plain.sizes().data(),
                        plain.sizes().size() * sizeof(std::int64_t));
    XXH3_128bits_update(state.get(), plain.data_ptr(), plain.nbytes());
  }
  return hexadecimal(XXH3_128bits_digest(state.get()));
}

Checkpoint read_checkpoint(const fs::path& file, const Json& identity) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw Error("cannot be read");
  auto [head, tensors] = of_this_version(content_of(stream));
  for (const auto& [key, value] : identity.items()) {
    const std::string other = difference(
        head.identity.is_object() ? head.identity.value(key, Json()) : Json(), value, key);
    if (!other.empty()) throw Error("is of another training: " + other);
  }
  return {std::move(head.facts), std::move(tensors)};
}

std::optional<Checkpoint> Checkpoints::read(const fs::path& file, const Accept& accept) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return std::nullopt;
  const std::vector<char> bytes = content_of(stream);
  try {
    Checkpoint checkpoint = checked(bytes, identity_);
    if (accept) accept(checkpoint);
    return checkpoint;
  } catch (const std::exception& error) {
    const std::string why = error.what();  // LibTorch's holds a backtrace
    refused_.push_back(file.string() + " " + why.substr(0, why.find('\n')));
    if (file == newest()) newest_is_good_ = false;
    return std::nullopt;
  }
}

std::optional<Checkpoint> Checkpoints::load(const Accept& accept) {
  for (const fs::path& file : {newest(), previous()}) {
    if (std::optional<Checkpoint> checkpoint = read(file, accept)) return checkpoint;
  }
  return std::nullopt;
}

std::optional<Checkpoint> Checkpoints::load_best() { return read(best(), {}); }

void Checkpoints::write(const Checkpoint& checkpoint, const fs::path& file,
                        const std::function<void()>& before) {
  const std::vector<char> bytes =
      encoded({version, identity_, checkpoint.facts}, checkpoint.tensors);
  const fs::path written = folder_ / "checkpoint.writing.pt";
  try {
    fs::create_directories(folder_);
    write_whole(written, bytes);
    if (before) before();
    fs::rename(written, file);
  } catch (const fs::filesystem_error& error) {
    throw CheckpointError(error.what());
  }
}

void Checkpoints::save(const Checkpoint& checkpoint) {
  write(checkpoint, newest(), [this] {
    // A bad checkpoint must not replace a good one.
    if (newest_is_good_ && fs::exists(newest())) fs::rename(newest(), previous());
  });
  newest_is_good_ = true;
}

}  // namespace attnbench::tasks::training
