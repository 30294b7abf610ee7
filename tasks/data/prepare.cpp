#include "tasks/data/prepare.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "core/process/waiting.hpp"
#include "core/text/format.hpp"
#include "tasks/data/cache_format.hpp"
#include "tasks/data/part_file.hpp"
#include "tasks/data/wanted.hpp"

namespace attnbench::tasks::data {
namespace {

namespace fs = std::filesystem;

/// Blocks [first, last) in order, made on several threads ahead of the one that takes them.
class BlockMakers {
 public:
  BlockMakers(RowSource& source, std::uint64_t first, std::uint64_t last, int threads)
      : source_(source),
        last_(last),
        taken_(first),
        started_(first),
        ahead_(2 * static_cast<std::uint64_t>(threads)) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~BlockMakers() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  BlockMakers(const BlockMakers&) = delete;
  BlockMakers& operator=(const BlockMakers&) = delete;

  /// The next block; calls `wait` with the rows made so far, now and then while it is not there.
  template <class Wait>
  Bytes take(Wait wait) {
    std::unique_lock lock(mutex_);
    while (made_.empty() || made_.begin()->first != taken_) {
      if (fault_) std::rethrow_exception(fault_);
      changed_.wait_for(lock, std::chrono::milliseconds(100));
      lock.unlock();
      wait(rows_.load());
      lock.lock();
    }
    Bytes block = std::move(made_.begin()->second);
    made_.erase(made_.begin());
    ++taken_;
    changed_.notify_all();
    return block;
  }

 private:
  void work() {
    try {
      Row row;
      for (;;) {
        std::uint64_t block = 0;
        {
          std::unique_lock lock(mutex_);
          process::wait_until(changed_, lock,
                              [&] { return stop_ || fault_ || started_ < taken_ + ahead_; });
          if (stop_ || fault_ || started_ >= last_) return;
          block = started_++;
        }
        const std::uint64_t begin = block * tasks::data::format::rows_per_block;
        const std::uint64_t end =
            std::min<std::uint64_t>(begin + tasks::data::format::rows_per_block, source_.rows());
        BlockEncoder encoder(source_.description(), begin);
        for (std::uint64_t number = begin; number < end && !stop_; ++number) {
          source_.make(number, row);
          encoder.add(row);
          ++rows_;
        }
        if (stop_) return;
        Bytes bytes = encoder.bytes();
        const std::lock_guard lock(mutex_);
        made_.emplace(block, std::move(bytes));
        changed_.notify_all();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!fault_) fault_ = std::current_exception();
      changed_.notify_all();
    }
  }

  RowSource& source_;
  std::uint64_t last_, taken_, started_, ahead_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, Bytes> made_;
  std::exception_ptr fault_;
  std::atomic<bool> stop_ = false;
  std::atomic<std::uint64_t> rows_ = 0;
  std::vector<std::thread> threads_;
};

void make_blocks(RowSource& source, std::uint64_t first, std::uint64_t blocks,
                 const PrepareOptions& options, PartFile& part, CacheIndex& index) {
  const std::uint64_t there = std::min(first * tasks::data::format::rows_per_block, source.rows());
  Ticker ticker(options.progress, PreparationProgress::Stage::making, source.rows(), there);
  const auto keep = [&](const Bytes& block) {
    index.add_block(block, part.position());
    part.write(block);
  };
  ticker.tick(there, true);
  if (source.any_order()) {
    BlockMakers makers(source, first, blocks, std::max(1, options.threads));
    for (std::uint64_t block = first; block < blocks; ++block) {
      keep(makers.take([&](std::uint64_t made) { ticker.tick(there + made); }));
    }
  } else {
    Row row;
    for (std::uint64_t block = first; block < blocks; ++block) {
      const std::uint64_t begin = block * tasks::data::format::rows_per_block;
      BlockEncoder encoder(source.description(), begin);
      for (std::uint64_t number = begin;
           number <
           std::min<std::uint64_t>(begin + tasks::data::format::rows_per_block, source.rows());
           ++number) {
        source.make(number, row);
        encoder.add(row);
        ticker.tick(number + 1);
      }
      keep(encoder.bytes());
    }
  }
  ticker.tick(source.rows(), true);
}

// ---- what is asked before

std::uint64_t size_or_zero(const fs::path& file) {
  std::error_code none;
  const std::uintmax_t size = fs::file_size(file, none);
  return none ? 0 : size;
}

fs::path existing_folder(fs::path folder) {
  std::error_code fault;
  while (!folder.empty() && !fs::exists(folder, fault) && folder.has_parent_path() &&
         folder.parent_path() != folder) {
    folder = folder.parent_path();
  }
  return folder.empty() ? fs::path(".") : folder;
}

void expect_room(const RowSource& source, const fs::path& folder, std::uint64_t there,
                 const PrepareOptions& options) {
  const std::uint64_t whole = source.cache_bytes();
  const std::uint64_t needed = whole > there ? whole - there : 0;
  const std::uint64_t room =
      options.free_bytes ? options.free_bytes(folder) : fs::space(folder).available;
  if (needed <= room) return;
  throw UsageError(folder.string() +
                   ": no space left: " + text::human_bytes(static_cast<double>(needed)) +
                   " are needed, " + text::human_bytes(static_cast<double>(room)) +
                   " are free: make room or choose another place");
}

/// Whether `file` holds the rows of `description` already.
bool is_there(const DataDescription& description, const fs::path& file) {
  if (!fs::exists(file)) return false;
  const Cache cache(file);
  if (Json(cache.description()) == Json(description)) return true;
  std::string fault = difference(cache.description(),
                                 {description.task, description.settings, description.source_hash});
  if (fault.empty()) fault = "holds other data";
  throw UsageError(file.string() + ": " + fault + "; remove it first, or choose another place");
}

}  // namespace

PrepareResult prepare(RowSource& source, const fs::path& file, const PrepareOptions& options) {
  const auto began = std::chrono::steady_clock::now();
  PrepareResult result;
  result.rows = source.rows();
  const fs::path whole = fs::absolute(file);
  const fs::path folder = whole.parent_path();
  const fs::path part_file = whole.string() + ".part";
  bool made_folder = false;
  try {
    if (is_there(source.description(), whole)) {
      result.already_there = true;
      result.bytes = size_or_zero(whole);
      return result;
    }
    if (source.rows() == 0) throw UsageError(source.description().source + ": holds no rows");
    if (source.rows() > 0xffffffffu) throw UsageError("more rows than a cache can count");
    expect_room(source, existing_folder(folder), size_or_zero(part_file), options);
    made_folder = fs::create_directories(folder);
    PartFile part(part_file);
    try {
      CacheIndex index(source.description());
      const std::uint64_t blocks = (source.rows() + tasks::data::format::rows_per_block - 1) /
                                   tasks::data::format::rows_per_block;
      const std::uint64_t there =
          part.resume(header_of(source.description()), source.rows(),
                      static_cast<std::uint64_t>(source.description().towers), index);
      result.resumed_rows = std::min(there * tasks::data::format::rows_per_block, source.rows());
      make_blocks(source, there, blocks, options, part, index);
      part.write(index.footer(part.position()));
      part.rename_to(whole);
      result.bytes = part.position();
    } catch (const PreparationCancelled&) {
      throw;
    } catch (...) {
      std::error_code ignored;
      fs::remove(part_file, ignored);
      if (made_folder) fs::remove(folder, ignored);
      throw;
    }
  } catch (const fs::filesystem_error& error) {
    throw UsageError(std::string(error.what()) + ": choose another place");
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return result;
}

}  // namespace attnbench::tasks::data
