#include "tasks/data/cache_writer.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "tasks/data/cache_format.hpp"

namespace attnbench::tasks::data {
namespace {

using tasks::data::format::BlockHeader;
using tasks::data::format::FileHeader;
using tasks::data::format::Trailer;
using tasks::data::format::view;

template <class Value>
void append(Bytes& bytes, const Value& value) {
  static_assert(std::is_arithmetic_v<Value> || std::is_same_v<Value, FileHeader> ||
                std::is_same_v<Value, Trailer>);
  const auto* raw = reinterpret_cast<const unsigned char*>(&value);
  bytes.insert(bytes.end(), raw, raw + sizeof(value));
}

void append_text(Bytes& bytes, std::string_view text) {
  bytes.insert(bytes.end(), text.begin(), text.end());
}

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::uint64_t token_bytes_of(const DataDescription& description) {
  const int ids = description.vocabulary - description.first_token;
  return ids <= 1 << 8 ? 1 : ids <= 1 << 16 ? 2 : 4;
}

Bytes header_of(const DataDescription& description) {
  const std::string text = text_of(description);
  FileHeader header{tasks::data::format::magic, tasks::data::format::version,
                    static_cast<std::uint32_t>(text.size()), 0, token_bytes_of(description)};
  header.text_hash = hash_of(text)[0];
  Bytes bytes;
  append(bytes, header);
  append_text(bytes, text);
  bytes.resize(tasks::data::format::rounded_up(bytes.size()));
  return bytes;
}

BlockEncoder::BlockEncoder(const DataDescription& description, std::uint64_t first_row)
    : description_(description), token_bytes_(token_bytes_of(description)), first_row_(first_row) {}

void BlockEncoder::add(const Row& row) {
  const bool two = description_.towers == 2;
  if (row.tokens.empty() || row.second.empty() == two || row.label < 0 ||
      static_cast<std::size_t>(row.label) >= description_.classes.size()) {
    throw std::logic_error(description_.task +
                           ": a source made a row of no tokens, of another "
                           "number of towers, or with a label out of range");
  }
  add_tokens(row.tokens);
  if (two) add_tokens(row.second);
  labels_.push_back(row.label);
  orders_.push_back(row.order);
  splits_.push_back(static_cast<unsigned char>(row.split));
}

Bytes BlockEncoder::bytes() const {
  Bytes block(sizeof(BlockHeader));
  for (const std::uint32_t offset : offsets_) append(block, offset);
  for (const std::int32_t label : labels_) append(block, label);
  for (const std::uint32_t order : orders_) append(block, order);
  block.insert(block.end(), splits_.begin(), splits_.end());
  block.resize(tasks::data::format::rounded_up(block.size(), 8));
  block.insert(block.end(), tokens_.begin(), tokens_.end());
  BlockHeader header{};
  header.mark = tasks::data::format::block_mark;
  header.first_row = first_row_;
  header.rows = labels_.size();
  header.payload_bytes = block.size() - sizeof(BlockHeader);
  header.payload_hash = hash_of(view(block.data() + sizeof(BlockHeader), header.payload_bytes));
  std::memcpy(block.data(), &header, sizeof(header));
  block.resize(tasks::data::format::rounded_up(block.size()));
  return block;
}

void BlockEncoder::add_tokens(const std::vector<Token>& tokens) {
  const auto first = static_cast<Token>(description_.first_token);
  for (const Token token : tokens) {
    if (token < first || token >= static_cast<Token>(description_.vocabulary)) {
      throw std::logic_error(description_.task + ": a source made the token " +
                             std::to_string(token));
    }
    Token stored = token - first;
    for (std::uint64_t byte = 0; byte < token_bytes_; ++byte, stored >>= 8) {
      tokens_.push_back(static_cast<unsigned char>(stored));
    }
  }
  offsets_.push_back(offsets_.back() + static_cast<std::uint32_t>(tokens.size()));
}

CacheIndex::CacheIndex(const DataDescription& description) : description_(description) {
  for (SplitFacts& facts : facts_) facts.of_label.resize(description.classes.size());
}

void CacheIndex::add_block(const Bytes& block, std::uint64_t position) {
  const auto number = [&](std::uint64_t at) {
    std::uint32_t value;
    std::memcpy(&value, block.data() + sizeof(BlockHeader) + at, sizeof(value));
    return value;
  };
  BlockHeader header;
  std::memcpy(&header, block.data(), sizeof(header));
  const auto towers = static_cast<std::uint64_t>(description_.towers);
  const tasks::data::format::PayloadLayout layout(header.rows, towers);
  const std::uint64_t width = token_bytes_of(description_);
  for (std::uint64_t row = 0; row < header.rows; ++row) {
    const std::uint32_t label = number(layout.labels + 4 * row);
    const std::uint8_t split = block[sizeof(BlockHeader) + layout.splits + row];
    SplitFacts& facts = facts_[split];
    ++facts.rows;
    ++facts.of_label[label];
    ContentHash hash;
    hash.add(view(reinterpret_cast<const unsigned char*>(&label), sizeof(label)));
    for (std::uint64_t tower = 0; tower < towers; ++tower) {
      const std::uint64_t begin = number(4 * (row * towers + tower));
      const std::uint32_t length =
          number(4 * (row * towers + tower + 1)) - static_cast<std::uint32_t>(begin);
      facts.tokens += length;
      facts.longest = std::max(facts.longest, length);
      facts.shortest = facts.shortest == 0 ? length : std::min(facts.shortest, length);
      hash.add(view(reinterpret_cast<const unsigned char*>(&length), sizeof(length)));
      hash.add(
          view(block.data() + sizeof(BlockHeader) + layout.tokens + begin * width, length * width));
    }
    rows_[split].push_back({number(layout.orders + 4 * row),
                            static_cast<std::uint32_t>(header.first_row + row), hash.value()[0]});
  }
  positions_.push_back(position);
}

Bytes CacheIndex::footer(std::uint64_t position) {
  Bytes bytes;
  for (const std::uint64_t at : positions_) append(bytes, at);
  ContentHash content;
  CacheFacts all;
  for (const Split split : every_split) {
    auto& rows = rows_[static_cast<std::size_t>(split)];
    SplitFacts& facts = facts_[static_cast<std::size_t>(split)];
    std::sort(rows.begin(), rows.end(),
              [](const Entry& a, const Entry& b) { return a.order < b.order; });
    ContentHash of_split;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (i > 0 && rows[i].order == rows[i - 1].order) {
        throw std::logic_error(description_.task + ": two rows in one place of their split");
      }
      append(bytes, rows[i].row);
      of_split.add(view(reinterpret_cast<const unsigned char*>(&rows[i].hash), 8));
    }
    facts.index_hash = of_split.text();
    content.add(std::string(to_string(split)) + " " + std::to_string(rows.size()) + " " +
                facts.index_hash + "\n");
    all.splits[to_string(split)] = facts;
  }
  all.content_hash = content.text();
  const std::string text = text_of(all);
  append_text(bytes, text);
  bytes.resize(tasks::data::format::rounded_up(bytes.size()));
  Trailer trailer{};
  trailer.footer_position = position;
  trailer.footer_bytes = bytes.size();
  trailer.footer_hash = hash_of(view(bytes.data(), bytes.size()))[0];
  trailer.facts_bytes = text.size();
  trailer.rows = facts_[0].rows + facts_[1].rows + facts_[2].rows;
  trailer.blocks = positions_.size();
  trailer.magic = tasks::data::format::magic;
  append(bytes, trailer);
  return bytes;
}

}  // namespace attnbench::tasks::data
