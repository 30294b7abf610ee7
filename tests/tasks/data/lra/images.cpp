#include "tasks/data/lra/images.hpp"

#include <algorithm>
#include <iostream>

#include "tasks/data/cache.hpp"
#include "tasks/data/lra/png.hpp"
#include "tasks/data/prepare.hpp"
#include "tests/tasks/data/support.hpp"

using namespace attnbench;
using namespace attnbench::tasks::data;
using namespace attnbench::tasks::data::lra;
using namespace attnbench::test;

namespace {

std::string record(int label, int red, int green, int blue) {
  std::string bytes(1, static_cast<char>(label));
  for (const int level : {red, green, blue}) bytes += std::string(1024, static_cast<char>(level));
  return bytes;
}

/// Two records a batch; the first pixel of each is of another colour.
std::map<std::string, std::string> cifar_files() {
  std::map<std::string, std::string> files;
  for (int batch = 1; batch <= 6; ++batch) {
    const std::string name =
        batch == 6 ? "test_batch.bin" : "data_batch_" + std::to_string(batch) + ".bin";
    files["cifar-10-batches-bin/" + name] = record(batch, 200, 100, 50) + record(9, 255, 255, 255);
  }
  return files;
}

std::string big_endian(unsigned number) {
  return {static_cast<char>(number >> 24), static_cast<char>(number >> 16),
          static_cast<char>(number >> 8), static_cast<char>(number)};
}

std::string idx_images(unsigned count, unsigned side = 28) {
  std::string bytes = big_endian(0x803) + big_endian(count) + big_endian(side) + big_endian(side);
  for (unsigned image = 0; image < count; ++image) {
    for (unsigned i = 0; i < side * side; ++i) bytes += static_cast<char>(i + image);
  }
  return bytes;
}

std::string idx_labels(const std::string& labels) {
  return big_endian(0x801) + big_endian(static_cast<unsigned>(labels.size())) + labels;
}

std::map<std::string, std::string> idx_files() {
  return {{"train-images-idx3-ubyte.gz", gzipped(idx_images(4))},
          {"train-labels-idx1-ubyte.gz", gzipped(idx_labels({0, 9, 3, 3}))},
          {"t10k-images-idx3-ubyte.gz", gzipped(idx_images(2))},
          {"t10k-labels-idx1-ubyte.gz", gzipped(idx_labels({1, 2}))}};
}

ImageRules image_rules(int side, std::uint32_t hold_out = 0) {
  ImageRules rules;
  rules.side = side;
  rules.hold_out = hold_out;
  return rules;
}

/// What IDX files with some of them replaced are refused with.
std::string refused_idx(const std::map<std::string, std::string>& instead) {
  const TemporaryFolder folder;
  auto files = idx_files();
  for (const auto& [name, content] : instead) files[name + ".gz"] = content;
  write_files(folder.path(), files);
  return refusal([&] { read_fashion_mnist(folder.path(), image_rules(28)); });
}

}  // namespace

TEST_CASE("CIFAR-10 becomes grey by each of three formulas", "[lra][images]") {
  const TemporaryFolder folder;
  write_files(folder.path(), cifar_files());
  // 0.2989 * 200 + 0.5870 * 100 + 0.1140 * 50 = 124.18; * 255.5 / 255 = 124.42.
  // (19595 * 200 + 38470 * 100 + 7471 * 50 + 32768) >> 16 = 124; white is 255, 254 and 255.
  for (const auto& [grey, white] :
       {std::pair("tensorflow", 255), std::pair("floor", 254), std::pair("pillow", 255)}) {
    INFO(grey);
    ImageRules rules = image_rules(32);
    rules.grey = grey;
    const std::vector<Row> rows = rows_of(*read_cifar10(folder.path(), rules));
    REQUIRE(rows.size() == 12);
    CHECK(rows[0].tokens == std::vector<Token>(1024, 124));
    CHECK(rows[1].tokens == std::vector<Token>(1024, static_cast<Token>(white)));
    CHECK(rows[0].label == 1);
    CHECK(rows[10].split == Split::test);
    CHECK(std::count_if(rows.begin(), rows.end(),
                        [](const Row& row) { return row.split == Split::test; }) == 2);
  }
  ImageRules rules = image_rules(32);
  rules.grey = "blue";
  CHECK(says(refusal([&] { read_cifar10(folder.path(), rules); }), {"grey is blue", "pillow"}));
}

TEST_CASE("CIFAR-10 comes from its archive, too, and rows are held out by a seed",
          "[lra][images]") {
  const TemporaryFolder folder;
  write_files(folder.path(), cifar_files());
  std::vector<TarMember> members;
  for (const auto& [name, content] : cifar_files()) members.push_back({name, content, ""});
  write_tar_gz(folder / "cifar-10-binary.tar.gz", members);
  const auto packed = read_cifar10(folder / "cifar-10-binary.tar.gz", image_rules(32, 4));
  std::array<int, 3> of_split{};
  for (const Row& row : rows_of(*packed)) ++of_split[static_cast<std::size_t>(row.split)];
  CHECK(of_split == std::array<int, 3>{6, 4, 2});
}

