#include "harness/worker/plugins.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <set>

#include "attention/python/python.hpp"
#include "core/failure.hpp"
#include "core/json_file.hpp"
#include "core/protocol.hpp"
#include "harness/worker/catalogue.hpp"
#include "harness/worker/child.hpp"
#include "tasks/plugin.hpp"

namespace attnbench::worker {
namespace {

namespace fs = std::filesystem;

void register_all(const std::string& path, Registry& registry, tasks::TaskTable& tasks) {
  if (is_script(path)) return add_script(describe_script(path), registry);
  const PluginLibrary plugin(path);
  const bool mechanisms = plugin.register_into(registry);
  const bool further_tasks = tasks::register_into(tasks, plugin);
  if (!mechanisms && !further_tasks) plugin.refuse_without("attnbench_plugin_register");
}

/// Adds to `registry` what `with_plugin` has beyond the built-ins, under names that end in _`word`.
/// Aliases are left out: they are names, too. Throws PluginError where there is nothing.
void add_as(const std::string& word, const Registry& with_plugin, Registry& registry) {
  const Registry builtin = Registry::with_builtins();
  const std::vector<std::string> known = builtin.mechanisms();
  bool any = false;
  for (const std::string& name : with_plugin.mechanisms()) {
    const Entry& entry = with_plugin.entry(name);
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      Entry renamed = entry;
      renamed.name += "_" + word;
      renamed.aliases.clear();
      registry.add(std::move(renamed), with_plugin.reference(name));
      any = true;
      continue;
    }
    for (const Implementation& one : entry.implementations) {
      if (builtin.entry(name).find_implementation(one.name) != nullptr) continue;
      Implementation renamed = one;
      renamed.name += "_" + word;
      registry.add_implementation(name, std::move(renamed));
      any = true;
    }
  }
  if (!any) throw PluginError("it has no mechanism to be called by another name");
}

/// Adds all that the plugin registers, or nothing.
void add_plugin(const run::PluginName& plugin, Loaded& loaded) {
  Registry registry = loaded.registry;
  tasks::TaskTable tasks = loaded.tasks;
  if (plugin.as.empty()) {
    register_all(plugin.path, registry, tasks);
  } else {
    Registry fresh = Registry::with_builtins();
    tasks::TaskTable ignored = tasks::builtin_tasks();
    register_all(plugin.path, fresh, ignored);
    add_as(plugin.as, fresh, registry);
  }
  loaded.registry = std::move(registry);
  loaded.tasks = std::move(tasks);
}

/// How adding the plugin in a child ended.
Outcome try_plugin(const run::PluginName& plugin, const Loaded& loaded, double limit_seconds) {
  ChildSetup setup;
  setup.limit_seconds = limit_seconds;
  return run_child(
      setup,
      [&](run::Channel&) {
        Loaded copy = loaded;
        add_plugin(plugin, copy);
        catalogue(copy);  // calls all that it declares
      },
      [](const Json&) {});
}

suite::PluginSpec load(const std::string& path, Loaded& loaded, double limit_seconds) {
  const run::PluginName plugin(path);
  const Outcome trial = try_plugin(plugin, loaded, limit_seconds);
  if (trial.status == result::Status::crashed || trial.status == result::Status::timeout) {
    return {path, "crashed", "while it was loaded: " + trial.reason};
  }
  if (trial.status != result::Status::ok) return {path, "refused", trial.reason};
  try {
    add_plugin(plugin, loaded);
  } catch (...) {
    return {path, "refused", outcome_of(std::current_exception()).reason};
  }
  return {path, "ok", ""};
}

/// Adds a mechanism in Python. One that cannot be used is added as such: it costs its cells alone.
suite::PluginSpec load_python(PythonPlugin plugin, Loaded& loaded) {
  const bool told = plugin.outcome.status == result::Status::ok;
  try {
    if (told) {
      python::add_python(plugin.word, plugin.mechanism, plugin.description, loaded.registry);
    }
  } catch (const UsageError& error) {
    plugin.outcome = {result::Status::error,
                      plugin.description.place + ": its reference: " + error.what(), ""};
  } catch (const std::exception& error) {
    return {plugin.word, "refused", error.what()};
  }
  const Outcome& outcome = plugin.outcome;
  if (outcome.status == result::Status::ok) {
    loaded.python[plugin.mechanism] = plugin;
    return {plugin.word, "ok", ""};
  }
  const bool unsupported = outcome.status == result::Status::unsupported;
  try {
    python::add_unusable(plugin.mechanism, unsupported, outcome.reason, loaded.registry);
  } catch (const std::exception& error) {
    return {plugin.word, "refused", error.what()};
  }
  loaded.python[plugin.mechanism] = plugin;
  return {plugin.word, unsupported ? "unavailable" : "failed", outcome.reason};
}

/// The names under which `origins` has things.
std::set<std::string> names_of(const Loaded& loaded) {
  std::set<std::string> names;
  for (const std::string& mechanism : loaded.registry.mechanisms()) {
    names.insert(mechanism);
    for (const Implementation& one : loaded.registry.entry(mechanism).implementations) {
      names.insert(mechanism + "/" + one.name);
    }
  }
  for (const auto& task : loaded.tasks.all()) names.insert("task " + task->name());
  return names;
}

/// One object of the file. refuse_others refuses keys that were not read.
class Reader {
 public:
  Reader(std::string place, const Json& object) : place_(std::move(place)), object_(object) {
    if (!object.is_object()) fail("expected an object");
  }

