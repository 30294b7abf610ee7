#include "tests/attention/kernels/cuda/emulator/accesses.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <sstream>
#include <unordered_map>
#include <vector>

#include "tests/attention/kernels/cuda/emulator/threads.hpp"

extern "C" char __data_start, _end;  // the program's own variables: __shared__ ones are static here

namespace attnbench::emulated {
namespace {

using Address = std::uintptr_t;

/// Two bytes: threads may write neighbouring numbers of 16 bits.
constexpr Address granule = 2, page_bytes = 4096;

/// Lanes of a warp that read, between the same two of its syncs.
struct Readers {
  int warp;
  unsigned syncs, lanes;
};

/// Who was last at a granule. A generation is what lies between two barriers of a block; they are
/// numbered through all blocks and launches.
struct Cell {
  unsigned written = 0, syncs = 0;
  int writer = 0;
  bool on_the_way = false;
  unsigned read = 0;          ///< the generation of `readers`
  unsigned read_outside = 0;  ///< the launch in which other blocks read
  std::vector<Readers> readers;
};

struct Warp {
  unsigned syncs = 0, ordered = 0;  ///< the sync that ordered all accesses
};

struct Watch {
  bool on = false;
#ifdef ATTNBENCH_WATCHED
  Watch() { on = true; }
#endif
  unsigned generation = 0, launch = 0, block = 0;  ///< the first generations of these
  Address shared = 0, shared_end = 0;
  bool unknown = false;
  std::array<Warp, 32> warps;
  std::map<Address, Address> allocations;  ///< their ends
  std::unordered_map<Address, std::unique_ptr<std::array<Cell, page_bytes / granule>>> pages;
  Address last_page = 0;
  std::array<Cell, page_bytes / granule>* last_cells = nullptr;
  std::string host;

  Cell& cell(Address at) {
    const Address page = at / page_bytes;
    if (last_cells == nullptr || page != last_page) {
      auto& cells = pages[page];
      if (cells == nullptr) cells = std::make_unique<std::array<Cell, page_bytes / granule>>();
      last_page = page;
      last_cells = cells.get();
    }
    return (*last_cells)[at % page_bytes / granule];
  }
};

Watch& state() {
  static Watch watch;
  return watch;
}

enum class Place { nowhere, block, device, past_block, past_device };

Place place_of(Address at, std::size_t bytes) {
  const Watch& w = state();
  if (at >= w.shared && at < w.shared_end + 1024) {
    return at + bytes <= w.shared_end ? Place::block : Place::past_block;
  }
  const auto after = w.allocations.upper_bound(at);
  if (after != w.allocations.begin()) {
    const auto& [begin, end] = *std::prev(after);
    if (at + bytes <= end) return Place::device;
    if (at < end + around_allocations) return Place::past_device;
  }
  if (after != w.allocations.end() && at + around_allocations >= after->first) {
    return Place::past_device;
  }
  if (at >= reinterpret_cast<Address>(&__data_start) && at < reinterpret_cast<Address>(&_end)) {
    return Place::block;
  }
  return Place::nowhere;
}

/// Why the thread's access is at fault; empty where it is not.
class Check {
 public:
  Check(Watch& watch, const Thread& thread, bool outside)
      : watch_(watch), thread_(thread), warp_(watch.warps[warp_of(thread)]), outside_(outside) {}

  std::string read(Cell& cell) const {
    if (cell.on_the_way) return "reads what an asynchronous copy has not brought yet";
    if (const std::string why = behind_write(cell); !why.empty()) return "reads " + why;
    remember(cell);
    return {};
  }
  std::string write(Cell& cell) const {
    if (cell.on_the_way) return "writes where an asynchronous copy is on its way";
    if (const std::string why = behind_write(cell); !why.empty()) return "writes " + why;
    if (const std::string why = behind_readers(cell); !why.empty()) return "writes " + why;
    cell.written = watch_.generation;
    cell.writer = thread_.number;
    cell.syncs = warp_.syncs;
    return {};
  }

 private:
  static std::size_t warp_of(const Thread& thread) {
    return static_cast<std::size_t>(thread.warp()) % 32;
  }
  bool elsewhere(unsigned generation) const {
    return outside_ && generation >= watch_.launch && generation < watch_.block;
  }
  std::string behind_write(const Cell& cell) const {
    if (elsewhere(cell.written)) return "what another block of the launch wrote";
    if (cell.written != watch_.generation || cell.writer == thread_.number || watch_.unknown) {
      return {};
    }
    const bool ordered = cell.writer / 32 == thread_.warp() && cell.syncs < warp_.ordered;
    if (ordered) return {};
    return "what thread " + std::to_string(cell.writer) + " wrote since the last barrier";
  }
  std::string behind_readers(const Cell& cell) const {
    if (elsewhere(cell.read) || (outside_ && cell.read_outside == watch_.launch)) {
      return "what another block of the launch reads";
    }
    if (cell.read != watch_.generation || watch_.unknown) return {};
    for (const Readers& each : cell.readers) {
      const bool mine = each.warp == thread_.warp();
      const unsigned others = mine ? each.lanes & ~(1u << thread_.lane()) : each.lanes;
      if (others == 0 || (mine && each.syncs < warp_.syncs)) continue;
      return "what warp " + std::to_string(each.warp) + " read since the last barrier";
    }
    return {};
  }
  void remember(Cell& cell) const {
    if (cell.read != watch_.generation) {
      if (elsewhere(cell.read)) cell.read_outside = watch_.launch;
      cell.read = watch_.generation;
      cell.readers.clear();
    }
    const unsigned lane = 1u << thread_.lane();
    bool known = false;
    for (Readers& each : cell.readers) {
      if (each.warp != thread_.warp()) continue;
      const bool same = each.syncs == warp_.syncs;
      each.lanes = same ? each.lanes | lane : each.lanes & ~lane;
      known = known || same;
    }
    if (!known) cell.readers.push_back({thread_.warp(), warp_.syncs, lane});
  }

