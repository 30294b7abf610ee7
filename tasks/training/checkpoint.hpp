// Checkpoints: where training stands, on the disk. The newest and the one before it are kept, so
// that whatever happens while one is written, one is whole. torch.load of Python reads them, too. A
// digest of the whole file is looked at before anything in it is believed.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tasks/training/optimiser.hpp"

namespace attnbench::tasks::learning {

using Json = nlohmann::json;

/// A checkpoint could not be written; those before it are as they were.
class CheckpointError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Checkpoint {
  Json facts;            ///< whatever the trainer wants to know again; holds "step"
  NamedTensors tensors;  ///< on the CPU
};

/// Of names, shapes and bits, in the names' order: 32 hexadecimal digits. The same for tensors of
/// another dtype with the same bits.
std::string hash_of(const NamedTensors& tensors);

/// A zip archive without a comment, with one: a digest of all bytes before it, which no reader of
/// zip archives minds. Whatever changes in the file afterwards shows.
std::vector<char> sealed(std::vector<char> archive);

class Checkpoints {
 public:
  /// `identity`: an object of what must be equal for a checkpoint to be of use.
  Checkpoints(std::filesystem::path folder, Json identity)
      : folder_(std::move(folder)), identity_(std::move(identity)) {}

  /// The newest that is whole, of this version and of this identity, and that `take`, where there
  /// is one, accepts: what it throws is a refusal, too. Why others were not taken is in refused().
  std::optional<Checkpoint> load(const std::function<void(const Checkpoint&)>& take = {});
  /// Throws CheckpointError naming the file and the reason.
  void save(const Checkpoint& checkpoint);

  std::filesystem::path newest() const { return folder_ / "checkpoint.pt"; }
  std::filesystem::path previous() const { return folder_ / "checkpoint.previous.pt"; }
  /// Sentences, each naming a file.
  const std::vector<std::string>& refused() const { return refused_; }

 private:
  std::filesystem::path folder_;
  Json identity_;
  std::vector<std::string> refused_;
  bool newest_is_good_ = true;  ///< as far as it was read
};

}  // namespace attnbench::tasks::learning
