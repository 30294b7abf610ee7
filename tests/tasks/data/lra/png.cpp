#include "tasks/data/lra/png.hpp"

#include <png.h>

#include "tasks/data/lra/listops.hpp"
#include "tasks/data/lra/pathfinder.hpp"
#include "tasks/data/prepare.hpp"
#include "tests/tasks/data/support.hpp"

using namespace attnbench;
using namespace attnbench::tasks::data;
using namespace attnbench::tasks::data::lra;
using namespace attnbench::test;

namespace {

/// A PNG of libpng's simplified `format`.
std::string png_of(unsigned format, int side) {
  const TemporaryFolder folder;
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = image.height = static_cast<unsigned>(side);
  image.format = format;
  const std::vector<std::uint16_t> bytes(static_cast<std::size_t>(side * side * 4), 30'000);
  REQUIRE(png_image_write_to_file(&image, (folder / "image.png").c_str(), 0, bytes.data(), 0,
                                  nullptr) != 0);
  return read_file(folder / "image.png");
}

}  // namespace

TEST_CASE("grey levels come back from a PNG as they were written", "[lra][png]") {
  const TemporaryFolder folder;
  std::vector<std::uint8_t> levels(32 * 32);
  for (std::size_t i = 0; i < levels.size(); ++i) levels[i] = static_cast<std::uint8_t>(i * 7);
  write_grey_png(folder / "image.png", levels, 32, 32);
  CHECK(read_grey_png(read_file(folder / "image.png"), 32) == levels);
  CHECK(says(refusal([&] { write_grey_png(folder / "none/image.png", levels, 32, 32); }),
             {"none/image.png", "cannot be written"}));
}

TEST_CASE("other PNGs are refused with what they are", "[lra][png]") {
  const auto refused = [](const std::string& content) {
    return refusal([&] { read_grey_png(content, 32); });
  };
  const std::string good = png_of(PNG_FORMAT_GRAY, 32);
  CHECK(refused(good).empty());
  CHECK(says(refused(""), {"no bytes", "expected an 8-bit grey PNG of 32 x 32"}));
  CHECK(says(refused("JFIF"), {"is not a PNG"}));
  CHECK(says(refused(png_of(PNG_FORMAT_LINEAR_Y, 32)), {"has 16 bits"}));
  CHECK(says(refused(png_of(PNG_FORMAT_RGB, 32)), {"colours"}));
  CHECK(says(refused(png_of(PNG_FORMAT_GRAY, 16)), {"has 16 x 16 pixels"}));
  CHECK(says(refused(good.substr(0, good.size() - 30)), {"expected an 8-bit grey PNG"}));
}

TEST_CASE("a contact sheet shows images beside each other", "[lra][png]") {
  const TemporaryFolder folder;
  PathfinderRules rules;
  rules.rows = {6, 0, 0};
  PathfinderGenerator generator(rules);
  prepare(generator, folder / "p.lra");
  const Cache cache(folder / "p.lra");
  write_contact_sheet(cache, cache.index(Split::train), folder / "sheet.png", 3);
  // Three by two cells of 4 x 32 + 2 x 3 pixels; PNG keeps its size at bytes 16 to 23.
  const std::string png = read_file(folder / "sheet.png");
  const auto number = [&](std::size_t at) {
    return static_cast<unsigned char>(png[at + 2]) * 256 + static_cast<unsigned char>(png[at + 3]);
  };
  CHECK(number(16) == 3 * 134);
  CHECK(number(20) == 2 * 134);

  ListOpsRules list;
  list.rows = {5, 0, 0};
  ListOpsGenerator words(list);
  prepare(words, folder / "l.lra");
  const Cache text(folder / "l.lra");
  CHECK(
      says(refusal([&] { write_contact_sheet(text, text.index(Split::train), folder / "no.png"); }),
           {"not images", "as text"}));
}
