#include "tasks/data/lm/token_files.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/text/printable.hpp"

namespace attnbench::tasks::data::lm {
namespace {

constexpr std::pair<const char*, Encoding> encoding_names[] = {{"bytes", Encoding::bytes},
                                                               {"uint16", Encoding::uint16},
                                                               {"uint32", Encoding::uint32},
                                                               {"llm.c", Encoding::llm_c},
                                                               {"words", Encoding::words}};

/// A header of llm.c begins with these numbers.
struct Magic {
  std::uint32_t magic;
  std::uint32_t version;
  std::size_t width;  ///< bytes of an id
};
constexpr std::array<Magic, 2> magics{{{20240520, 1, 2}, {20240801, 7, 4}}};
constexpr std::size_t header_bytes = 256 * sizeof(std::int32_t);
constexpr std::string_view end_of_line = "<eos>";
constexpr std::string_view white_space = " \t\v\f\r";

std::uint32_t number_at(const char* bytes, std::size_t width) {
  std::uint32_t number = 0;  // little-endian, as cache_format.hpp holds this machine to be
  std::memcpy(&number, bytes, width);
  return number;
}

const Magic* magic_of(const char* bytes) {
  const auto found = std::find_if(magics.begin(), magics.end(), [&](const Magic& one) {
    return one.magic == number_at(bytes, 4);
  });
  return found == magics.end() ? nullptr : &*found;
}

}  // namespace

Encoding encoding_from(const std::string& name) {
  std::string known;
  for (const auto& [word, encoding] : encoding_names) {
    if (name == word) return encoding;
    known += (known.empty() ? "" : ", ") + std::string(word);
  }
  throw UsageError("tokens must be one of " + known + ", not " + text::quotable(name));
}

const char* to_string(Encoding encoding) {
  for (const auto& [word, one] : encoding_names) {
    if (one == encoding) return word;
  }
  return "";
}

TokenFiles::TokenFiles(const std::filesystem::path& from, Encoding encoding,
                       std::int64_t vocabulary, Words& words, const ProgressCall& progress,
                       Content content, std::function<void(std::string_view)> seen)
    : encoding_(encoding),
      vocabulary_(static_cast<std::uint64_t>(vocabulary)),
      words_(words),
      input_(from, progress, Links::inside, content),
      seen_(std::move(seen)) {}

bool TokenFiles::next() {
  width_ = encoding_ == Encoding::uint16 ? 2 : encoding_ == Encoding::uint32 ? 4 : 1;
  declared_.reset();
  place_ = 0;
  odd_ids_small_ = even_ids_small_ = true;
  lines_.reset();
  line_.clear();
  given_ = 0;
  return input_.next();
}

std::size_t TokenFiles::read(std::span<Token> out) {
  if (encoding_ == Encoding::words) return read_words(out);
  if (encoding_ == Encoding::llm_c && !declared_) read_header();
  const std::size_t got = read_ids(out);
  if (got < out.size()) expect_whole();
  return got;
}

void TokenFiles::read_header() {
  std::array<char, header_bytes> header{};
  const std::size_t got = input_.read(header.data(), header.size());
  if (seen_) seen_({header.data(), got});
  const Magic* const magic = got == header.size() ? magic_of(header.data()) : nullptr;
  if (magic == nullptr) {
    throw UsageError(input_.at(
        "does not begin with a header of llm.c, 256 int32 of which the first is 20240520 or "
        "20240801: set tokens to uint16 or uint32 where the file has no header"));
  }
  const std::uint32_t version = number_at(header.data() + 4, 4);
  if (version != magic->version) {
    throw UsageError(input_.at("is of version " + std::to_string(version) + ", with the magic " +
                               std::to_string(magic->magic) + " expected " +
                               std::to_string(magic->version) + ": write it anew with llm.c"));
  }
  width_ = magic->width;
  declared_ = number_at(header.data() + 8, 4);
}

std::size_t TokenFiles::read_ids(std::span<Token> out) {
  bytes_.resize(out.size() * width_);
  const std::size_t got = input_.read(bytes_.data(), bytes_.size());
  if (seen_) seen_({bytes_.data(), got});
  if (got % width_ != 0) {
    throw UsageError(input_.at("ends within an id: its ids have " + std::to_string(width_) +
                               " bytes each, and " + std::to_string(got % width_) +
                               " are left over: copy it again, or set tokens to what it holds"));
  }
  const bool bare = encoding_ == Encoding::uint16 || encoding_ == Encoding::uint32;
  if (bare && place_ == 0 && got >= 4 && magic_of(bytes_.data()) != nullptr) {
    throw UsageError(input_.at("begins with a header of llm.c: set tokens to llm.c"));
  }
  for (std::size_t i = 0; i < got / width_; ++i, ++place_) {
    const Token id = number_at(bytes_.data() + i * width_, width_);
    if (encoding_ != Encoding::bytes && id >= vocabulary_) {
      throw UsageError(input_.at(
          "the id " + std::to_string(id) + " at place " + std::to_string(place_) +
          " is not below the vocabulary of " + std::to_string(vocabulary_) +
          ": set vocabulary to that of the tokeniser, and tokens to the width of its ids"));
    }
    (place_ % 2 == 0 ? even_ids_small_ : odd_ids_small_) &= id <= most_tokens >> 16;
    out[i] = id;
  }
  return got / width_;
}

void TokenFiles::expect_whole() const {
  if (declared_ && *declared_ != place_) {
    throw UsageError(input_.at("its header says " + std::to_string(*declared_) + " ids, it holds " +
                               std::to_string(place_) + ": copy it again"));
  }
  constexpr std::uint64_t enough = 16;  // which no tokeniser's ids make by accident
  if (encoding_ == Encoding::uint16 && place_ >= enough && place_ % 2 == 0 && odd_ids_small_ &&
      !even_ids_small_) {
    throw UsageError(input_.at(
        "every second uint16 is next to 0, as in a file of uint32: set tokens to uint32"));
  }
}

std::size_t TokenFiles::read_words(std::span<Token> out) {
  if (!lines_) lines_.emplace(input_);
  const auto add = [&](std::string_view word) {
    auto found = words_.find(word);
    if (found == words_.end()) {
      found = words_.emplace(std::string(word), static_cast<Token>(words_.size())).first;
    }
    line_.push_back(found->second);
  };
  std::size_t done = 0;
  for (std::string_view line; done < out.size();) {
    if (given_ == line_.size()) {
      if (!lines_->next(line)) break;
      if (seen_) {
        seen_(line);
        seen_("\n");
      }
      line_.clear();
      given_ = 0;
      for (std::size_t end = 0, begin = line.find_first_not_of(white_space);
           begin != std::string_view::npos; begin = line.find_first_not_of(white_space, end)) {
        end = std::min(line.find_first_of(white_space, begin), line.size());
        add(line.substr(begin, end - begin));
      }
      add(end_of_line);
    }
    const std::size_t taken = std::min(out.size() - done, line_.size() - given_);
    std::copy_n(line_.begin() + static_cast<std::ptrdiff_t>(given_), taken,
                out.begin() + static_cast<std::ptrdiff_t>(done));
    given_ += taken;
    done += taken;
  }
  return done;
}

}  // namespace attnbench::tasks::data::lm
