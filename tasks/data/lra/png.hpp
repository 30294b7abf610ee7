// PNG files in grey: those of published image data, and sheets of prepared images to look at.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "tasks/data/cache.hpp"

namespace attnbench::tasks::data::lra {

/// The levels of an 8-bit grey PNG of side x side pixels, in rows. Throws UsageError with what it
/// is instead: no bytes, no PNG, cut short, 16 bits, colours, another side.
std::vector<std::uint8_t> read_grey_png(std::string_view content, int side);

/// Throws UsageError if `file` cannot be written.
void write_grey_png(const std::filesystem::path& file, std::span<const std::uint8_t> levels,
                    int width, int height);

/// The images of `rows` beside each other, each enlarged by a whole factor and framed: the lighter
/// the frame, the higher the label. Throws UsageError where rows are not images.
void write_contact_sheet(const Cache& cache, std::span<const std::uint32_t> rows,
                         const std::filesystem::path& file, int columns = 6);

}  // namespace attnbench::tasks::data::lra
