#include "harness/program/run/plan/planning.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "core/errors.hpp"
#include "core/hash.hpp"
#include "core/process/fingerprint.hpp"
#include "core/protocol.hpp"
#include "core/text/format.hpp"
#include "harness/measure/device.hpp"
#include "harness/program/run/client/worker_client.hpp"

namespace attnbench::run {
namespace {

namespace fs = std::filesystem;

constexpr double answer_limit_seconds = 600;
constexpr std::size_t max_shown = 20;

/// A plugin that crashed today may load tomorrow: only a whole catalogue is cached.
bool all_plugins_ok(const Catalogue& catalogue) {
  return std::all_of(catalogue.plugins.begin(), catalogue.plugins.end(),
                     [](const PluginSpec& plugin) { return plugin.status == "ok"; });
}

WorkerOptions options_with(const process::Build& build) {
  WorkerOptions options;
  options.plugins = build.plugins;
  options.program = build.worker;
  return options;
}

/// The worker that was asked last. What is asked next is mostly of the same build, and a worker
/// takes a second to load LibTorch, and longer for plugins in Python.
class Asked {
 public:
  Json request(const process::Build& build, const Json& message) {
    if (!client_ || !(build == build_)) {
      client_.reset();
      client_ = std::make_unique<WorkerClient>(options_with(build));
      build_ = build;
    }
    try {
      return client_->request(message, {}, answer_limit_seconds);
    } catch (...) {
      client_.reset();
      throw;
    }
  }
  void end() { client_.reset(); }