TEST_CASE("batches of CIFAR-10 that are not whole are refused", "[lra][images]") {
  const auto refused = [](const std::string& name, const std::string& content) {
    const TemporaryFolder folder;
    auto files = cifar_files();
    files["cifar-10-batches-bin/" + name] = content;
    write_files(folder.path(), files);
    return refusal([&] { read_cifar10(folder.path(), image_rules(32)); });
  };
  CHECK(says(refused("data_batch_3.bin", record(1, 2, 3, 4) + "x"),
             {"data_batch_3.bin", "3074 bytes", "whole records of 3073"}));
  CHECK(says(refused("test_batch.bin", record(1, 2, 3, 4) + record(10, 2, 3, 4)),
             {"test_batch.bin", "record 1", "label 10", "0 to 9"}));
  const TemporaryFolder folder;
  auto files = cifar_files();
  files.erase("cifar-10-batches-bin/test_batch.bin");
  write_files(folder / "five", files);
  CHECK(says(refusal([&] { read_cifar10(folder / "five", image_rules(32)); }),
             {"test_batch.bin is missing"}));
  write_files(folder / "python", {{"cifar-10-batches-py/data_batch_1", "pickled"}});
  CHECK(says(refusal([&] { read_cifar10(folder / "python", image_rules(32)); }),
             {"expected data_batch_1.bin", "binary version", "data_batch_1"}));
}

TEST_CASE("IDX images are read whole, padded to 32 and halved to 14", "[lra][images]") {
  const TemporaryFolder folder;
  write_files(folder.path(), idx_files());
  const std::vector<Row> whole = rows_of(*read_fashion_mnist(folder.path(), image_rules(28)));
  REQUIRE(whole.size() == 6);
  REQUIRE(whole[1].tokens.size() == 784);
  CHECK(whole[1].tokens[0] == 1);
  CHECK(whole[1].tokens[300] == (300 + 1) % 256);
  CHECK(whole[1].label == 9);
  CHECK(whole[4].split == Split::test);

  const std::vector<Row> padded = rows_of(*read_fashion_mnist(folder.path(), image_rules(32)));
  REQUIRE(padded[1].tokens.size() == 1024);
  CHECK(padded[1].tokens[2 * 32 + 2] == whole[1].tokens[0]);
  CHECK(padded[1].tokens[29 * 32 + 29] == whole[1].tokens[783]);
  CHECK(padded[1].tokens[1 * 32 + 2] == 0);
  CHECK(padded[1].tokens[2 * 32 + 30] == 0);

  const std::vector<Row> halved = rows_of(*read_fashion_mnist(folder.path(), image_rules(14)));
  REQUIRE(halved[0].tokens.size() == 196);
  CHECK(halved[0].tokens[0] == (0 + 1 + 28 + 29 + 2) / 4);
  CHECK(halved[0].tokens[1] == (2 + 3 + 30 + 31 + 2) / 4);
  CHECK(halved[0].tokens[14] == (56 + 57 + 84 + 85 + 2) / 4);
  CHECK(says(refusal([&] { read_fashion_mnist(folder.path(), image_rules(16)); }),
             {"side is 16", "14"}));
}

TEST_CASE("odd IDX files are refused", "[lra][images]") {
  CHECK(refused_idx({}).empty());
  CHECK(says(refused_idx({{"train-images-idx3-ubyte", gzipped(idx_labels("abcd"))}}),
             {"train-images-idx3-ubyte", "begins with 2049", "expected 2051"}));
  CHECK(says(refused_idx({{"train-images-idx3-ubyte", gzipped(idx_images(4, 32))}}),
             {"another size", "32", "expected 28 x 28"}));
  CHECK(says(refused_idx({{"train-labels-idx1-ubyte", gzipped(idx_labels({0, 1, 2}))}}),
             {"3 labels for 4 images"}));
  CHECK(says(refused_idx({{"t10k-labels-idx1-ubyte", gzipped(idx_labels({1, 10}))}}),
             {"t10k-labels-idx1-ubyte", "label 1 is 10", "0 to 9"}));
  std::string cut = idx_images(4);
  cut.resize(cut.size() - 5);
  CHECK(says(refused_idx({{"train-images-idx3-ubyte", gzipped(cut)}}),
             {"3131 bytes of data", "3136 are announced"}));
  const std::string packed = gzipped(idx_images(4));
  CHECK(says(refused_idx({{"train-images-idx3-ubyte", packed.substr(0, packed.size() / 2)}}),
             {"truncated or damaged"}));
}

TEST_CASE("Debian's Fashion-MNIST is read whole", "[lra][images]") {
  if (!std::filesystem::exists(fashion_mnist_folder)) {
    WARN("needs Fashion-MNIST: apt-get install dataset-fashion-mnist");
    return;
  }
  const TemporaryFolder folder;
  ImageRules rules = image_rules(28, 5'000);
  const auto source = read_fashion_mnist(fashion_mnist_folder, rules);
  REQUIRE(source->rows() == 70'000);
  const PrepareResult result = prepare(*source, folder / "fashion.lra");
  std::cout << "Fashion-MNIST: 70,000 images prepared in " << result.seconds << " s, "
            << result.bytes << " bytes\n";
  const Cache cache(folder / "fashion.lra");
  CHECK(cache.facts(Split::train).of_label == std::vector<std::uint64_t>(10, 5'500));
  CHECK(cache.facts(Split::validation).of_label == std::vector<std::uint64_t>(10, 500));
  CHECK(cache.facts(Split::test).of_label == std::vector<std::uint64_t>(10, 1'000));
  CHECK(cache.label(cache.index(Split::test)[0]) == 9);  // an ankle boot
  CHECK(cache.facts(Split::train).longest == 784);
}