  Watch& watch_;
  const Thread& thread_;
  const Warp& warp_;
  bool outside_;
};

std::string what(Address at, std::size_t bytes, Place place) {
  std::ostringstream text;
  text << " (" << bytes << " bytes ";
  const Watch& w = state();
  if (at >= w.shared && at <= w.shared_end + 1024) {
    text << "at offset " << at - w.shared << " of shared memory)";
  } else if (place == Place::block) {
    text << "of a __shared__ variable)";
  } else {
    const auto after = w.allocations.upper_bound(at);
    if (after == w.allocations.begin()) {
      text << "before an allocation)";
    } else {
      text << "at offset " << at - std::prev(after)->first << " of an allocation of "
           << std::prev(after)->second - std::prev(after)->first << ")";
    }
  }
  return text.str();
}

}  // namespace

bool watching() { return state().on; }
void watch(bool on) { state().on = on; }

void note(const void* pointer, std::size_t bytes, bool write) {
  Watch& w = state();
  if (!w.on) return;
  const auto at = reinterpret_cast<Address>(pointer);
  const Place place = place_of(at, bytes);
  if (place == Place::nowhere) return;
  if (!inside_kernel()) {
    if (place == Place::device || place == Place::past_device) {
      w.host = "the host touches device memory" + what(at, bytes, place);
    }
    return;
  }
  if (place == Place::past_block || place == Place::past_device) {
    return report("an access past the end" + what(at, bytes, place));
  }
  const Check check(w, self(), place == Place::device);
  for (Address i = at / granule * granule; i < at + bytes; i += granule) {
    Cell& cell = w.cell(i);
    const std::string why = write ? check.write(cell) : check.read(cell);
    if (!why.empty()) return report(why + what(at, bytes, place));
  }
}

void note_copy(const void* to, std::size_t bytes, bool begins) {
  Watch& w = state();
  if (!w.on) return;
  const auto at = reinterpret_cast<Address>(to);
  if (!begins) {
    for (Address i = at; i < at + bytes; i += granule) w.cell(i).on_the_way = false;
  }
  note(to, bytes, true);
  if (!begins) return;
  for (Address i = at; i < at + bytes; i += granule) w.cell(i).on_the_way = true;
}

void launch_begins() { state().launch = state().generation + 1; }

void block_begins(const void* shared, std::size_t bytes) {
  Watch& w = state();
  if (!w.on) return;
  w.block = ++w.generation;
  w.shared = reinterpret_cast<Address>(shared);
  w.shared_end = w.shared + bytes;
  w.unknown = false;
  w.warps = {};
  for (Address i = w.shared; i < w.shared_end; i += granule) w.cell(i).on_the_way = false;
}

void block_synchronised() { ++state().generation; }

void warp_met(int warp, bool memory) {
  Warp& each = state().warps[static_cast<std::size_t>(warp) % 32];
  ++each.syncs;
  if (memory) each.ordered = each.syncs;
}

void order_unknown() { state().unknown = true; }

void allocated(const void* begin, std::size_t bytes) {
  const auto at = reinterpret_cast<Address>(begin);
  state().allocations[at] = at + bytes;
}
void released(const void* begin) { state().allocations.erase(reinterpret_cast<Address>(begin)); }

std::string host_fault() {
  std::string fault;
  std::swap(fault, state().host);
  return fault;
}

}  // namespace attnbench::emulated

// What instrumented code calls.
namespace {

using attnbench::emulated::note;

/// What the compiler says of a place where a pointer's alignment is checked.
struct Mismatch {
  const char* file;
  std::uint32_t line, column;
  const void* type;
  unsigned char log_alignment, kind;
};

}  // namespace

extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_read_range(const void* at, std::size_t bytes) { note(at, bytes, false); }
void __tsan_write_range(const void* at, std::size_t bytes) { note(at, bytes, true); }
#define ATTNBENCH_ACCESS(BYTES)                                                 \
  void __tsan_read##BYTES(const void* at) { note(at, BYTES, false); }           \
  void __tsan_write##BYTES(const void* at) { note(at, BYTES, true); }           \
  void __tsan_unaligned_read##BYTES(const void* at) { note(at, BYTES, false); } \
  void __tsan_unaligned_write##BYTES(const void* at) { note(at, BYTES, true); }
ATTNBENCH_ACCESS(1)
ATTNBENCH_ACCESS(2)
ATTNBENCH_ACCESS(4)
ATTNBENCH_ACCESS(8)
ATTNBENCH_ACCESS(16)
char __tsan_atomic8_load(const volatile char* at, int order) { return __atomic_load_n(at, order); }
void __ubsan_handle_type_mismatch_v1(const Mismatch* where, std::uintptr_t at) {
  if (!attnbench::emulated::watching() || !attnbench::emulated::inside_kernel()) return;
  attnbench::emulated::report(std::string(where->file) + ":" + std::to_string(where->line) +
                              ": address ..." + std::to_string(at % 1024) + " is not aligned to " +
                              std::to_string(1u << where->log_alignment));
}
}
