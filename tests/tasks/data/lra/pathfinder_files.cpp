#include "tasks/data/lra/pathfinder_files.hpp"

#include <set>

#include "tasks/data/cache.hpp"
#include "tasks/data/lra/png.hpp"
#include "tasks/data/prepare.hpp"
#include "tests/tasks/data/support.hpp"

using namespace attnbench;
using namespace attnbench::tasks::data;
using namespace attnbench::tasks::data::lra;
using namespace attnbench::test;

namespace {

/// A grey PNG of one level.
std::string png_of(int level, int side = 32) {
  const TemporaryFolder folder;
  const std::vector<std::uint8_t> levels(static_cast<std::size_t>(side * side),
                                         static_cast<std::uint8_t>(level));
  write_grey_png(folder / "image.png", levels, side, side);
  return read_file(folder / "image.png");
}

std::string line(int k, int i, int label) {
  return "imgs/" + std::to_string(k) + " sample_" + std::to_string(i) + ".png " +
         std::to_string(i) + " " + std::to_string(label) + " 1.0 14 4 2 0.5 1 1\n";
}

/// Two folders of ten images; the level of an image is 10 k + i, its label that of i, odd or even.
std::map<std::string, std::string> set_of(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (int k = 0; k < 2; ++k) {
    std::string& metadata = files[folder + "metadata/" + std::to_string(k) + ".npy"];
    for (int i = 0; i < 10; ++i) {
      files[folder + "imgs/" + std::to_string(k) + "/sample_" + std::to_string(i) + ".png"] =
          png_of(10 * k + i);
      metadata += line(k, i, i % 2);
    }
  }
  return files;
}

const std::string hard = "pathfinder32/curv_contour_length_14/";

std::string refused_files(const std::map<std::string, std::string>& files,
                          const PathfinderFileRules& rules = {}) {
  const TemporaryFolder folder;
  write_files(folder.path(), files);
  return refusal([&] { rows_of(*read_pathfinder(folder.path(), rules)); });
}

/// A NumPy array of byte strings or of letters, as numpy.save writes it.
std::string array_of(const std::vector<std::vector<std::string>>& rows, bool letters) {
  constexpr std::size_t width = 16;
  std::string header = std::string("{'descr': '") + (letters ? "<U16" : "|S16") +
                       "', 'fortran_order': False, 'shape': (" + std::to_string(rows.size()) +
                       ", " + std::to_string(rows[0].size()) + "), }";
  header.resize(117, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size());
  bytes += '\0';
  bytes += header;
  for (const auto& row : rows) {
    for (std::string field : row) {
      field.resize(width, '\0');
      for (const char letter : field) {
        bytes += letter;
        if (letters) bytes += std::string(3, '\0');
      }
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("Pathfinder images are read with their labels", "[lra][pathfinder_files]") {
  const TemporaryFolder folder;
  write_files(folder.path(), set_of(hard));
  const auto source = read_pathfinder(folder.path());
  REQUIRE(source->rows() == 20);
  std::array<std::set<int>, 3> levels;
  for (const Row& row : rows_of(*source)) {
    const int level = row.tokens[0];
    CHECK(row.tokens == std::vector<Token>(1024, row.tokens[0]));
    CHECK(row.label == level % 2);
    levels[static_cast<std::size_t>(row.split)].insert(level);
  }
  CHECK(read_pathfinder(folder / hard)->description().source_hash ==
        source->description().source_hash);
  CHECK(levels[0].size() == 16);
  CHECK(levels[1].size() == 2);
  CHECK(levels[2].size() == 2);
}

TEST_CASE("the set of the difficulty and side is chosen, the deepest copy of several",
          "[lra][pathfinder_files]") {
  const TemporaryFolder folder;
  auto files = set_of("lra_release/lra_release/" + hard);
  for (const char* other : {"lra_release/pathfinder32/curv_contour_length_14/",
                            "lra_release/lra_release/pathfinder32/curv_baseline/"}) {
    const std::string at = other;
    files[at + "imgs/0/sample_0.png"] = png_of(99);
    files[at + "metadata/0.npy"] = line(0, 0, 1);
  }
  files["lra_release/lra_release/pathfinder64/curv_contour_length_14/imgs/0/sample_0.png"] =
      png_of(1, 64);
  write_files(folder / "folder", files);
  const auto plain = read_pathfinder(folder / "folder");
  CHECK(plain->rows() == 20);
  CHECK(plain->description().notes.at("folder") ==
        "lra_release/lra_release/pathfinder32/curv_contour_length_14");
  PathfinderFileRules easy;
  easy.difficulty = "easy";
  CHECK(read_pathfinder(folder / "folder", easy)->rows() == 1);

  // An archive whose metadata come first or last gives the same data as the folder.
  std::vector<TarMember> members;
  for (const auto& [name, content] : files)
    members.insert(members.begin(), TarMember{name, content, ""});
  write_tar_gz(folder / "lra_release.gz", members);
  const auto packed = read_pathfinder(folder / "lra_release.gz");
  CHECK(packed->description().source_hash == plain->description().source_hash);
  prepare(*plain, folder / "plain.lra");
  prepare(*packed, folder / "packed.lra");
  CHECK(Cache(folder / "plain.lra").content_hash() == Cache(folder / "packed.lra").content_hash());
}

TEST_CASE("another seed gives another split", "[lra][pathfinder_files]") {
  const TemporaryFolder folder;
  write_files(folder.path(), set_of(hard));
  std::array<std::vector<int>, 3> orders;
  const std::array<std::uint64_t, 3> seeds{0, 0, 1};
  for (std::size_t i = 0; i < 3; ++i) {
    PathfinderFileRules rules;
    rules.seed = seeds[i];
    for (const Row& row : rows_of(*read_pathfinder(folder.path(), rules))) {
      orders[i].push_back(static_cast<int>(row.split) * 100 + static_cast<int>(row.order));
    }
  }
  CHECK(orders[0] == orders[1]);
  CHECK(orders[0] != orders[2]);
}

TEST_CASE("metadata are text or arrays of strings", "[lra][pathfinder_files]") {
  const std::vector<PathfinderLine> text =
      parse_pathfinder_metadata(line(3, 17, 1) + line(3, 18, 0));
  REQUIRE(text.size() == 2);
  CHECK(text[0].image == "imgs/3/sample_17.png");
  CHECK(text[0].label == 1);
  CHECK(text[1].label == 0);
  const std::vector<std::vector<std::string>> rows{{"imgs/3", "sample_17.png", "17", "1"},
                                                   {"imgs/3", "sample_18.png", "18", "0"}};
  for (const bool letters : {false, true}) {
    const std::vector<PathfinderLine> array = parse_pathfinder_metadata(array_of(rows, letters));
    REQUIRE(array.size() == 2);
    CHECK(array[0].image == "imgs/3/sample_17.png");
    CHECK(array[0].label == 1);
    CHECK(array[1].label == 0);
  }
  CHECK(says(refusal([] { parse_pathfinder_metadata("imgs/0 sample_0.png 0\n"); }),
             {"line 1", "3 fields", "at least 4"}));
  CHECK(says(refusal([] { parse_pathfinder_metadata(line(0, 0, 1) + line(0, 1, 2)); }),
             {"line 2", "label is \"2\"", "0 or 1"}));
  std::string cut = array_of(rows, true);
  cut.resize(cut.size() - 3);
  CHECK(says(refusal([&] { parse_pathfinder_metadata(cut); }), {"NumPy array"}));
}

TEST_CASE("Pathfinder sets that are not whole are refused", "[lra][pathfinder_files]") {
  CHECK(refused_files(set_of(hard)).empty());
  auto files = set_of(hard);
  files.erase(hard + "imgs/1/sample_4.png");
  CHECK(says(refused_files(files), {"imgs/1/sample_4.png", "missing"}));
  files = set_of(hard);
  files[hard + "imgs/0/sample_77.png"] = png_of(1);
  CHECK(says(refused_files(files), {"imgs/0/sample_77.png", "no line in metadata/0.npy"}));
  files = set_of(hard);
  files[hard + "imgs/0/sample_3.png"] = "";
  CHECK(says(refused_files(files), {"imgs/0/sample_3.png", "no bytes", "get it again"}));
  files = set_of(hard);
  files[hard + "imgs/0/sample_3.png"] = png_of(1, 64);
  CHECK(says(refused_files(files), {"imgs/0/sample_3.png", "64 x 64", "32 x 32"}));
  files = set_of(hard);
  files[hard + "metadata/1.npy"] += line(1, 3, 0);
  CHECK(says(refused_files(files), {"metadata/1.npy", "line 11", "twice"}));
  CHECK(says(refused_files({{"photo.png", "x"}}),
             {"expected imgs/K/sample_I.png", "pathfinder32/curv_contour_length_14", "photo.png"}));
  PathfinderFileRules rules;
  rules.difficulty = "hardest";
  CHECK(says(refused_files(set_of(hard), rules), {"difficulty is hardest"}));
}

TEST_CASE("the empty PNG of the published easy set is skipped and named",
          "[lra][pathfinder_files]") {
  const std::string easy = "pathfinder32/curv_baseline/";
  auto files = set_of(easy);
  files[easy + "imgs/0/sample_172.png"] = "";
  files[easy + "metadata/0.npy"] += line(0, 172, 1);
  const TemporaryFolder folder;
  write_files(folder.path(), files);
  PathfinderFileRules rules;
  rules.difficulty = "easy";
  const auto source = read_pathfinder(folder.path(), rules);
  CHECK(source->rows() == 20);
  CHECK(source->description().notes.at("skipped") ==
        Json::array({"curv_baseline/imgs/0/sample_172.png"}));
  CHECK(rows_of(*source).size() == 20);
}
