#include "tasks/training/prefetcher.hpp"

#include <stdexcept>

#include "tasks/training/process_group.hpp"

namespace attnbench::tasks::learning {
namespace {

/// Enough to bridge a slow batch; more would only take memory.
constexpr std::size_t ahead = 4;

}  // namespace

Feeder::Feeder(const DataSet& data, Order order, std::int64_t first, std::int64_t last, int rank,
               int size)
    : data_(data), order_(std::move(order)), rank_(rank), size_(size) {
  thread_ = std::thread([this, first, last] {
    try {
      make_all(first, last);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex_);
      failure_ = std::current_exception();
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  });
}

Feeder::~Feeder() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    unwanted_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Feeder::make_all(std::int64_t first, std::int64_t last) {
  const std::int64_t each = order_.steps_per_epoch();
  std::vector<Handful> epoch;
  for (std::int64_t step = first; step < last; ++step) {
    if (epoch.empty() || step % each == 0) epoch = order_.epoch(step / each);
    const Handful& handful = epoch[static_cast<std::size_t>(step % each)];
    const std::vector<std::int64_t>& all = handful.examples;
    const auto [from, to] = share_of(static_cast<std::int64_t>(all.size()), rank_, size_);
    Batch batch;
    if (from < to) {
      batch = data_.batch(Split::train, handful.segment, {all.begin() + from, all.begin() + to});
      batch.first_example = from;
      batch.examples_in_all = static_cast<std::int64_t>(all.size());
    }
    if (!put(std::move(batch))) return;
  }
}

bool Feeder::put(Batch batch) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return ready_.size() < ahead || unwanted_; });
  if (unwanted_) return false;
  ready_.push_back(std::move(batch));
  changed_.notify_all();
  return true;
}

Batch Feeder::next() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return !ready_.empty() || ended_; });
  if (ready_.empty()) {
    if (failure_) std::rethrow_exception(failure_);
    throw std::logic_error("the feeder has no more batches");
  }
  Batch batch = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return batch;
}

}  // namespace attnbench::tasks::learning
