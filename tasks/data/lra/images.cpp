#include "tasks/data/lra/images.hpp"

#include <algorithm>
#include <map>

#include "tasks/data/input.hpp"

namespace attnbench::tasks::data::lra {
namespace {

namespace fs = std::filesystem;

/// The wanted files of a source, whole, by their names without folders.
class Contents {
 public:
  Contents(const fs::path& from, const std::vector<std::string>& wanted, const std::string& what,
           const ProgressCall& progress)
      : from_(from) {
    std::vector<std::string> others;
    std::vector<std::pair<std::string, std::string>> hashes;
    Input input(from, progress);
    while (input.next()) {
      std::string name(components(input.name()).back());
      // Some copies are called train-images.idx3-ubyte.
      std::replace(name.begin(),
                   name.end() - static_cast<std::ptrdiff_t>(std::min<std::size_t>(name.size(), 4)),
                   '.', '-');
      if (std::find(wanted.begin(), wanted.end(), name) == wanted.end()) {
        others.push_back(input.name());
        continue;
      }
      std::string content = input.read_all();
      ContentHash hash;
      hash.add(content);
      if (!files_.emplace(name, std::move(content)).second) {
        throw UsageError(input.at("is there twice: keep one"));
      }
      hashes.emplace_back(name, hash.text());
    }
    if (files_.empty()) refuse_content(from, "expected " + what, others);
    for (const std::string& name : wanted) {
      if (!files_.contains(name)) {
        throw UsageError(from.string() + ": " + name + " is missing; expected " + what);
      }
    }
    hash_ = hash_of_files(std::move(hashes));
  }

  const std::string& of(const std::string& name) const { return files_.at(name); }
  const std::string& hash() const { return hash_; }
  [[noreturn]] void refuse(const std::string& name, const std::string& fault) const {
    throw UsageError(from_.string() + ", member " + name + ": " + fault);
  }

 private:
  fs::path from_;
  std::map<std::string, std::string> files_;
  std::string hash_;
};

class ImageSource final : public RowSource {
 public:
  ImageSource(DataDescription description, const ImageRules& rules)
      : description_(std::move(description)), rules_(rules) {
    description_.task = "lra.image";
    description_.vocabulary = 256;
    description_.settings.update({{"hold_out", rules.hold_out}, {"data_seed", rules.seed}});
    pixels_each_ = static_cast<std::size_t>(description_.width * description_.width);
  }

  void add(const std::vector<std::uint8_t>& pixels, std::int32_t label, Split split) {
    pixels_.insert(pixels_.end(), pixels.begin(), pixels.end());
    labels_.push_back(label);
    splits_.push_back(split);
  }
  void finish() { places_ = place_rows(splits_, labels_, rules_.hold_out, rules_.seed); }

  const DataDescription& description() const override { return description_; }
  std::uint64_t rows() const override { return labels_.size(); }
  std::uint64_t cache_bytes() const override { return rows() * (pixels_each_ + 24) + 65'536; }
  bool any_order() const override { return true; }
  void make(std::uint64_t number, Row& row) override {
    const auto begin = pixels_.begin() + static_cast<std::ptrdiff_t>(number * pixels_each_);
    row.tokens.assign(begin, begin + static_cast<std::ptrdiff_t>(pixels_each_));
    row.second.clear();
    row.label = labels_[number];
    row.split = places_[number].split;
    row.order = places_[number].order;
  }

 private:
  DataDescription description_;
  ImageRules rules_;
  std::size_t pixels_each_;
  std::vector<std::uint8_t> pixels_;
  std::vector<std::int32_t> labels_;
  std::vector<Split> splits_;
  std::vector<Place> places_;
};

unsigned byte_at(std::string_view content, std::size_t at) {
  return static_cast<unsigned char>(content[at]);
}

// ---- CIFAR-10

std::uint8_t grey_of(const std::string& rule, unsigned red, unsigned green, unsigned blue) {
  const double light = 0.2989 * red + 0.5870 * green + 0.1140 * blue;
  if (rule == "tensorflow") return static_cast<std::uint8_t>(255.5 * light / 255);
  if (rule == "floor") return static_cast<std::uint8_t>(light);
  return static_cast<std::uint8_t>((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16);
}

// ---- IDX

/// The data of an IDX file of bytes, whose dimensions follow its magic number, all big-endian.
std::string_view idx_data(const Contents& contents, const std::string& name,
                          std::vector<std::uint32_t>& dimensions) {
  const std::string& content = contents.of(name);
  const auto number = [&](std::size_t at) {
    return byte_at(content, at) << 24 | byte_at(content, at + 1) << 16 |
           byte_at(content, at + 2) << 8 | byte_at(content, at + 3);
  };
  const std::size_t begin = 4 + 4 * dimensions.size();
  const std::size_t magic = 0x800 + dimensions.size();  // 8: unsigned bytes
  if (content.size() < 4) contents.refuse(name, "is cut short: get it again");
  if (number(0) != magic) {
    contents.refuse(name, "begins with " + std::to_string(number(0)) + ", expected " +
                              std::to_string(magic) + " (bytes in " +
                              std::to_string(dimensions.size()) + " dimensions)");
  }
  if (content.size() < begin) contents.refuse(name, "is cut short: get it again");
  std::uint64_t bytes = 1;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    dimensions[i] = number(4 + 4 * i);
    if (i > 0 && dimensions[i] != 28) {
      contents.refuse(name, "has images of another size: " + std::to_string(dimensions[i]) +
                                " pixels, expected 28 x 28");
    }
    bytes *= dimensions[i];
  }
  if (content.size() != begin + bytes) {
    contents.refuse(name, "holds " + std::to_string(content.size() - begin) + " bytes of data, " +
                              std::to_string(bytes) + " are announced: get it again");
  }
  return std::string_view(content).substr(begin);
}

/// One 28 x 28 image at another side.
std::vector<std::uint8_t> resized(std::string_view image, int side) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(side * side));
  const auto level = [&](int row, int column) {
    return byte_at(image, static_cast<std::size_t>(row * 28 + column));
  };
  for (int row = 0; row < side; ++row) {
    for (int column = 0; column < side; ++column) {
      unsigned value = 0;
      if (side == 14) {
        value = (level(2 * row, 2 * column) + level(2 * row, 2 * column + 1) +
                 level(2 * row + 1, 2 * column) + level(2 * row + 1, 2 * column + 1) + 2) /
                4;
      } else {
        const int edge = (side - 28) / 2;
        const bool inside = std::min(row, column) >= edge && std::max(row, column) < 28 + edge;
        if (inside) value = level(row - edge, column - edge);
      }
      pixels[static_cast<std::size_t>(row * side + column)] = static_cast<std::uint8_t>(value);
    }
  }
  return pixels;
}

}  // namespace