  [[noreturn]] void fail(const std::string& what) const { throw PluginError(place_ + ": " + what); }

  template <class T>
  void take(const std::string& key, T& value) {
    known_.push_back(key);
    if (!object_.contains(key)) return;
    try {
      value = object_.at(key).get<T>();
    } catch (const Json::exception&) {
      fail("\"" + key + "\" is " + object_.at(key).dump() + ", which has another type");
    }
  }
  /// The same for a member that is read by the caller.
  Json member(const std::string& key) {
    known_.push_back(key);
    return object_.value(key, Json());
  }

  void refuse_others() const {
    for (const auto& [key, ignored] : object_.items()) {
      if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
      const std::string near = closest_word(key, known_);
      fail("there is no \"" + key + "\"" +
           (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
    }
  }

 private:
  std::string place_;
  const Json& object_;
  std::vector<std::string> known_;
};

Source source_from(const Reader& reader, const std::string& word) {
  if (word == "query_tokens") return Source::query_tokens;
  if (word == "key_tokens") return Source::key_tokens;
  reader.fail("\"source\" is \"" + word + "\", expected \"query_tokens\" or \"key_tokens\"");
}

std::string width_from(const Reader& reader, const Json& width) {
  if (width.is_null()) return "head_dim";
  if (width.is_number_integer() && width.get<std::int64_t>() > 0) return width.dump();
  if (width == "head_dim" || width == "value_dim") return width;
  reader.fail("\"width\" is " + width.dump() +
              ", expected \"head_dim\", \"value_dim\" or a number");
}

void read_roles(const std::string& place, const Json& roles, ScriptDescription& out) {
  if (roles.is_null()) return;
  const Reader all(place, roles);
  for (const auto& [name, said] : roles.items()) {
    Reader reader(place + " " + name, said);
    std::string source = "key_tokens";
    reader.take("source", source);
    const Json width = reader.member("width");
    reader.refuse_others();
    out.roles[name] = {source_from(reader, source), width_from(reader, width)};
  }
}

void read_claims(const std::string& place, const Json& said, Claims& claims) {
  claims = {false, false, false, false, false};
  if (said.is_null()) return;
  Reader reader(place, said);
  reader.take("rows_sum_to_one", claims.rows_sum_to_one);
  reader.take("linear_in_value", claims.linear_in_value);
  reader.take("permutation_equivariant", claims.permutation_equivariant);
  reader.take("last_row_agrees", claims.last_row_agrees);
  reader.take("heads_independent", claims.heads_independent);
  reader.refuse_others();
}

void read_growth(const std::string& place, const Json& said, Growth& growth) {
  constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
  growth.time_in_length = growth.workspace_in_length = growth.time_in_head_dim = nothing;
  if (said.is_null()) return;
  Reader reader(place, said);
  reader.take("time_in_length", growth.time_in_length);
  reader.take("workspace_in_length", growth.workspace_in_length);
  reader.take("time_in_head_dim", growth.time_in_head_dim);
  reader.refuse_others();
}

void read(const std::string& file, const Json& json, ScriptDescription& out) {
  Reader reader(file, json);
  reader.take("title", out.title);
  reader.take("citation", out.citation);
  std::vector<std::string> patterns;
  reader.take("patterns", patterns);
  for (const std::string& word : patterns) {
    try {
      out.patterns.push_back(pattern_from(word));
    } catch (const UsageError& error) {
      reader.fail(error.what());
    }
  }
  reader.take("options", out.option_meanings);
  read_roles(file + ": roles", reader.member("roles"), out);
  read_claims(file + ": claims", reader.member("claims"), out.claims);
  read_growth(file + ": growth", reader.member("growth"), out.growth);
  reader.refuse_others();
}

}  // namespace

std::string Loaded::origin(const std::string& what) const {
  const auto found = origins.find(what);
  return found == origins.end() ? "built in" : found->second;
}

Loaded load_all(const std::vector<std::string>& paths, double limit_seconds) {
  Loaded loaded;
  std::vector<PythonPlugin> in_python = python_plugins(paths, limit_seconds);
  auto next = in_python.begin();
  for (const std::string& path : paths) {
    const std::set<std::string> before = names_of(loaded);
    const bool is_next = next != in_python.end() && next->word == path;
    loaded.plugins.push_back(is_next ? load_python(std::move(*next++), loaded)
                                     : load(path, loaded, limit_seconds));
    for (const std::string& name : names_of(loaded)) {
      if (before.count(name) == 0) loaded.origins[name] = path;
    }
  }
  return loaded;
}

std::string blame(const Loaded& loaded, const std::string& mechanism,
                  const std::string& implementation, const std::string& task) {
  for (const std::string& name : {mechanism, mechanism + "/" + implementation, "task " + task}) {
    const auto found = loaded.origins.find(name);
    if (found != loaded.origins.end()) {
      return "; " + name + " comes from the plugin " + found->second;
    }
  }
  return {};
}

std::string at_place(const Loaded& loaded, const std::string& mechanism, std::string reason) {
  const auto found = loaded.python.find(mechanism);
  if (found == loaded.python.end()) return reason;
  const std::string& place = found->second.description.place;
  const std::string file = place.substr(0, place.rfind(':') + 1);
  const bool has_line = !file.empty() && reason.rfind(file, 0) == 0;
  return place.empty() || has_line ? reason : place + ": " + reason;
}

bool is_script(const std::string& path) { return fs::path(path).extension() == ".pt"; }

ScriptDescription describe_script(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) {
    throw PluginError("plugin " + path + ": there is no such file");
  }
  ScriptDescription out;
  out.name = fs::path(path).stem();
  out.module_file = path;
  const fs::path reference = fs::path(path).replace_extension(".reference.pt");
  if (fs::is_regular_file(reference, ignored)) out.reference_file = reference;
  const fs::path beside = fs::path(path).replace_extension(".json");
  Json json = Json::object();
  if (fs::exists(beside, ignored)) {
    try {
      json = result::parse_json_file(beside, "title, patterns, claims, in JSON");
    } catch (const UsageFailure& failure) {
      throw PluginError(std::string("plugin ") + failure.what());
    }
  }
  read("plugin " + beside.string(), json, out);
  return out;
}

}  // namespace attnbench::worker
