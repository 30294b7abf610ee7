#include "harness/program/run/plan/blas_core.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "core/hash.hpp"
#include "core/process/fingerprint.hpp"
#include "core/protocol.hpp"
#include "core/result/machine.hpp"
#include "core/text/format.hpp"
#include "harness/program/run/client/worker_client.hpp"

namespace attnbench::run {
namespace {

namespace fs = std::filesystem;

constexpr double clearly_faster = 1.1;
constexpr double about_as_fast = 0.95;
constexpr double trial_seconds = 10;

/// Identifies the file that was tried without reading it.
std::string file_appearance(const fs::path& file) {
  struct stat seen {};
  if (file.empty() || stat(file.c_str(), &seen) != 0) return "missing";
  return std::to_string(seen.st_size) + " " + std::to_string(seen.st_mtim.tv_sec) + "." +
         std::to_string(seen.st_mtim.tv_nsec);
}

std::string cpuinfo(const std::string& key) {
  std::ifstream stream("/proc/cpuinfo");
  for (std::string line; std::getline(stream, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.rfind(key, 0) != 0) continue;
    if (line.find_first_not_of(" \t", key.size()) != colon) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// A fresh worker with OPENBLAS_CORETYPE in its environment, asked for one product on one thread.
std::optional<BlasTrial> try_in_worker(bool keep, const std::string& core_type) {
  WorkerOptions options;
  options.threads = 1;
  options.keep_blas_core = keep;
  options.blas_core = core_type;
  try {
    WorkerClient worker(options);
    protocol::Probe request;
    request.product = true;
    request.threads = 1;
    request.limits.seconds = trial_seconds;
    const auto answer = worker.request(request, {}, trial_seconds).get<protocol::ProbeAnswer>();
    const auto card = answer.machine.get<result::MachineCard>();
    const result::Blas blas = card.blas.value_or(result::Blas{});
    return BlasTrial{blas.kind, blas.library, blas.core_type,
                     answer.product.value_or(protocol::Product{}).flops_per_second};
  } catch (const std::exception&) {
    return std::nullopt;  // it costs this core type alone
  }
}

/// The cache file of the trials, keyed by all that they depend on except the library's file.
fs::path trials_file(bool keep) {
  std::string key = "blas 1\n" + cpuinfo("model name") + "\n" + cpuinfo("flags") + "\n" +
                    process::binary_fingerprint(process::Build()) + "\n" + (keep ? "kept" : "");
  for (const char* name : {"LD_LIBRARY_PATH", "LD_PRELOAD"}) key += "\n" + variable(name);
  return process::cache_file("blas-" + hash_text(key) + ".json");
}

}  // namespace

ATTNBENCH_JSON_CODEC(BlasChoice) {
  JSON_AT(kind, library, chosen_by);
  JSON_MAYBE(core_type, tried);
}

ATTNBENCH_JSON_CODEC(BlasTrial) { JSON_AT(kind, library, core_type, flops_per_second); }

ATTNBENCH_JSON_CODEC(BlasTrials) { JSON_AT(own, others, unknown, appearance); }

std::optional<BlasChoice> blas_choice_from(const Json& value) {
  try {
    auto choice = value.get<BlasChoice>();
    if (choice.chosen_by == "attnbench") choice.set = choice.core_type;
    return choice;
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

std::vector<std::string> core_types_for(const std::string& vendor, const std::string& flags) {
  std::istringstream words(flags);
  const std::set<std::string> has{std::istream_iterator<std::string>(words), {}};
  const auto all = [&](std::initializer_list<const char*> wanted) {
    return std::all_of(wanted.begin(), wanted.end(),
                       [&](const char* flag) { return has.count(flag) != 0; });
  };
  std::vector<std::string> types;
  if (all({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"})) {
    if (all({"avx512_bf16", "amx_tile", "amx_bf16"})) types.push_back("SapphireRapids");
    if (all({"avx512_bf16"})) types.push_back("Cooperlake");
    types.push_back("SkylakeX");
  }
  // Haswell's kernels are Zen's as well; what differs is how they are cut for its caches.
  if (all({"avx2", "fma"})) types.push_back(vendor == "AuthenticAMD" ? "Zen" : "Haswell");
  if (types.empty() && all({"avx"})) types.push_back("Sandybridge");
  return types;
}

BlasChoice choose(const BlasTrials& trials, const std::vector<std::string>& order) {
  BlasChoice choice;
  choice.kind = trials.own.kind;
  choice.library = trials.own.library;
  choice.core_type = trials.own.core_type;
  choice.tried = trials.others;
  if (!trials.own.core_type.empty()) {
    choice.tried[trials.own.core_type] = trials.own.flops_per_second;
  }
  double fastest = 0;
  for (const auto& [type, rate] : trials.others) fastest = std::max(fastest, rate);
  if (fastest <= clearly_faster * trials.own.flops_per_second) return choice;
  for (const std::string& type : order) {
    const auto found = trials.others.find(type);
    if (found == trials.others.end() || found->second < about_as_fast * fastest) continue;
    choice.core_type = type;
    choice.set = type;
    choice.chosen_by = "attnbench";
    return choice;
  }
  return choice;
}

std::optional<BlasTrials> try_all(std::optional<BlasTrials> known,
                                  const std::vector<std::string>& core_types,
                                  const TryBlas& try_blas) {
  if (!known) {
    const auto own = try_blas("");
    if (!own) return std::nullopt;
    known = BlasTrials{*own, {}, {}};
  }
  if (known->own.kind != "openblas" || known->own.core_type.empty()) return known;
  bool news = false;
  for (const std::string& type : core_types) {
    if (type == known->own.core_type || known->others.count(type) != 0 ||
        known->unknown.count(type) != 0) {
      continue;
    }
    const auto trial = try_blas(type);
    if (!trial) continue;
    if (trial->core_type == type) {
      known->others[type] = trial->flops_per_second;
      news = true;
    } else {
      known->unknown.insert(type);
    }
  }
  // Another process may have slowed the trial of the library's own choice down: it must lose twice.
  if (news && choose(*known, core_types).chosen_by == "attnbench") {
    if (const auto again = try_blas("")) {
      known->own.flops_per_second = std::max(known->own.flops_per_second, again->flops_per_second);
    }
  }
  return known;
}

std::optional<BlasTrials> remembered_trials(const fs::path& file) {
  const std::optional<Json> known = process::recalled(file);
  if (!known) return std::nullopt;
  try {
    auto trials = known->get<BlasTrials>();
    bool sound = trials.own.flops_per_second > 0;
    for (const auto& [type, rate] : trials.others) sound = sound && rate > 0;
    if (!sound || trials.appearance != file_appearance(trials.own.library)) return std::nullopt;
    return trials;
  } catch (const UsageError&) {
    return std::nullopt;  // a damaged cache is as good as none
  }
}

void remember_trials(const fs::path& file, BlasTrials trials) {
  trials.appearance = file_appearance(trials.own.library);
  process::remember(file, trials);
}

TrialsLock::TrialsLock(const fs::path& file) {
  std::error_code ignored;
  fs::create_directories(file.parent_path(), ignored);
  descriptor_ = open((file.string() + ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor_ < 0) return;
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  do {
    held_ = flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
    if (held_ || errno != EWOULDBLOCK) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  } while (std::chrono::steady_clock::now() < until);
}

TrialsLock::~TrialsLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

BlasChoice blas_choice(bool keep, BlasTrying trying,
                       const std::function<void(const std::string& sentence)>& say) {
  if (const std::string theirs = variable("OPENBLAS_CORETYPE"); keep && !theirs.empty()) {
    BlasChoice choice;
    choice.core_type = theirs;
    choice.chosen_by = "user";
    return choice;
  }
  const std::vector<std::string> types = core_types_for(cpuinfo("vendor_id"), cpuinfo("flags"));
  const fs::path file = trials_file(keep);
  std::optional<TrialsLock> alone;
  if (trying == BlasTrying::allowed) alone.emplace(file);
  const auto known = remembered_trials(file);
  if (trying == BlasTrying::only_remembered) return known ? choose(*known, types) : BlasChoice{};
  bool announced = false;
  const TryBlas in_worker = [&](const std::string& type) {
    if (say && !announced) say("Trying which BLAS kernels are the fastest here, once.");
    announced = true;
    return try_in_worker(keep, type);
  };
  const auto trials = try_all(known, types, in_worker);
  if (!trials) return {};
  const bool news = !known || known->others != trials->others || known->unknown != trials->unknown;
  if (news) remember_trials(file, *trials);
  const BlasChoice choice = choose(*trials, types);
  if (say && announced && choice.chosen_by == "attnbench") {
    say("Its own choice, " + trials->own.core_type + ", does " +
        text::human_count(trials->own.flops_per_second) + "FLOP/s on one thread, " +
        choice.core_type + " " + text::human_count(choice.tried.at(choice.core_type)) +
        "FLOP/s: that is used.");
  }
  return choice;
}

}  // namespace attnbench::run