std::unique_ptr<RowSource> read_cifar10(const fs::path& from, const ImageRules& rules,
                                        const ProgressCall& progress) {
  if (rules.grey != "tensorflow" && rules.grey != "floor" && rules.grey != "pillow") {
    throw UsageError("lra.image: grey is " + rules.grey + ", expected tensorflow, floor or pillow");
  }
  const std::vector<std::string> names{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                       "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};
  const Contents contents(from, names,
                          "data_batch_1.bin to data_batch_5.bin and test_batch.bin, the binary "
                          "version of CIFAR-10 (cifar-10-binary.tar.gz)",
                          progress);
  DataDescription description;
  description.settings = {{"reader", "cifar10 1"}, {"source", "cifar10"}, {"grey", rules.grey}};
  description.classes = {"airplane", "automobile", "bird",  "cat",  "deer",
                         "dog",      "frog",       "horse", "ship", "truck"};
  description.source = from.filename().string();
  description.source_hash = contents.hash();
  description.width = 32;
  auto source = std::make_unique<ImageSource>(std::move(description), rules);
  constexpr std::size_t plane = 32 * 32;
  constexpr std::size_t record = 1 + 3 * plane;
  std::vector<std::uint8_t> pixels(plane);
  for (const std::string& name : names) {
    const std::string& content = contents.of(name);
    if (content.empty() || content.size() % record != 0) {
      contents.refuse(name, "has " + std::to_string(content.size()) +
                                " bytes, expected whole records of 3073: get it again");
    }
    for (std::size_t at = 0; at < content.size(); at += record) {
      const unsigned label = byte_at(content, at);
      if (label > 9) {
        contents.refuse(name, "record " + std::to_string(at / record) + " has the label " +
                                  std::to_string(label) + ", expected 0 to 9: get it again");
      }
      for (std::size_t i = 0; i < plane; ++i) {
        const std::size_t pixel = at + 1 + i;
        pixels[i] = grey_of(rules.grey, byte_at(content, pixel), byte_at(content, pixel + plane),
                            byte_at(content, pixel + 2 * plane));
      }
      source->add(pixels, static_cast<std::int32_t>(label),
                  name == "test_batch.bin" ? Split::test : Split::train);
    }
  }
  source->finish();
  return source;
}

std::unique_ptr<RowSource> read_fashion_mnist(const fs::path& from, const ImageRules& rules,
                                              const ProgressCall& progress) {
  if (rules.side != 14 && rules.side != 28 && rules.side != 32) {
    throw UsageError("lra.image: side is " + std::to_string(rules.side) +
                     ", expected 14, 28 or 32");
  }
  const std::vector<std::string> names{"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                       "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
  const Contents contents(from, names,
                          "{train,t10k}-images-idx3-ubyte and {train,t10k}-labels-idx1-ubyte, with "
                          "or without .gz (Debian: apt-get install dataset-fashion-mnist, then "
                          "--from /usr/share/datasets/fashion-mnist)",
                          progress);
  DataDescription description;
  description.settings = {
      {"reader", "fashion_mnist 1"}, {"source", "fashion_mnist"}, {"side", rules.side}};
  description.classes = {"T-shirt/top", "trouser", "pullover", "dress", "coat",
                         "sandal",      "shirt",   "sneaker",  "bag",   "ankle boot"};
  description.source = from.filename().string();
  description.source_hash = contents.hash();
  description.width = rules.side;
  auto source = std::make_unique<ImageSource>(std::move(description), rules);
  for (const Split split : {Split::train, Split::test}) {
    const std::string part = split == Split::train ? "train" : "t10k";
    const std::string labels_name = part + "-labels-idx1-ubyte";
    std::vector<std::uint32_t> image_count(3), label_count(1);
    const std::string_view images = idx_data(contents, part + "-images-idx3-ubyte", image_count);
    const std::string_view labels = idx_data(contents, labels_name, label_count);
    if (image_count[0] != label_count[0]) {
      contents.refuse(labels_name, "holds " + std::to_string(label_count[0]) + " labels for " +
                                       std::to_string(image_count[0]) +
                                       " images: both must be of one set");
    }
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (byte_at(labels, i) > 9) {
        contents.refuse(labels_name, "label " + std::to_string(i) + " is " +
                                         std::to_string(byte_at(labels, i)) + ", expected 0 to 9");
      }
      source->add(resized(images.substr(i * 28 * 28, 28 * 28), rules.side),
                  static_cast<std::int32_t>(byte_at(labels, i)), split);
    }
  }
  source->finish();
  return source;
}

}  // namespace attnbench::tasks::data::lra
