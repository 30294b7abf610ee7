// Readers of small images that fit into memory: CIFAR-10 in its binary version (Krizhevsky 2009),
// and IDX files (LeCun's MNIST format), such as Fashion-MNIST (Xiao et al. 2017), which Debian
// ships as dataset-fashion-mnist. A pixel is a token, its grey level the id; no padding.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "tasks/data/rows.hpp"

namespace attnbench::tasks::data::lra {

struct ImageRules {
  /// How colours become grey. "tensorflow": floor(255.5 * (0.2989 R + 0.5870 G + 0.1140 B) / 255),
  /// as in Long Range Arena; "floor": the same sum, rounded down (Latte); "pillow": (19595 R +
  /// 38470 G + 7471 B + 32768) >> 16 (S4). They differ by at most 1.
  std::string grey = "tensorflow";
  /// The side of rows from IDX images, which have 28 x 28 pixels: 28; 32, with two rows and columns
  /// of 0 at each edge; 14, means of 2 x 2 with halves rounded up.
  int side = 28;
  std::uint32_t hold_out = 5000;  ///< train rows held out for validation, alike of each class
  std::uint64_t seed = 0;         ///< determines which rows are held out
};

/// Reads data_batch_1.bin to data_batch_5.bin and test_batch.bin, in a folder or as published in
/// cifar-10-binary.tar.gz: records of a label byte and 3 x 1024 bytes. Long Range Arena's
/// validation rows are the last 10 % in an order of TensorFlow Datasets that cannot be had without
/// it: ours are held out by a seed.
///
/// Both throw UsageError "FROM, member NAME: …": a missing file, a size that is not a whole number
/// of records, a label out of range, another magic number or dimension, different counts,
/// truncation.
std::unique_ptr<RowSource> read_cifar10(const std::filesystem::path& from,
                                        const ImageRules& rules = {},
                                        const ProgressCall& progress = {});

/// Reads {train,t10k}-images-idx3-ubyte and {train,t10k}-labels-idx1-ubyte, with or without .gz.
std::unique_ptr<RowSource> read_fashion_mnist(const std::filesystem::path& from,
                                              const ImageRules& rules = {},
                                              const ProgressCall& progress = {});

/// The folder where Debian's package puts the files.
constexpr const char* fashion_mnist_folder = "/usr/share/datasets/fashion-mnist";

}  // namespace attnbench::tasks::data::lra
