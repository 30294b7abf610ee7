#include "tasks/data/input.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "core/text/printable.hpp"
#include "tasks/data/files.hpp"

namespace attnbench::tasks::data {

namespace fs = std::filesystem;

std::vector<std::string_view> components(std::string_view name) {
  std::vector<std::string_view> parts;
  while (!name.empty()) {
    const std::size_t end = std::min(name.find('/'), name.size());
    if (end > 0) parts.push_back(name.substr(0, end));
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return parts;
}

bool reads_archives() {
#ifdef ATTNBENCH_ARCHIVES
  return true;
#else
  return false;
#endif
}

Input::Input(const fs::path& from, const ProgressCall& progress, Links links, Content content)
    : from_(from), content_(content) {
  try {
    if (fs::is_directory(from)) {
      files_ = files_of_folder(from, progress, links);
    } else if (fs::is_regular_file(from) && fs::file_size(from) > 0) {
#ifdef ATTNBENCH_ARCHIVES
      files_ = files_of_archive(from, progress);
#else
      files_ = single_file(from, progress);
#endif
    } else {
      throw UsageError(from.string() + (fs::exists(from)
                                            ? ": is neither a folder nor a file with content"
                                            : ": there is no such file or folder"));
    }
  } catch (const fs::filesystem_error& error) {
    throw UsageError(std::string(error.what()) + ": check the rights to read it");
  }
}

Input::~Input() = default;

bool Input::next() {
  begun_ = false;
  head_.clear();
  return files_->next();
}

const std::string& Input::name() const { return files_->name; }

std::size_t Input::read(char* into, std::size_t count) {
  constexpr std::size_t enough = 512;  // of a tar's first block
  if (!begun_ && content_ != Content::raw) {
    head_.resize(enough);
    head_.resize(files_->read(head_.data(), enough));
    const bool by_name = content_ == Content::numbers;
    const std::string kind = packed_kind(name(), by_name ? std::string_view() : head_);
    if (!kind.empty()) {
      throw UsageError(at(kind + ", and cannot be unpacked here or is damaged: unpack it, get it "
                                 "again or, where its bytes are meant, pass --raw"));
    }
  }
  begun_ = true;
  const std::size_t given = std::min(count, head_.size());
  std::copy_n(head_.begin(), given, into);
  head_.erase(0, given);
  return given + (given < count ? files_->read(into + given, count - given) : 0);
}

std::string Input::read_all(std::size_t most) {
  std::string content;
  constexpr std::size_t step = 1 << 16;
  for (std::size_t got = step; got == step;) {
    const std::size_t before = content.size();
    content.resize(before + step);
    got = read(content.data() + before, step);
    content.resize(before + got);
    if (content.size() > most) {
      throw UsageError(
          at("is larger than " + std::to_string(most) + " bytes, which nothing of these data is"));
    }
  }
  return content;
}

std::string Input::at(const std::string& fault) const {
  return from_.string() + ", member " + text::quotable(name()) + ": " + fault;
}

void TextCheck::add(std::string_view bytes) {
  bytes_ += bytes.size();
  controls_ += static_cast<std::uint64_t>(std::count_if(bytes.begin(), bytes.end(), [](char byte) {
    const auto code = static_cast<unsigned char>(byte);
    const bool layout = code >= '\b' && code <= '\r';
    return code == 0x7f || (code < 0x20 && !layout && code != 0x1b);
  }));
}

std::string TextCheck::fault() const {
  // 10 % of random bytes are control characters, and nearly as many of compressed ones.
  constexpr double most = 0.02;
  constexpr std::uint64_t few = 8;  // as a text may have by accident
  const double share =
      bytes_ == 0 ? 0 : static_cast<double>(controls_) / static_cast<double>(bytes_);
  if (controls_ < few || share <= most) return "";
  char text[96];
  std::snprintf(text, sizeof text,
                "%.0f %% of its bytes are control characters, as no text has them", 100 * share);
  return text;
}

std::string text_fault(const fs::path& file) {
  std::string begin(std::size_t{1} << 20, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(stream.gcount()));
  TextCheck check;
  check.add(begin);
  const std::string kind = packed_kind(file.filename().string(), begin);
  return kind.empty() ? check.fault() : kind;
}

bool Lines::next(std::string_view& line) {
  constexpr std::size_t step = 1 << 18;
  std::size_t looked = begin_;
  for (;;) {
    const std::size_t end = buffer_.find('\n', looked);
    if (end != std::string::npos || (ended_ && begin_ < buffer_.size())) {
      line = std::string_view(buffer_).substr(begin_, std::min(end, buffer_.size()) - begin_);
      begin_ = end == std::string::npos ? buffer_.size() : end + 1;
      if (line.ends_with('\r')) line.remove_suffix(1);
      ++number_;
      return true;
    }
    if (ended_) return false;
    buffer_.erase(0, begin_);
    begin_ = 0;
    looked = buffer_.size();
    if (looked > std::size_t{64} << 20) throw UsageError(at("is longer than 64 MiB"));
    buffer_.resize(looked + step);
    const std::size_t got = input_.read(buffer_.data() + looked, step);
    buffer_.resize(looked + got);
    ended_ = got < step;
  }
}

std::string Lines::at(const std::string& fault) const {
  std::string text = input_.at(fault);
  text.replace(text.size() - fault.size() - 2, 2, ", line " + std::to_string(number_) + ": ");
  return text;
}

void refuse_content(const fs::path& from, const std::string& wanted,
                    const std::vector<std::string>& names_found) {
  std::string text = from.string() + ": " + wanted;
  text += names_found.empty() ? "; it holds no files" : "; it holds ";
  for (std::size_t i = 0; i < std::min<std::size_t>(names_found.size(), 3); ++i) {
    text += (i > 0 ? ", " : "") + text::quotable(names_found[i], 80);
  }
  if (names_found.size() > 3) text += ", ...";
  throw UsageError(text);
}

}  // namespace attnbench::tasks::data
