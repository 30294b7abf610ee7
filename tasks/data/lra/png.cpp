#include "tasks/data/lra/png.hpp"

#include <png.h>

#include <algorithm>
#include <string>

namespace attnbench::tasks::data::lra {
namespace {

struct Image {
  Image() { image.version = PNG_IMAGE_VERSION; }
  ~Image() { ::png_image_free(&image); }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
  png_image image{};
};

}  // namespace

std::vector<std::uint8_t> read_grey_png(std::string_view content, int side) {
  const std::string expected =
      ", expected an 8-bit grey PNG of " + std::to_string(side) + " x " + std::to_string(side);
  if (content.empty()) throw UsageError("has no bytes" + expected);
  Image png;
  if (::png_image_begin_read_from_memory(&png.image, content.data(), content.size()) == 0) {
    throw UsageError(std::string("is not a PNG (") + png.image.message + ")" + expected);
  }
  if ((png.image.format & PNG_FORMAT_FLAG_LINEAR) != 0) throw UsageError("has 16 bits" + expected);
  if (png.image.format != PNG_FORMAT_GRAY) {
    throw UsageError("has colours or transparency" + expected);
  }
  if (png.image.width != static_cast<unsigned>(side) ||
      png.image.height != static_cast<unsigned>(side)) {
    throw UsageError("has " + std::to_string(png.image.width) + " x " +
                     std::to_string(png.image.height) + " pixels" + expected);
  }
  std::vector<std::uint8_t> levels(PNG_IMAGE_SIZE(png.image));
  if (::png_image_finish_read(&png.image, nullptr, levels.data(), side, nullptr) == 0) {
    throw UsageError(std::string("is cut short or damaged (") + png.image.message + ")" + expected);
  }
  return levels;
}

void write_grey_png(const std::filesystem::path& file, std::span<const std::uint8_t> levels,
                    int width, int height) {
  Image png;
  png.image.width = static_cast<unsigned>(width);
  png.image.height = static_cast<unsigned>(height);
  png.image.format = PNG_FORMAT_GRAY;
  if (::png_image_write_to_file(&png.image, file.c_str(), 0, levels.data(), width, nullptr) == 0) {
    throw UsageError(file.string() + ": cannot be written (" + png.image.message + ")");
  }
}

void write_contact_sheet(const Cache& cache, std::span<const std::uint32_t> rows,
                         const std::filesystem::path& file, int columns) {
  const int width = cache.description().width;
  if (width <= 0) {
    throw UsageError(cache.file().string() + ": its rows are not images; show them as text");
  }
  if (rows.empty()) throw UsageError(cache.file().string() + ": no rows to show");
  constexpr int frame = 3;
  const int scale = std::max(1, 128 / width);
  const int height = static_cast<int>(cache.length(rows[0])) / width;
  columns = std::clamp(columns, 1, static_cast<int>(rows.size()));
  const int lines = (static_cast<int>(rows.size()) + columns - 1) / columns;
  const int cell_width = width * scale + 2 * frame;
  const int cell_height = height * scale + 2 * frame;
  std::vector<std::uint8_t> sheet(static_cast<std::size_t>(columns * cell_width) *
                                  static_cast<std::size_t>(lines * cell_height));
  std::vector<std::int64_t> pixels(static_cast<std::size_t>(width * height));
  const auto classes = static_cast<int>(cache.description().classes.size());
  for (int i = 0; i < static_cast<int>(rows.size()); ++i) {
    const std::uint32_t row = rows[static_cast<std::size_t>(i)];
    cache.copy(row, 0, pixels);
    const int shade = 64 + 191 * cache.label(row) / std::max(1, classes - 1);
    for (int y = 0; y < cell_height; ++y) {
      for (int x = 0; x < cell_width; ++x) {
        const int line = (y - frame) / scale;
        const int column = (x - frame) / scale;
        const bool framed = y < frame || x < frame || line >= height || column >= width;
        const std::int64_t level =
            framed ? shade : pixels[static_cast<std::size_t>(line * width + column)];
        sheet[static_cast<std::size_t>((i / columns * cell_height + y) * columns * cell_width +
                                       i % columns * cell_width + x)] =
            static_cast<std::uint8_t>(level);
      }
    }
  }
  write_grey_png(file, sheet, columns * cell_width, lines * cell_height);
}

}  // namespace attnbench::tasks::data::lra