 private:
  process::Build build_;
  std::unique_ptr<WorkerClient> client_;
};

Asked& asked() {
  static Asked last;
  return last;
}

std::string key_of(const process::Build& build) {
  std::string key =
      "protocol " + std::to_string(protocol::version) + " " + process::binary_fingerprint(build);
  for (const std::string& plugin : build.plugins) key += "\n" + plugin;
  return hash_text(key);
}

/// The cards that cells name, since workspaces depend on them; null for one that is not there.
Json cards_of(const std::vector<Cell>& cells) {
  std::map<std::string, Json> cards;
  for (const Cell& cell : cells) {
    if (cards.count(cell.device) == 0) cards[cell.device] = measure::card_if_usable(cell.device);
  }
  return cards;
}

std::optional<std::vector<Forecast>> recalled_forecasts(const fs::path& file, std::size_t count) {
  const auto known = process::recalled(file);
  if (!known || !known->is_array() || known->size() != count) return std::nullopt;
  try {
    auto forecasts = known->get<std::vector<Forecast>>();
    if (is_whole(forecasts)) return forecasts;
  } catch (const UsageError&) {
    // A damaged cache is as good as none.
  }
  return std::nullopt;
}

std::vector<Forecast> asked_of_worker(const std::vector<Cell>& cells, const process::Build& build) {
  const Json answer = asked().request(build, protocol::Plan{cells});
  std::vector<Forecast> forecasts;
  try {
    forecasts = answer.get<protocol::PlanAnswer>().cells;
  } catch (const UsageError& error) {
    throw EnvironmentFailure(std::string("the worker's plan: ") + error.what());
  }
  if (forecasts.size() != cells.size()) {
    throw EnvironmentFailure("the worker planned " + std::to_string(forecasts.size()) + " of " +
                             std::to_string(cells.size()) + " cells");
  }
  return forecasts;
}

/// Identifies the prepared data that workers may read, on which forecasts depend: name, size and
/// time of each file in ATTNBENCH_DATA and in the folders directly below it, in order; empty
/// where the variable is not set.
std::string prepared_data() {
  const char* folder = std::getenv("ATTNBENCH_DATA");
  if (folder == nullptr) return "";
  std::set<std::string> files;
  std::error_code fault;
  using Options = fs::directory_options;
  for (fs::recursive_directory_iterator
           at(folder, Options::skip_permission_denied | Options::follow_directory_symlink, fault),
       end;
       !fault && at != end; at.increment(fault)) {
    if (at.depth() >= 1) at.disable_recursion_pending();
    std::error_code unknown;
    if (!at->is_regular_file(unknown)) continue;
    files.insert(at->path().string() + " " + std::to_string(at->file_size(unknown)) + " " +
                 std::to_string(at->last_write_time(unknown).time_since_epoch().count()));
  }
  std::string all = folder;
  for (const std::string& file : files) all += "\n" + file;
  return all;
}

std::optional<Settled> settled(const Cell& cell, const Forecast& forecast, std::int64_t limit) {
  if (forecast.status) return Settled{*forecast.status, forecast.reason, forecast.detail};
  if (!forecast.supported) {
    return Settled{Status::unsupported,
                   forecast.reason.empty() ? "no reason given" : forecast.reason, ""};
  }
  if (cell.options_unknown) {
    return Settled{Status::error,
                   "it could not be asked for its options, and answers now: options that were set "
                   "would be missing; start the run again",
                   ""};
  }
  const double predicted = forecast.peak_bytes.value_or(0);
  if (limit > 0 && predicted > static_cast<double>(limit)) {
    return Settled{Status::skipped,
                   "predicted " + text::human_bytes(predicted) + " is over the limit of " +
                       text::human_bytes(static_cast<double>(limit)) + "; --memory-limit raises it",
                   ""};
  }
  return std::nullopt;
}

/// Refuses what the suite asks for and makes no sense; a mechanism whose forecast failed is not the
/// suite's mistake. Cells of one mistake differ in sizes only: each sentence is shown once.
void refuse_senseless(const std::vector<Planned>& planned) {
  std::set<std::string> shown;
  std::string message;
  for (const Planned& one : planned) {
    if (one.runs() || !one.forecast.refused) continue;
    const std::string sentence = one.cell.label + ": " + one.settled->reason;
    if (shown.size() < max_shown && shown.insert(sentence).second) {
      message += (message.empty() ? "" : "\n") + sentence;
    }
  }
  if (!message.empty()) throw CellsRefused(message);
}

}  // namespace

Catalogue load_catalogue(const process::Build& build) {
  const fs::path file = process::cache_file("catalogue-" + key_of(build) + ".json");
  if (const auto known = process::recalled(file)) {
    try {
      return known->get<Catalogue>();
    } catch (const UsageError&) {
      // A damaged cache is as good as none.
    }
  }
  const Json answer = asked().request(build, {{"type", "catalogue"}});
  try {
    Catalogue catalogue = answer.get<Catalogue>();
    // Under the key as it is now: the worker may have learned of files that Python depends on.
    if (all_plugins_ok(catalogue)) {
      process::remember(process::cache_file("catalogue-" + key_of(build) + ".json"), answer);
    }
    return catalogue;
  } catch (const UsageError& error) {
    throw EnvironmentFailure(std::string("the worker's catalogue: ") + error.what());
  }
}

bool is_whole(const std::vector<Forecast>& forecasts) {
  return std::none_of(forecasts.begin(), forecasts.end(),
                      [](const Forecast& one) { return one.status.has_value(); });
}

std::vector<Forecast> forecast(const std::vector<Cell>& cells, const process::Build& build) {
  const std::string key =
      hash_text(key_of(build) + Json(cells).dump() + cards_of(cells).dump() + prepared_data());
  const fs::path file = process::cache_file("forecast-" + key + ".json");
  std::optional<std::vector<Forecast>> forecasts = recalled_forecasts(file, cells.size());
  if (!forecasts) {
    forecasts = asked_of_worker(cells, build);
    if (is_whole(*forecasts)) process::remember(file, *forecasts);
  }
  asked().end();  // what is measured next has the machine for itself
  return std::move(*forecasts);
}

std::vector<Cell> cells_from(const Json& cells) {
  std::vector<Cell> out;
  for (const Json& cell : cells) {
    try {
      out.push_back(cell.get<Cell>());
    } catch (const UsageError& error) {
      const Json label = cell.is_object() ? cell.value("label", Json()) : Json();
      throw CellsRefused((label.is_string() ? label.get<std::string>() : std::string("a cell")) +
                         ": " + error.what());
    }
  }
  return out;
}

Json to_json(const Settled& settled) {
  Json json = {{"status", to_string(settled.status)}, {"reason", settled.reason}};
  if (!settled.detail.empty()) json["detail"] = settled.detail;
  return json;
}

std::vector<Planned> plan_cells(const std::vector<Cell>& cells,
                                const std::vector<Forecast>& forecasts,
                                const std::function<std::int64_t(const Cell& cell)>& memory_limit) {
  std::vector<Planned> planned;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    planned.push_back(
        {cells[i], forecasts.at(i), settled(cells[i], forecasts.at(i), memory_limit(cells[i]))});
  }
  refuse_senseless(planned);
  return planned;
}

}  // namespace attnbench::run
