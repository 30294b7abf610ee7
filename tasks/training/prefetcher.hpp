// The batches of a training: in which order examples are seen, and a thread that makes batches
// before they are needed.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "tasks/training/data.hpp"

namespace attnbench::tasks::training {

/// The examples of one batch, all of one segment.
struct BatchExamples {
  std::size_t segment = 0;
  std::vector<std::int64_t> examples;
};

/// The order of batches. The seed and the epoch's number determine it, so that training can resume
/// within an epoch.
struct BatchOrder {
  std::vector<std::int64_t> sizes;  ///< examples of each segment
  std::int64_t batch = 1;           ///< examples of a step; fewer in the last one of a segment
  /// Whether each epoch shuffles the examples of a segment, then the batches of all segments;
  /// otherwise both are in numerical order in every epoch.
  bool shuffled = true;
  /// Whether each epoch has new examples, as many as before: none is seen twice.
  bool fresh = false;
  std::uint64_t seed = 0;

  std::int64_t steps_per_epoch() const;
  /// All batches of one epoch; every example once.
  std::vector<BatchExamples> epoch(std::int64_t number) const;
};

class Prefetcher {
 public:
  /// Batches of the steps [first, last), counted from the first step of the first epoch; of each
  /// the share of process `rank` of `size`, a batch without tensors where that is empty. `data`
  /// must outlive the prefetcher.
  Prefetcher(const DataSet& data, BatchOrder order, std::int64_t first, std::int64_t last,
             int rank = 0, int size = 1);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// The next step's batch; waits until it is made. Throws what making it threw, and
  /// std::logic_error after the last one.
  Batch next();

 private:
  void make_all(std::int64_t first, std::int64_t last);
  bool put(Batch batch);

  const DataSet& data_;
  const BatchOrder order_;
  const int rank_;
  const int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> ready_;
  bool ended_ = false;    ///< no more batches will be made
  bool stopped_ = false;  ///< no more batches will be taken
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace attnbench::tasks::training
