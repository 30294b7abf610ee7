#include "tests/end_to_end/runs.hpp"
#include "tests/support/files.hpp"
#include "tests/support/stored_result.hpp"

#include <chrono>
#include <fstream>
#include <iterator>
#include <thread>

namespace attnbench::test {

Bench::Bench(const Json& entries, int rounds) {
  // An object of a nlohmann::json is sorted by key: label the entries in the order you want.
  Json mechanisms = Json::object();
  for (const auto& [label, entry] : entries.items()) {
    mechanisms[label] = entry;
    if (!entry.contains("use")) mechanisms[label]["use"] = "misbehave";
  }
  const Json suite = {{"name", "trouble"},
                      {"task", "kernel"},
                      {"set", {{"length", 8}, {"heads", 1}, {"head_dim", 8}}},
                      {"mechanisms", mechanisms},
                      {"measure",
                       {{"rounds", rounds},
                        {"max_samples", 10},
                        {"max_seconds", 0.02},
                        {"cell_timeout_seconds", 60}}}};
  write_file(this->suite(), suite.dump(1));
}

std::vector<std::string> Bench::command(const std::string& more) const {
  return words(program() + " run " + suite() + " --out " + folder() + " --plugin " +
               misbehave_plugin() + " --no-ceilings --no-report --progress plain " + more);
}

Finished Bench::run(const std::string& more,
                    const std::map<std::string, std::string>& environment) const {
  return test::run(command(more), 580, environment);
}

Finished Bench::resume(const std::string& more,
                       const std::map<std::string, std::string>& environment) const {
  return call("run --resume " + folder() + " --no-ceilings --no-report --progress plain " + more,
              environment);
}

void Bench::take_run_of(const Bench& other) const {
  std::filesystem::copy(other.folder(), folder(), std::filesystem::copy_options::recursive);
}

std::map<std::string, Json> Bench::cells() const { return cells_of(folder()); }

std::string Bench::status(const std::string& label) const {
  const Json cell = cells().at(label);
  return was_measured(cell) ? "ok" : cell.value("status", "");
}

std::string Bench::reason(const std::string& label) const {
  return cells().at(label).value("reason", "");
}

std::string Bench::state() const {
  const Json result = attnbench::test::stored_result(folder() + "/result.json");
  return result.at("attnbench").at("run").at("state");
}

std::vector<Json> Bench::records() const {
  std::vector<Json> records;
  std::ifstream stream(folder() + "/journal.jsonl");
  for (std::string line; std::getline(stream, line);) {
    Json one = Json::parse(line, nullptr, false);
    if (one.is_object() && one.value("type", "") == "record") records.push_back(std::move(one));
  }
  return records;
}

std::string contents(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::map<std::string, Json> cells_of(const std::filesystem::path& run_folder) {
  std::map<std::string, Json> cells;
  const Json result = attnbench::test::stored_result(run_folder / "result.json");
  for (const Json& cell : result.at("attnbench").at("cells")) cells[cell.at("label")] = cell;
  return cells;
}

bool was_measured(const Json& cell) {
  const std::string status = cell.value("status", "");
  return status == "ok" || status == "disturbed";
}

std::string misbehave_plugin() { return test::build_folder() + "/lib/libmisbehave.so"; }

bool wait_until(const std::function<bool()>& condition, double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

pid_t worker_of(const Running& run) {
  const std::vector<pid_t> found = run.children();
  return found.size() == 1 ? found.front() : -1;
}

pid_t child_of(const Running& run) {
  const pid_t worker = worker_of(run);
  if (worker < 0) return -1;
  const std::vector<pid_t> found = run.children(worker);
  return found.size() == 1 ? found.front() : -1;
}

bool alive(pid_t process) {
  std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  if (!std::getline(stat, text)) return false;
  const std::size_t end = text.rfind(')');
  return end != std::string::npos && end + 2 < text.size() && text[end + 2] != 'Z';
}

}  // namespace attnbench::test
