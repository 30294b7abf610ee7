#include "core/result/machine.hpp"

#include <cmath>

#include "core/text/format.hpp"

namespace attnbench::result {

static void fields(auto& json, OrConst<Blas> auto& value) {
  JSON_KEY(usual, kind, "openblas, mkl, reference, …");
  JSON_KEY(maybe, library, "its file");
  JSON_MAYBE(core_type);
  JSON_KEY(maybe, chosen_by, "user, library or attnbench");
  JSON_KEY(maybe, tried, "FLOP/s on one thread by core type");
  JSON_REST;
}
ATTNBENCH_SCHEMA(Blas)

void to_json(Json& json, const Blas& blas) {
  json = Json::object();
  JsonWriter writer(json);
  fields(writer, blas);
}

void from_json(const Json& json, Blas& blas) {
  blas = {};
  if (json.is_string()) {
    blas.kind = json.get<std::string>();
    return;
  }
  JsonReader reader(json);
  fields(reader, blas);
}

Blas blas_as_loaded(const Blas& chosen, const Json& loaded) {
  if (!loaded.is_object()) return chosen;
  Json blas = chosen;
  blas.update(loaded);
  auto used = blas.get<Blas>();
  if (!used.kind.empty() && used.kind != "openblas") {
    used.core_type.clear();
    if (used.chosen_by == "user") used.chosen_by = "library";
  }
  return used;
}

ATTNBENCH_DESCRIBED_CODEC(DeviceCard) {
  JSON_MAYBE(name, compute_capability, driver, driver_cuda, memory_bytes, l2_bytes,
             multiprocessors);
  JSON_REST;
}

ATTNBENCH_DESCRIBED_CODEC(Caches) {
  JSON_MAYBE(l1_bytes, l2_bytes, l3_bytes);
  JSON_IGNORE_REST;
}

ATTNBENCH_DESCRIBED_CODEC(Load) {
  JSON_MAYBE(average_1_minute, average_5_minutes, average_15_minutes);
  JSON_REST;
}

/// Results from before the card had an object for the BLAS have its parts beside its kind.
static void take_older_blas(const MachineCard&) {}
static void take_older_blas(MachineCard& card) {
  const auto older = [&](const char* key, std::string& part) {
    const Json* const said = find_value(card.further, key);
    if (said != nullptr && said->is_string() && part.empty()) part = said->get<std::string>();
  };
  if (!card.blas) return;
  older("blas_library", card.blas->library);
  older("blas_core_type", card.blas->core_type);
}

ATTNBENCH_DESCRIBED_CODEC(MachineCard) {
  JSON_MAYBE(host, os, kernel, architecture, cpu_model, cores, threads, allowed_cpus);
  JSON_KEY(maybe, cpu_quota, "CPUs that a container may use");
  JSON_KEY(maybe, caches, "of one core, and the last level of all cores together");
  JSON_MAYBE(memory_bytes, governor, clock_hz, virtualised, isa);
  JSON_KEY(maybe, load, "how busy the machine was");
  JSON_MAYBE(environment);
  JSON_KEY(maybe, blas, "the library of matrix products", R"({"type": ["object", "string"]})");
  JSON_KEY(maybe, devices, "by the word that cells name them with");
  JSON_KEY(maybe, kept_from_worker, "variables of the environment");
  json.maybe("spoilers", value.noise_sources, "sources of noise that were found");
  JSON_REST;
  take_older_blas(value);
}

const std::vector<std::string>& MachineCard::noise() const {
  static const std::vector<std::string> none;
  return noise_sources ? *noise_sources : none;
}

namespace {

constexpr double too_little = 0.5;

std::optional<double> over(const Values& ceilings, const char* product, const char* multiply_add) {
  const double top = number_of(ceilings, product).value_or(0);
  const double bottom = number_of(ceilings, multiply_add).value_or(0);
  if (top <= 0 || bottom <= 0) return std::nullopt;
  return top / bottom;
}

std::string advice(const Blas& blas) {
  if (blas.kind == "reference") {
    return "It is the reference BLAS, which is not made to be fast: install OpenBLAS (Debian: "
           "apt-get install libopenblas0-openmp), and leave LD_LIBRARY_PATH without the folder of "
           "this one.";
  }
  if (blas.kind == "openblas" && blas.chosen_by == "user") {
    return "OPENBLAS_CORETYPE in the environment chose its core type: leave --keep-blas-core out, "
           "and the fastest is taken.";
  }
  if (blas.kind == "openblas") {
    return "No core type of this OpenBLAS that the CPU could run was faster: install a newer "
           "OpenBLAS, or a PyTorch with its own (pip install torch, then ATTNBENCH_TORCH).";
  }
  return "Install OpenBLAS (Debian: apt-get install libopenblas0-openmp) or a PyTorch with its own "
         "BLAS.";
}

std::string percent(double share) { return std::to_string(std::lround(100 * share)) + " %"; }

std::string rates(const Values& ceilings, const char* product, const char* multiply_add) {
  return text::human_count(number_of(ceilings, product).value_or(0)) + "FLOP/s beside " +
         text::human_count(number_of(ceilings, multiply_add).value_or(0)) +
         "FLOP/s of multiply-adds";
}

constexpr const char* product_all = "gemm_float32_flops_per_second";
constexpr const char* product_one = "gemm_float32_one_thread_flops_per_second";
constexpr const char* multiply_all = "fma_float32_flops_per_second";
constexpr const char* multiply_one = "fma_float32_one_thread_flops_per_second";

}  // namespace

ProductShares product_shares(const Values& ceilings) {
  return {over(ceilings, product_all, multiply_all), over(ceilings, product_one, multiply_one)};
}

std::string blas_warning(const Values& ceilings, const MachineCard& machine) {
  const ProductShares shares = product_shares(ceilings);
  const bool slow = shares.one_thread.value_or(shares.all_threads.value_or(1)) < too_little;
  if (slow) {
    const double share = shares.one_thread ? *shares.one_thread : *shares.all_threads;
    return "Matrix products reach " + percent(share) + " of what the CPU can do: " +
           (shares.one_thread ? rates(ceilings, product_one, multiply_one) + ", on one thread"
                              : rates(ceilings, product_all, multiply_all)) +
           ". BLAS is " + blas_text(machine) + ". " + advice(machine.blas.value_or(Blas{})) +
           " Until then every mechanism that multiplies matrices by it is shown too slow.";
  }
  if (shares.all_threads.value_or(1) < too_little) {
    return "Matrix products reach " + percent(*shares.all_threads) +
           " of what the CPU can do with all threads (" +
           rates(ceilings, product_all, multiply_all) +
           "), though enough with one: others held CPUs meanwhile, or this BLAS uses one thread "
           "only (" +
           blas_text(machine) + "; Debian's libopenblas0-openmp shares LibTorch's threads).";
  }
  return "";
}

std::string blas_text(const MachineCard& machine) {
  const Blas blas = machine.blas.value_or(Blas{});
  std::string text = blas.kind.empty() ? "unknown" : blas.kind;
  if (!blas.core_type.empty()) {
    text += " " + blas.core_type;
    if (blas.chosen_by == "user") text += " (chosen by OPENBLAS_CORETYPE)";
    if (blas.chosen_by == "library") text += " (its own choice)";
    if (blas.chosen_by == "attnbench") text += " (the fastest of those tried)";
  }
  if (!blas.library.empty()) text += ", " + blas.library;
  return text;
}

}  // namespace attnbench::result
