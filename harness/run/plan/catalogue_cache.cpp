#include "harness/run/plan/catalogue_cache.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "core/hash.hpp"
#include "core/protocol.hpp"
#include "core/result/document.hpp"
#include "harness/measure/device.hpp"
#include "harness/run/folder/fingerprint.hpp"
#include "harness/run/worker/worker_client.hpp"

namespace attnbench::run {
namespace {

namespace fs = std::filesystem;
using suite::Catalogue;
using suite::Json;

constexpr double answer_limit_seconds = 600;

/// A plugin that crashed today may do better tomorrow: only a whole catalogue is remembered.
bool worth_remembering(const Json& catalogue) {
  const Json plugins = catalogue.value("plugins", Json::array());
  return std::all_of(plugins.begin(), plugins.end(),
                     [](const Json& plugin) { return plugin.value("status", "") == "ok"; });
}

WorkerClient worker_for(const std::vector<std::string>& plugins) {
  WorkerOptions options;
  options.plugins = plugins;
  return WorkerClient(std::move(options));
}

std::string key_of(const std::vector<std::string>& plugins) {
  std::string key =
      "protocol " + std::to_string(protocol_version) + " " + binary_fingerprint(plugins);
  for (const std::string& plugin : plugins) key += "\n" + plugin;
  return result::hash_text(key);
}

/// The cards that cells name, since workspaces depend on them; of one that is not there, nothing.
Json cards_of(const std::vector<Json>& cells) {
  Json cards = Json::object();
  for (const Json& cell : cells) {
    const std::string word = cell.value("device", "cpu");
    if (!cards.contains(word)) cards[word] = measure::card_if_usable(word);
  }
  return cards;
}

}  // namespace

bool is_whole(const Json& forecasts) {
  return forecasts.is_array() &&
         std::all_of(forecasts.begin(), forecasts.end(), [](const Json& forecast) {
           return forecast.is_object() && !forecast.contains("status");
         });
}

Catalogue load_catalogue(const std::vector<std::string>& plugins) {
  const fs::path file = cache_file("catalogue-" + key_of(plugins) + ".json");
  if (const auto known = recalled(file)) {
    try {
      return Catalogue::from_json(*known);
    } catch (const std::exception&) {
      // A cache that somebody damaged is as good as none.
    }
  }
  WorkerClient worker = worker_for(plugins);
  Json answer = worker.request({{"type", "catalogue"}}, {}, answer_limit_seconds);
  answer.erase("type");
  Catalogue catalogue = Catalogue::from_json(answer);
  if (worth_remembering(answer)) remember(file, answer);
  return catalogue;
}

std::vector<Json> forecast(const std::vector<Json>& cells,
                           const std::vector<std::string>& plugins) {
  const Json asked = cells;
  const std::string key =
      result::hash_text(key_of(plugins) + asked.dump() + cards_of(cells).dump());
  const fs::path file = cache_file("forecast-" + key + ".json");
  if (const auto known = recalled(file); known && known->size() == cells.size()) {
    if (is_whole(*known)) return known->get<std::vector<Json>>();
  }
  WorkerClient worker = worker_for(plugins);
  const Json answer =
      worker.request({{"type", "plan"}, {"cells", asked}}, {}, answer_limit_seconds);
  const Json& planned = answer.at("cells");
  if (planned.size() != cells.size()) {
    throw EnvironmentFailure("the worker planned " + std::to_string(planned.size()) + " of " +
                             std::to_string(cells.size()) + " cells");
  }
  if (is_whole(planned)) remember(file, planned);
  return planned.get<std::vector<Json>>();
}

}  // namespace attnbench::run
