#include "tasks/data/rows.hpp"

#include <algorithm>
#include <cstdio>

#include "core/hash.hpp"
#include "core/random.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace attnbench::tasks::data {

static void fields(auto& json, OrConst<DataDescription> auto& value) {
  JSON_AT(task, settings, source, source_hash, classes, vocabulary, first_token, towers, width,
          notes);
}

void to_json(Json& json, const DataDescription& description) {
  json = Json::object();
  JsonWriter writer(json);
  fields(writer, description);
}

void from_json(const Json& json, DataDescription& description) {
  try {
    description = {};
    JsonReader reader(json);
    fields(reader, description);
    const bool sound = (description.towers == 1 || description.towers == 2) &&
                       description.first_token >= 0 && description.width >= 0 &&
                       description.vocabulary > description.first_token &&
                       description.vocabulary <= most_tokens && !description.classes.empty() &&
                       description.settings.is_object();
    if (sound) return;
  } catch (const SchemaError&) {
  }
  throw UsageError("the description of the rows is not one of this program");
}

void DataDescription::set_generated(Json decisive) {
  settings = std::move(decisive);
  ContentHash hash;
  hash.add(settings.dump());
  source = "generated";
  source_hash = hash.text();
}

Ticker::Ticker(const ProgressCall& call, PreparationProgress::Stage stage, std::uint64_t total,
               std::uint64_t resumed)
    : call_(call), began_(std::chrono::steady_clock::now()) {
  progress_.stage = stage;
  progress_.total = total;
  progress_.resumed = resumed;
}

void Ticker::tick(std::uint64_t done, bool now) {
  if (!call_) return;
  progress_.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  if (!now && progress_.seconds - called_ < 0.1) return;
  called_ = progress_.seconds;
  progress_.done = done;
  if (!call_(progress_)) throw PreparationCancelled();
}

std::pair<Split, std::uint32_t> SplitCounts::place(std::uint64_t number) const {
  if (number < train) return {Split::train, static_cast<std::uint32_t>(number)};
  number -= train;
  if (number < validation) return {Split::validation, static_cast<std::uint32_t>(number)};
  return {Split::test, static_cast<std::uint32_t>(number - validation)};
}

std::vector<bool> hold_out(const std::vector<std::int32_t>& labels, std::uint32_t count,
                           std::uint64_t seed) {
  if (count >= labels.size()) {
    throw UsageError("hold_out is " + std::to_string(count) + ", but there are only " +
                     std::to_string(labels.size()) + " rows to hold them out of: choose fewer");
  }
  // A shuffled list of each class; then always the class that is furthest behind its share.
  const std::int32_t classes = *std::max_element(labels.begin(), labels.end()) + 1;
  std::vector<std::vector<std::uint32_t>> of_class(static_cast<std::size_t>(classes));
  for (std::size_t row = 0; row < labels.size(); ++row) {
    of_class[static_cast<std::size_t>(labels[row])].push_back(static_cast<std::uint32_t>(row));
  }
  for (std::size_t label = 0; label < of_class.size(); ++label) {
    Random(key_of({seed, 0x686f6c64 /* "hold" */}), label).shuffle(of_class[label]);
  }
  std::vector<bool> held(labels.size());
  std::vector<std::uint64_t> taken(of_class.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    std::size_t next = 0;
    double furthest = -1;
    for (std::size_t label = 0; label < of_class.size(); ++label) {
      const double share = static_cast<double>(of_class[label].size()) * (i + 1) /
                           static_cast<double>(labels.size());
      const double behind = share - static_cast<double>(taken[label]);
      if (taken[label] < of_class[label].size() && behind > furthest) {
        furthest = behind;
        next = label;
      }
    }
    held[of_class[next][taken[next]++]] = true;
  }
  return held;
}

std::vector<Place> place_rows(const std::vector<Split>& splits,
                              const std::vector<std::int32_t>& labels, std::uint32_t hold_out_rows,
                              std::uint64_t seed) {
  std::vector<Place> places(splits.size());
  std::vector<std::int32_t> train_labels;
  for (std::size_t row = 0; row < splits.size(); ++row) {
    places[row].split = splits[row];
    if (splits[row] == Split::train) train_labels.push_back(labels[row]);
  }
  if (hold_out_rows > 0) {
    const std::vector<bool> held = hold_out(train_labels, hold_out_rows, seed);
    std::size_t of_train = 0;
    for (Place& place : places) {
      if (place.split == Split::train && held[of_train++]) place.split = Split::validation;
    }
  }
  std::array<std::uint32_t, 3> next{};
  for (Place& place : places) place.order = next[static_cast<std::size_t>(place.split)]++;
  return places;
}

struct ContentHash::State {
  XXH3_state_t xxh;
};

ContentHash::ContentHash() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh); }

ContentHash::~ContentHash() = default;

void ContentHash::add(std::string_view bytes) {
  XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size());
}

std::array<std::uint64_t, 2> ContentHash::value() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh);
  return {hash.low64, hash.high64};
}

std::string ContentHash::text() const {
  const std::array<std::uint64_t, 2> hash = value();
  std::array<char, 33> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx%016llx",
                static_cast<unsigned long long>(hash[1]), static_cast<unsigned long long>(hash[0]));
  return digits.data();
}

std::array<std::uint64_t, 2> hash_of(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

std::string hash_of_files(std::vector<std::pair<std::string, std::string>> names_and_hashes) {
  std::sort(names_and_hashes.begin(), names_and_hashes.end());
  std::string text;
  for (const auto& [name, hash] : names_and_hashes) text += name + ' ' + hash + '\n';
  return hash_text(text);
}

}  // namespace attnbench::tasks::data
