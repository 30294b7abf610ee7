#include "tasks/training/prefetcher.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "core/process/waiting.hpp"
#include "core/random.hpp"
#include "tasks/training/process_group.hpp"

namespace attnbench::tasks::training {
namespace {

/// Enough to bridge a slow batch; more would only take memory.
constexpr std::size_t batches_ahead = 4;

}  // namespace

std::int64_t BatchOrder::steps_per_epoch() const {
  std::int64_t steps = 0;
  for (const std::int64_t size : sizes) steps += (size + batch - 1) / batch;
  return steps;
}

std::vector<BatchExamples> BatchOrder::epoch(std::int64_t number) const {
  std::vector<BatchExamples> batches;
  Random random(key_of({seed, 0x6f72646572 /* "order" */}), static_cast<std::uint64_t>(number));
  for (std::size_t segment = 0; segment < sizes.size(); ++segment) {
    std::vector<std::int64_t> examples(static_cast<std::size_t>(sizes[segment]));
    std::iota(examples.begin(), examples.end(), fresh ? number * sizes[segment] : 0);
    if (shuffled) random.shuffle(examples);
    for (auto first = examples.begin(); first != examples.end();) {
      const auto last = first + std::min<std::ptrdiff_t>(batch, examples.end() - first);
      batches.push_back({segment, {first, last}});
      first = last;
    }
  }
  if (shuffled) random.shuffle(batches);
  return batches;
}

Prefetcher::Prefetcher(const DataSet& data, BatchOrder order, std::int64_t first, std::int64_t last,
                       int rank, int size)
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

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Prefetcher::make_all(std::int64_t first, std::int64_t last) {
  const std::int64_t each = order_.steps_per_epoch();
  std::vector<BatchExamples> epoch;
  for (std::int64_t step = first; step < last; ++step) {
    if (epoch.empty() || step % each == 0) epoch = order_.epoch(step / each);
    const BatchExamples& wanted = epoch[static_cast<std::size_t>(step % each)];
    const std::vector<std::int64_t>& all = wanted.examples;
    const auto [from, to] = share_of(static_cast<std::int64_t>(all.size()), rank_, size_);
    Batch batch;
    if (from < to) {
      batch = data_.batch(Split::train, wanted.segment, {all.begin() + from, all.begin() + to});
      batch.first_example = from;
      batch.examples_in_all = static_cast<std::int64_t>(all.size());
    }
    if (!put(std::move(batch))) return;
  }
}

bool Prefetcher::put(Batch batch) {
  std::unique_lock<std::mutex> lock(mutex_);
  process::wait_until(changed_, lock, [this] { return ready_.size() < batches_ahead || stopped_; });
  if (stopped_) return false;
  ready_.push_back(std::move(batch));
  changed_.notify_all();
  return true;
}

Batch Prefetcher::next() {
  std::unique_lock<std::mutex> lock(mutex_);
  process::wait_until(changed_, lock, [this] { return !ready_.empty() || ended_; });
  if (ready_.empty()) {
    if (failure_) std::rethrow_exception(failure_);
    throw std::logic_error("the prefetcher has no more batches");
  }
  Batch batch = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return batch;
}

}  // namespace attnbench::tasks::training
