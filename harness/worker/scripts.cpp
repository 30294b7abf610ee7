#include "harness/worker/scripts.hpp"

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/failure.hpp"
#include "core/json_file.hpp"

namespace attnbench::worker {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// One object of the file; a key is refused unless `take` knows it.
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
