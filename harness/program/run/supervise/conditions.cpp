#include "harness/program/run/supervise/conditions.hpp"

#include <algorithm>

#include "core/process/fingerprint.hpp"
#include "harness/measure/device.hpp"
#include "harness/measure/machine.hpp"
#include "harness/measure/neighbours.hpp"
#include "harness/measure/noise_sources.hpp"
#include "harness/program/run/client/worker_client.hpp"
#include "harness/program/run/folder/run_folder.hpp"

namespace attnbench::run {
namespace {

constexpr double default_memory_share = 0.8;
/// Short beside a training, which takes seconds to hours.
constexpr double look_seconds = 0.25;

/// The part of the suite's `measure` that decides how a cell is sampled.
Json sampling_rule(Json measure) {
  if (!measure.is_object()) return Json::object();
  measure.erase("rounds");
  measure.erase("further_rounds");
  measure.erase("cell_timeout_seconds");
  return measure;
}

/// The choice that the run to resume made on this machine; nothing where the user made it.
std::optional<BlasChoice> earlier_choice(const RunSettings& settings, const Identity& identity) {
  if (settings.resume.empty() || settings.keep_blas_core) return std::nullopt;
  const Json header = read_journal(find_run_folder(settings.resume).journal()).header;
  const auto blas = header.find("blas");
  const auto earlier = header.find("identity");
  if (blas == header.end() || earlier == header.end()) return std::nullopt;
  if (identity_from(*earlier).machine != identity.machine) return std::nullopt;
  const auto choice = blas_choice_from(*blas);
  return choice && choice->chosen_by != "user" ? choice : std::nullopt;
}

}  // namespace

Conditions::Conditions(const RunSettings& settings)
    : card_(measure::machine_card()), limited_by_user_(settings.memory_limit_bytes.has_value()) {
  memory_bytes_ = settings.memory_limit_bytes.value_or(static_cast<std::int64_t>(
      default_memory_share * static_cast<double>(process::available_memory_bytes())));
  identity_.binary = settings.builds.empty() ? process::binary_fingerprint(settings.plugins)
                                             : process::joint_fingerprint(settings.builds);
  identity_.machine = card_.host + ", " + card_.cpu_model;
  identity_.threads = settings.threads;
  identity_.seed = settings.seed;
  identity_.measure = sampling_rule(settings.suite.measure);
}

void Conditions::add_device(const std::string& device) {
  if (card_.devices.contains(device)) return;
  const measure::Device& kind = measure::usable_device(device);
  const int index = measure::device_index(device);
  const Json card = kind.card(index);
  if (card.empty()) return;
  card_.devices[device] = card.get<result::DeviceCard>();
  identity_.devices[device] = card;
  if (!card_.noise_sources) card_.noise_sources.emplace();
  for (const std::string& sentence : measure::card_noise_sources(device, kind.condition(index))) {
    card_.noise_sources->push_back(sentence);
  }
}

std::int64_t Conditions::memory_limit(const std::string& device) const {
  const auto card =
      measure::usable_device(device).card(measure::device_index(device)).get<result::DeviceCard>();
  const std::int64_t own = card.memory_bytes.value_or(0);
  if (own == 0 || limited_by_user_) return memory_bytes_;
  return static_cast<std::int64_t>(default_memory_share * static_cast<double>(own));
}

void Conditions::choose_blas(const RunSettings& settings, const std::vector<Planned>& planned,
                             const std::function<void(const std::string& sentence)>& say) {
  const bool any = std::any_of(planned.begin(), planned.end(),
                               [](const Planned& one) { return one.runs() && one.cell.on_cpu(); });
  if (!any) return;
  const auto earlier = earlier_choice(settings, identity_);
  blas_ = earlier ? *earlier : blas_choice(settings.keep_blas_core, BlasTrying::allowed, say);
  if (blas_.chosen_by != "library") identity_.blas_core = blas_.core_type;
  card_.blas = Json(blas_).get<result::Blas>();
}

void Conditions::await_quiet(const RunSettings& settings, const QuietSurroundings& surroundings) {
  const Quiet quiet = wait_for_quiet(
      surroundings, measure::neighbours_from(card_.load ? Json(*card_.load) : Json::object()),
      settings.threads, process::usable_cores(),
      longest_wait(settings.wait_seconds, on_terminal()));
  if (quiet.waited_seconds > 0) measure::note_neighbours(card_, quiet.neighbours);
  waited_for_quiet_seconds_ = quiet.waited_seconds;
}

Waiting waiting_for(const Planned& planned, int threads) {
  if (planned.is_timed() || !planned.cell.on_cpu() || threads == 1) return Waiting::active;
  const measure::Neighbours others = measure::neighbours(look_seconds);
  return measure::crowded(others, threads, process::usable_cores()) ? Waiting::passive
                                                                    : Waiting::active;
}

}  // namespace attnbench::run
