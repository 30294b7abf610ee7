// Checkpoints of a training, as files. The newest and the previous one are kept, so that one is
// whole whatever happens during a write; the weights of the best validation, where they are wanted,
// are a third file. Python's torch.load reads them. A digest of the whole file
// is verified before its content is used.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tasks/training/optimiser.hpp"

namespace attnbench::tasks::training {

using Json = nlohmann::json;

/// A checkpoint could not be written; earlier ones are unchanged.
class CheckpointError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Checkpoint {
  Json facts;            ///< the TrainingState
  NamedTensors tensors;  ///< on the CPU
};

/// Hash of names, shapes and bits, in the order of names: 32 hexadecimal digits. It ignores dtypes.
std::string hash_of(const NamedTensors& tensors);

/// Adds a comment to a zip archive that has none: a digest of all bytes before it, which readers of
/// zip archives ignore. Any later change of the file is detected.
std::vector<char> sealed(std::vector<char> archive);

/// Reads a checkpoint for its weights: what `identity` holds must be equal, and the rest of the
/// checkpoint's own may differ. Throws Error, a sentence without its subject, where the file cannot
/// be read, is not whole or is of another training.
Checkpoint read_checkpoint(const std::filesystem::path& file, const Json& identity);

class Checkpoints {
 public:
  /// `identity`: an object of all that must be equal for a checkpoint to be usable.
  Checkpoints(std::filesystem::path folder, Json identity)
      : folder_(std::move(folder)), identity_(std::move(identity)) {}

  /// The newest that is whole, of this version and this identity, and that `accept`, if given,
  /// does not throw for. refused() says why others were not used.
  std::optional<Checkpoint> load(const std::function<void(const Checkpoint&)>& accept = {});
  /// Throws CheckpointError naming the file and the reason.
  void save(const Checkpoint& checkpoint);

  /// The weights of the best validation: `facts` and `tensors` as the caller likes.
  void save_best(const Checkpoint& checkpoint) { write(checkpoint, best()); }
  /// The weights of the best validation; nothing where there is no such file, or it cannot be used;
  /// refused() says why.
  std::optional<Checkpoint> load_best();

  std::filesystem::path best() const { return folder_ / "checkpoint.best.pt"; }
  std::filesystem::path newest() const { return folder_ / "checkpoint.pt"; }
  std::filesystem::path previous() const { return folder_ / "checkpoint.previous.pt"; }
  /// Why checkpoints were refused: sentences, each naming a file.
  const std::vector<std::string>& refused() const { return refused_; }

 private:
  using Accept = std::function<void(const Checkpoint&)>;
  std::optional<Checkpoint> read(const std::filesystem::path& file, const Accept& accept);
  /// Replaces `file` in one step, after `before` has been called.
  void write(const Checkpoint& checkpoint, const std::filesystem::path& file,
             const std::function<void()>& before = {});

  std::filesystem::path folder_;
  Json identity_;
  std::vector<std::string> refused_;
  bool newest_is_good_ = true;  ///< unless load() has refused it
};

}  // namespace attnbench::tasks::training
