#include "tasks/data/export.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "core/arrays/npy.hpp"
#include "core/failure.hpp"
#include "core/text/printable.hpp"
#include "tasks/data/lra/listops.hpp"
#include "tasks/data/lra/tables.hpp"

namespace attnbench::tasks::data {
namespace {

namespace fs = std::filesystem;
using arrays::ArrayWriter;
using arrays::Element;

constexpr std::int64_t not_asked = -100;  // what losses of PyTorch pass over

/// A file of text or bytes.
class OutputText {
 public:
  explicit OutputText(const fs::path& file) : file_(file) {
    errno = 0;
    stream_.open(file, std::ios::binary);
    hold();
  }
  void add(std::string_view text) {
    stream_ << text;
    hold();
  }
  void close() {
    stream_.close();
    hold();
  }

 private:
  void hold() const {
    if (stream_) return;
    throw EnvironmentFailure("cannot write " + file_.string() + ": " + std::strerror(errno) +
                             "; free space there or choose another folder");
  }

  fs::path file_;
  std::ofstream stream_;
};

std::vector<std::int64_t> document(const Cache& cache, std::uint32_t row, int tower = 0) {
  std::vector<std::int64_t> ids(cache.length(row, tower));
  cache.copy(row, tower, ids);
  return ids;
}

/// The document's bytes, where tokens are bytes.
std::string bytes_of(const Cache& cache, std::uint32_t row, int tower = 0) {
  std::string text;
  for (const std::int64_t id : document(cache, row, tower)) {
    text += static_cast<char>(id - cache.description().first_token);
  }
  return text;
}

const std::string& class_of(const Cache& cache, std::uint32_t row) {
  return cache.description().classes.at(static_cast<std::size_t>(cache.label(row)));
}

/// The same as the name of a folder.
const std::string& folder_of(const Cache& cache, std::uint32_t row) {
  const std::string& name = class_of(cache, row);
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) {
    throw UsageError(cache.file().string() + ": the class \"" + text::quotable(name, 60) +
                     "\" cannot be a folder's name: export arrays");
  }
  return name;
}

/// A table for each split: the header, then what `line` makes of each row and its number.
template <class Line>
std::vector<ExportedFile> write_tables(const Cache& cache, const fs::path& folder,
                                       const lra::TableNames& names, const Line& line) {
  std::vector<ExportedFile> files;
  for (const Split split : every_split) {
    const std::span<const std::uint32_t> rows = cache.index(split);
    if (rows.empty()) continue;
    const std::string& name = names.of_split[static_cast<std::size_t>(split)];
    OutputText text(folder / name);
    if (!names.header.empty()) text.add(names.header + "\n");
    for (std::size_t i = 0; i < rows.size(); ++i) text.add(line(rows[i], i) + "\n");
    text.close();
    files.push_back({name, rows.size()});
  }
  return files;
}

void add_row(ArrayWriter& tokens, const std::vector<std::int64_t>& ids, Element element) {
  const auto narrowed = [&]<class Stored>(Stored /*type*/) {
    const std::vector<Stored> narrow(ids.begin(), ids.end());
    tokens.add(narrow.data(), static_cast<std::int64_t>(sizeof(Stored) * narrow.size()));
  };
  if (element == Element::uint8) {
    narrowed(std::uint8_t{});
  } else if (element == Element::uint16) {
    narrowed(std::uint16_t{});
  } else {
    narrowed(std::uint32_t{});
  }
}

void write_column(const fs::path& file, const arrays::Shape& shape,
                  const std::vector<std::int64_t>& values) {
  arrays::write_array(file, Element::int64, shape, values.data());
}

/// What the lines of a split are, found in a first reading.
struct LineSizes {
  std::vector<std::int64_t> lengths;
  std::int64_t longest = 0;
  std::int64_t together = 0;  ///< tokens that share a position; 0: a token each
};

/// Calls `take` with each line of the file.
template <class Take>
void each_line(const fs::path& file, const Take& take) {
  std::ifstream stream(file);
  std::string line;
  for (std::uint64_t number = 1; std::getline(stream, line); ++number) {
    try {
      take(Json::parse(line));
    } catch (const nlohmann::json::exception& error) {
      throw UsageError(file.filename().string() + ", line " + std::to_string(number) +
                       ": expected tokens and questions about positions: " + error.what());
    }
  }
  if (stream.bad() || !stream.eof()) throw UsageError(file.string() + ": cannot be read");
}

LineSizes sizes_of(const fs::path& file) {
  LineSizes sizes;
  each_line(file, [&](const Json& line) {
    const Json& tokens = line.at("tokens");
    const auto length = static_cast<std::int64_t>(tokens.size());
    sizes.lengths.push_back(length);
    sizes.longest = std::max(sizes.longest, length);
    if (length > 0 && tokens[0].is_array()) {
      sizes.together = static_cast<std::int64_t>(tokens[0].size());
    }
  });
  return sizes;
}

void write_lines(const fs::path& file, const LineSizes& sizes, const fs::path& folder,
                 const std::string& split) {
  const auto rows = static_cast<std::int64_t>(sizes.lengths.size());
  arrays::Shape shape{rows, sizes.longest};
  ArrayWriter labels(folder / (split + ".labels.npy"), Element::int64, shape);
  if (sizes.together > 0) shape.push_back(sizes.together);
  ArrayWriter tokens(folder / (split + ".tokens.npy"), Element::int64, shape);
  const auto columns = static_cast<std::size_t>(sizes.longest);
  const std::size_t ids =
      columns * static_cast<std::size_t>(std::max<std::int64_t>(1, sizes.together));
  each_line(file, [&](const Json& line) {
    std::vector<std::int64_t> row;
    for (const Json& token : line.at("tokens")) {
      if (sizes.together == 0) {
        row.push_back(token.get<std::int64_t>());
      } else {
        for (const Json& part : token) row.push_back(part.get<std::int64_t>());
      }
    }
    row.resize(ids, 0);
    tokens.add(row.data(), static_cast<std::int64_t>(8 * ids));
    std::vector<std::int64_t> asked(columns, not_asked);
    for (const Json& question : line.at("questions")) {
      const auto place = question.value("place", question.at("position").get<std::size_t>());
      if (place < columns) asked[place] = question.at("label").get<std::int64_t>();
    }
    labels.add(asked.data(), static_cast<std::int64_t>(8 * columns));
  });
  tokens.close();
  labels.close();
}

}  // namespace

