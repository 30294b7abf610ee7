#include "harness/worker/generate.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/worker/plan.hpp"
#include "tasks/training/stream.hpp"
#include "tasks/training/trained.hpp"

namespace attnbench::worker {
namespace {

using Clock = std::chrono::steady_clock;
using tasks::training::Model;
using tasks::training::ModelState;

/// After so many bytes the memory that a stream needs is in use.
constexpr std::int64_t warm_bytes = 10'000;
constexpr double say_seconds = 0.1;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

/// A state with room for `needed` tokens, or for `capacity` where that is set. `what` names the
/// tokens.
ModelState state_for(const Model& model, std::int64_t needed, std::int64_t capacity,
                     const std::string& what) {
  const std::string tokens = what + " are " + std::to_string(needed) + " tokens";
  if (const auto most = model.max_tokens(); most && needed > *most) {
    throw UsageError(tokens + ", and the model's learned positions end at " +
                     std::to_string(*most) +
                     ": ask for less, or train it with a greater length or other positions");
  }
  ModelState state = model.empty_state(1, capacity > 0 ? capacity : needed);
  if (capacity == 0 || capacity >= needed) return state;
  if (state.bytes() < model.empty_state(1, needed).bytes()) {
    throw UsageError(tokens + ", and the mechanism's cache of keys has room for " +
                     std::to_string(capacity) + " (--capacity): raise it, or ask for less");
  }
  return state;
}

std::vector<std::int64_t> tokens_of(std::string_view text) {
  std::vector<std::int64_t> tokens;
  for (const char letter : text) tokens.push_back(static_cast<unsigned char>(letter));
  return tokens;
}

void generate_into(Model& model, const protocol::Generate& request,
                   protocol::GenerateAnswer& answer) {
  const std::vector<std::int64_t> prompt = tokens_of(request.prompt);
  // The last byte is not read.
  const auto needed = static_cast<std::int64_t>(prompt.size()) + request.bytes - 1;
  ModelState state =
      state_for(model, needed, request.capacity,
                "a prompt of " + std::to_string(prompt.size()) + " bytes and all but the last of " +
                    std::to_string(request.bytes) + " that follow");
  answer.state_bytes = state.bytes();
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(std::fopen(request.out.c_str(), "ab"),
                                                            std::fclose);
  if (!out) throw Error("cannot write " + request.out);
  const auto take = [&](std::int64_t token) {
    std::fputc(static_cast<int>(token), out.get());
    if (std::fflush(out.get()) != 0) throw Error("cannot write " + request.out);
    if (++answer.bytes <= warm_bytes) answer.early_resident_bytes = resident_bytes();
    return true;
  };
  tasks::training::generate(model, state, prompt, request.bytes,
                            {request.temperature, request.seed}, take);
}

void score_file(Model& model, const protocol::Generate& request,
                const ChildContext::Progress& progress, protocol::GenerateAnswer& answer) {
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(request.score));
  ModelState state = state_for(model, size, request.capacity, "the bytes of " + request.score);
  answer.state_bytes = state.bytes();
  std::ifstream text(request.score, std::ios::binary);
  tasks::training::StreamScore score(model, state);
  std::string part(static_cast<std::size_t>(tasks::training::kReadTogether), '\0');
  auto said = Clock::now();
  while (state.position < size) {
    const std::int64_t wanted = std::min(size - state.position, tasks::training::kReadTogether);
    if (!text.read(part.data(), wanted)) throw Error("cannot read all of " + request.score);
    score.read(tokens_of(std::string_view(part).substr(0, static_cast<std::size_t>(wanted))));
    if (state.position <= warm_bytes) answer.early_resident_bytes = resident_bytes();
    if (seconds_since(said) < say_seconds) continue;
    said = Clock::now();
    char so_far[48];
    std::snprintf(so_far, sizeof so_far, "%.4f bits a byte", score.bits_per_token());
    progress(static_cast<double>(state.position), static_cast<double>(size), so_far);
  }
  answer.bytes = score.scored();
  answer.bits_per_byte = score.bits_per_token();
}

protocol::GenerateAnswer generated(const Loaded& loaded, const protocol::Generate& request,
                                   const ChildContext::Progress& progress) {
  const tasks::ResolvedCell cell = task_cell(request.cell, loaded.tasks);
  const tasks::Task& task = loaded.tasks.find(request.cell.task);
  tasks::training::require_byte_model(task, cell);
  const auto trained = tasks::training::trained_model(
      dynamic_cast<const tasks::training::TrainingTask&>(task), loaded.registry, cell,
      request.checkpoint, request.binary, request.run_seed);
  protocol::GenerateAnswer answer;
  answer.implementation = trained.implementation;
  answer.step = trained.step;
  const auto begin = Clock::now();
  if (request.score.empty()) {
    generate_into(*trained.model, request, answer);
  } else {
    score_file(*trained.model, request, progress, answer);
  }
  answer.seconds = seconds_since(begin);
  answer.resident_bytes = resident_bytes();
  return answer;
}

protocol::GenerateAnswer refused_generation(Status status, const std::string& reason) {
  protocol::GenerateAnswer answer;
  answer.status = status;
  answer.reason = reason;
  answer.refused = true;
  return answer;
}

}  // namespace

protocol::GenerateAnswer generate_bytes(const Loaded& loaded, const protocol::Generate& request,
                                        const ChildContext::Progress& progress) {
  try {
    return generated(loaded, request, progress);
  } catch (const UsageError& error) {
    return refused_generation(Status::error, error.what());
  } catch (const UnsupportedError& error) {
    return refused_generation(Status::unsupported, error.what());
  }
}

}  // namespace attnbench::worker
