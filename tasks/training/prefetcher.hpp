// Feeder: makes the batches of training ahead, on a thread of its own.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "tasks/training/data.hpp"
#include "tasks/training/order.hpp"

namespace attnbench::tasks::learning {

class Feeder {
 public:
  /// Batches of the steps [first, last), counted from the first step of the first epoch; of each
  /// the share that process `rank` of `size` takes, a batch without tensors where that is none.
  /// `data` must outlive the feeder.
  Feeder(const DataSet& data, Order order, std::int64_t first, std::int64_t last, int rank = 0,
         int size = 1);
  ~Feeder();
  Feeder(const Feeder&) = delete;
  Feeder& operator=(const Feeder&) = delete;

  /// The next step's, waiting for it if need be. Throws what making it threw, and std::logic_error
  /// after the last.
  Batch next();

 private:
  void make_all(std::int64_t first, std::int64_t last);
  bool put(Batch batch);

  const DataSet& data_;
  const Order order_;
  const int rank_;
  const int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> ready_;
  bool ended_ = false;     ///< nothing more will be made
  bool unwanted_ = false;  ///< nothing more will be taken
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace attnbench::tasks::learning