std::vector<ExportedFile> write_listops_tables(const Cache& cache, const fs::path& folder) {
  return write_tables(cache, folder, lra::listops_tables, [&](std::uint32_t row, std::size_t) {
    const std::vector<std::int64_t> ids = document(cache, row);
    return lra::listops_text(std::vector<Token>(ids.begin(), ids.end())) + "\t" +
           class_of(cache, row);
  });
}

std::vector<ExportedFile> write_retrieval_tables(const Cache& cache, const fs::path& folder) {
  return write_tables(cache, folder, lra::retrieval_tables, [&](std::uint32_t row, std::size_t i) {
    const std::string number = std::to_string(i);
    return std::to_string(cache.label(row)) + "\t" + number + "a\t" + number + "b\t" +
           bytes_of(cache, row, 0) + "\t" + bytes_of(cache, row, 1);
  });
}

std::vector<ExportedFile> write_class_folders(const Cache& cache, const fs::path& folder) {
  std::vector<ExportedFile> files;
  for (const Split split : every_split) {
    const std::span<const std::uint32_t> rows = cache.index(split);
    const std::size_t digits = std::to_string(rows.size()).size();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const fs::path of_class = folder / to_string(split) / folder_of(cache, rows[i]);
      fs::create_directories(of_class);
      const std::string number = std::to_string(i);
      OutputText text(of_class / (std::string(digits - number.size(), '0') + number + ".txt"));
      text.add(bytes_of(cache, rows[i]));
      text.close();
    }
    if (!rows.empty()) files.push_back({to_string(split), rows.size()});
  }
  return files;
}

std::vector<ExportedFile> write_whole_texts(const Cache& cache, const fs::path& folder) {
  if (cache.description().vocabulary != 256 || cache.description().settings.contains("tokens")) {
    throw UsageError(cache.file().string() +
                     ": holds tokens that are no bytes, which no text is written of; pass --as "
                     "arrays");
  }
  std::vector<ExportedFile> files;
  for (const Split split : every_split) {
    const std::span<const std::uint32_t> rows = cache.index(split);
    if (rows.empty()) continue;
    fs::create_directories(folder / to_string(split));
    const std::string name = std::string(to_string(split)) + "/text.txt";
    OutputText text(folder / name);
    for (const std::uint32_t row : rows) text.add(bytes_of(cache, row));
    text.close();
    files.push_back({name, rows.size()});
  }
  return files;
}

std::vector<ExportedFile> write_arrays(const Cache& cache, const fs::path& folder) {
  const int towers = cache.description().towers;
  const int vocabulary = cache.description().vocabulary;
  const Element element = vocabulary <= 1 << 8    ? Element::uint8
                          : vocabulary <= 1 << 16 ? Element::uint16
                                                  : Element::uint32;
  std::vector<ExportedFile> files;
  for (const Split split : every_split) {
    const std::span<const std::uint32_t> rows = cache.index(split);
    const std::string name = to_string(split);
    const auto count = static_cast<std::int64_t>(rows.size());
    ArrayWriter tokens(folder / (name + ".tokens.npy"), element,
                       {static_cast<std::int64_t>(cache.facts(split).tokens)});
    std::vector<std::int64_t> lengths, labels;
    for (const std::uint32_t row : rows) {
      for (int tower = 0; tower < towers; ++tower) {
        const std::vector<std::int64_t> ids = document(cache, row, tower);
        lengths.push_back(static_cast<std::int64_t>(ids.size()));
        add_row(tokens, ids, element);
      }
      labels.push_back(cache.label(row));
    }
    tokens.close();
    write_column(folder / (name + ".lengths.npy"), {count, towers}, lengths);
    write_column(folder / (name + ".labels.npy"), {count}, labels);
    for (const char* part : {".tokens.npy", ".lengths.npy", ".labels.npy"}) {
      files.push_back({name + part, rows.size()});
    }
  }
  return files;
}

std::vector<ExportedFile> write_arrays_of_lines(const fs::path& from, const fs::path& folder) {
  std::vector<ExportedFile> files;
  for (const Split split : every_split) {
    const std::string name = to_string(split);
    const fs::path file = from / (name + ".jsonl");
    const LineSizes sizes = sizes_of(file);
    write_lines(file, sizes, folder, name);
    write_column(folder / (name + ".lengths.npy"),
                 {static_cast<std::int64_t>(sizes.lengths.size())}, sizes.lengths);
    for (const char* part : {".tokens.npy", ".lengths.npy", ".labels.npy"}) {
      files.push_back({name + part, sizes.lengths.size()});
    }
  }
  return files;
}

}  // namespace attnbench::tasks::data
