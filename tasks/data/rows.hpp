// What prepared data consist of, wherever they come from: rows of tokens with a label, and sources
// that give them one by one. Nothing here needs tensors.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/errors.hpp"
#include "core/json_object.hpp"
#include "tasks/data/split.hpp"

namespace attnbench::tasks::data {

using Json = nlohmann::json;

using Token = std::uint32_t;
/// The greatest vocabulary.
constexpr int most_tokens = 1 << 20;

/// One example: a sequence, or two where a task compares documents. No padding anywhere.
struct Row {
  std::vector<Token> tokens;  ///< ids in [0, vocabulary); at least one
  std::vector<Token> second;  ///< the other document; empty unless there are two towers
  std::int32_t label = 0;     ///< in [0, classes)
  Split split = Split::train;
  std::uint32_t order = 0;  ///< place in its split; unique there. Rows need not come in this order
};

/// What decides the rows of a source, and what a task has to know of them.
struct DataDescription {
  std::string task;         ///< "lra.listops"
  Json settings;            ///< all that decides the rows besides the source, the seed included
  std::string source;       ///< "generated", or the file name of what was read
  std::string source_hash;  ///< of the contents that rows are made from, however they are packed
  std::vector<std::string> classes;  ///< a name per label
  int vocabulary = 0;                ///< ids are below it; the padding id, if any, is among them
  int first_token = 0;  ///< the least id; subtracted in the cache, so that bytes + 1 fit a byte
  int towers = 1;       ///< documents a row, 1 or 2
  int width = 0;        ///< pixels a line where rows are images, else 0
  Json notes = Json::object();  ///< what was left out and why, for the record

  /// Describes rows that follow from `decisive` alone: it becomes the settings, and its hash the
  /// source's.
  void set_generated(Json decisive);
};
/// from_json throws UsageError where `json` is not what to_json gives.
ATTNBENCH_JSON(DataDescription);

/// How far something is. `done` and `total` count rows while rows are made and bytes while a source
/// is looked through.
struct PreparationProgress {
  enum class Stage { reading, making };
  Stage stage = Stage::making;
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  std::uint64_t resumed = 0;  ///< of `done`: was there already
  double seconds = 0;         ///< since the stage began

  double rate() const { return seconds > 0 ? static_cast<double>(done - resumed) / seconds : 0; }
  /// The seconds left; negative where they are not known yet.
  double seconds_left() const {
    return rate() > 0 ? static_cast<double>(total - done) / rate() : -1;
  }
};

/// A callback that is called some ten times a second, on the thread that called us; false ends the
/// work with Cancelled.
using ProgressCall = std::function<bool(const PreparationProgress&)>;

class PreparationCancelled : public Error {
 public:
  PreparationCancelled() : Error("cancelled") {}
};

/// Calls a ProgressCall no more often than every 0.1 s.
class Ticker {
 public:
  Ticker(const ProgressCall& call, PreparationProgress::Stage stage, std::uint64_t total,
         std::uint64_t resumed = 0);
  /// Throws Cancelled where the call says so. `now`: call in any case.
  void tick(std::uint64_t done, bool now = false);

 private:
  ProgressCall call_;
  PreparationProgress progress_;
  std::chrono::steady_clock::time_point began_;
  double called_ = -1;
};

/// A source of rows. What can be wrong with it as a whole is found when it is made, what is wrong
/// with one row when that row is asked for; both throw UsageError, which names the file, the row,
/// what was expected and what to do.
class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual const DataDescription& description() const = 0;
  virtual std::uint64_t rows() const = 0;
  /// Bytes that the cache will take, at most or nearly.
  virtual std::uint64_t cache_bytes() const = 0;
  /// Overwrites `row` with row `number` of [0, rows()). From any thread and in any order if
  /// any_order(); else numbers only ascend.
  virtual void make(std::uint64_t number, Row& row) = 0;
  virtual bool any_order() const { return false; }
};

/// Rows that a generator makes of each split.
struct SplitCounts {
  std::uint32_t train = 0;
  std::uint32_t validation = 0;
  std::uint32_t test = 0;

  std::uint64_t total() const { return std::uint64_t{train} + validation + test; }
  /// The split of row `number` of all, train first, and its number there.
  std::pair<Split, std::uint32_t> place(std::uint64_t number) const;
};

/// Which `count` of the rows with these labels are held out for validation: of each class a share
/// like the class's own, chosen by `seed`. Throws UsageError unless count < labels.size().
std::vector<bool> hold_out(const std::vector<std::int32_t>& labels, std::uint32_t count,
                           std::uint64_t seed);

/// Gives rows their places where some of the train rows are held out: splits and orders, in the
/// order of `splits` and `labels`. `hold_out_rows` 0 leaves all as they are.
struct Place {
  Split split = Split::train;
  std::uint32_t order = 0;
};
std::vector<Place> place_rows(const std::vector<Split>& splits,
                              const std::vector<std::int32_t>& labels, std::uint32_t hold_out_rows,
                              std::uint64_t seed);

/// A hash of content that comes in pieces, XXH3 in 128 bits.
class ContentHash {
 public:
  ContentHash();
  ~ContentHash();
  ContentHash(const ContentHash&) = delete;
  ContentHash& operator=(const ContentHash&) = delete;
  void add(std::string_view bytes);
  std::array<std::uint64_t, 2> value() const;  ///< low, high
  std::string text() const;                    ///< 32 hexadecimal digits

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The low and high half of the hash of all of it.
std::array<std::uint64_t, 2> hash_of(std::string_view bytes);

/// The hash of several named contents, whatever their order: of "NAME HASH\n" by ascending name.
std::string hash_of_files(std::vector<std::pair<std::string, std::string>> names_and_hashes);

}  // namespace attnbench::tasks::data
