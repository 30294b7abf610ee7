#include "harness/worker/catalogue.hpp"

#include <algorithm>
#include <optional>

#include "attention/version.hpp"
#include "core/cell.hpp"
#include "harness/worker/child.hpp"
#include "harness/worker/plan.hpp"
#include "tasks/task.hpp"

namespace attnbench::worker {
namespace {

Json options_json(const std::vector<Option>& options) {
  Json out = Json::array();
  for (const Option& option : options) out.push_back(to_json(option));
  return out;
}

Json alias_json(const Alias& alias) {
  Json options = Json::object();
  for (const auto& [name, value] : alias.options) options[name] = to_json(value);
  return {{"name", alias.name},
          {"implementation", alias.implementation},
          {"options", std::move(options)},
          {"title", alias.title}};
}

Json departures_json(const std::vector<Departure>& departures) {
  Json out = Json::array();
  for (const Departure& one : departures) out.push_back({{"what", one.what}, {"how", one.how}});
  return out;
}

Json entry_json(const Entry& entry, const std::string& origin) {
  Json patterns = Json::array();
  for (const Pattern pattern : entry.patterns) patterns.push_back(to_string(pattern));
  Json implementations = Json::array();
  for (const Implementation& implementation : entry.implementations) {
    implementations.push_back({{"name", implementation.name},
                               {"title", implementation.title},
                               {"growth", run::growth_json(numbers_of(implementation.growth))},
                               {"differentiable", implementation.differentiable}});
  }
  Json aliases = Json::array();
  for (const Alias& alias : entry.aliases) aliases.push_back(alias_json(alias));
  return {{"name", entry.name},
          {"title", entry.title},
          {"citation", entry.citation},
          {"origin", origin},
          {"patterns", std::move(patterns)},
          {"options", options_json(entry.options)},
          {"claims",
           {{"rows_sum_to_one", entry.claims.rows_sum_to_one},
            {"linear_in_value", entry.claims.linear_in_value},
            {"permutation_equivariant", entry.claims.permutation_equivariant},
            {"last_row_agrees", entry.claims.last_row_agrees},
            {"heads_independent", entry.claims.heads_independent}}},
          {"implementations", std::move(implementations)},
          {"aliases", std::move(aliases)},
          {"differs_from", departures_json(entry.differs_from)}};
}

constexpr double patience_seconds = 20;

// Sizes that are tried; a step is added to one of them at a time.
constexpr std::int64_t width = 8;
constexpr std::int64_t width_step = 8;
constexpr std::int64_t latents = 4;
constexpr std::int64_t latents_step = 3;

struct Sizes {
  std::int64_t head_dim = width;
  std::int64_t value_dim = width;
  std::int64_t latents = attnbench::worker::latents;
  std::int64_t kv_heads = 4;
};

bool has_latents(const Entry& entry) {
  return std::any_of(entry.options.begin(), entry.options.end(),
                     [](const Option& option) { return option.name == "latents_per_head"; });
}

std::vector<Role> made(const Entry& entry, Pattern pattern, const Sizes& sizes) {
  Problem problem;
  problem.pattern = pattern;
  problem.heads = 4;
  problem.kv_heads = sizes.kv_heads;
  problem.length = problem.key_length = 16;
  problem.head_dim = sizes.head_dim;
  problem.value_dim = sizes.value_dim;
  std::map<std::string, OptionValue> said;
  if (has_latents(entry)) said["latents_per_head"] = sizes.latents;
  Options options = Options::resolve(entry.options, said);
  if (entry.derive) options = entry.derive(options, problem);
  if (entry.supports) {
    if (const Support support = entry.supports(options, problem); !support) {
      throw UnsupportedError(support.reason);
    }
  }
  return entry.make(options, problem)->roles();
}

/// Nothing where the mechanism does not take these sizes, or has other roles at them.
std::optional<std::vector<Role>> tried(const Entry& entry, Pattern pattern, const Sizes& sizes,
                                       std::size_t roles) {
  try {
    auto found = made(entry, pattern, sizes);
    if (found.size() != roles) return std::nullopt;
    return found;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// "D", "Dv", "L + 1", "2 D".
std::string sum_text(const std::vector<std::pair<std::int64_t, std::string>>& terms) {
  std::string text;
  for (const auto& [count, of] : terms) {
    if (count == 0) continue;
    std::string term = of.empty()   ? std::to_string(count)
                       : count == 1 ? of
                                    : std::to_string(count) + " " + of;
    text += (text.empty() ? "" : " + ") + term;
  }
  return text.empty() ? "0" : text;
}

/// The width of each role as a sum of sizes, from how it grows when one of them does.
std::vector<std::string> widths(const Entry& entry, Pattern pattern,
                                const std::vector<Role>& roles) {
  const auto grown = [&](std::int64_t head_dim, std::int64_t value_dim, std::int64_t more) {
    Sizes sizes;
    sizes.head_dim += head_dim;
    sizes.value_dim += value_dim;
    sizes.latents += more;
    return tried(entry, pattern, sizes, roles.size());
  };
  auto by_head = grown(width_step, 0, 0);
  auto by_value = grown(0, width_step, 0);
  // Where both widths must be the same, that is D.
  if (!by_head || !by_value) {
    by_head = grown(width_step, width_step, 0);
    by_value.reset();
  }
  const auto by_latents =
      has_latents(entry) ? grown(0, 0, latents_step) : std::optional<std::vector<Role>>();
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < roles.size(); ++i) {
    const auto slope = [&](const std::optional<std::vector<Role>>& other, std::int64_t step) {
      return other ? ((*other)[i].width - roles[i].width) / step : 0;
    };
    const std::int64_t d = slope(by_head, width_step);
    const std::int64_t dv = slope(by_value, width_step);
    const std::int64_t l = slope(by_latents, latents_step);
    const std::int64_t rest = roles[i].width - (d + dv) * width - l * latents;
    texts.push_back(sum_text({{d, "D"}, {dv, "Dv"}, {l, "L"}, {rest, ""}}));
  }
  return texts;
}

std::string shape_of(const Role& role, const std::string& width_text, bool shared_heads) {
  switch (role.source) {
    case Source::query_tokens:
      return "[B, H, T, " + width_text + "]";
    case Source::key_tokens:
      return std::string("[B, ") + (shared_heads ? "G" : "H") + ", S, " + width_text + "]";
    case Source::latent_stream:
      break;
  }
  return "[B, H, L, " + width_text + "]";
}

std::string feed_text(const Role& role) {
  const char* of = role.source == Source::latent_stream ? "the latent stream" : "the tokens";
  switch (role.feed) {
    case Feed::projected:
      return std::string("a projection of ") + of;
    case Feed::slice:
      return std::string("the head's slice of ") + of;
    case Feed::before:
      break;
  }
  return "a projection of what the mechanism makes of the tokens first";
}

}  // namespace

Json stamp() {
  return {{"attnbench", ATTNBENCH_VERSION},
          {"abi", ATTNBENCH_ABI},
          {"torch", ATTNBENCH_TORCH_BUILD},
          {"compiler", ATTNBENCH_COMPILER_ABI}};
}

Json catalogue(const Loaded& loaded) {
  Json mechanisms = Json::array();
  for (const std::string& name : loaded.registry.mechanisms()) {
    mechanisms.push_back(entry_json(loaded.registry.entry(name), loaded.origin(name)));
  }
  Json all_tasks = Json::array();
  for (const auto& task : loaded.tasks.all()) {
    const tasks::TaskData* const data = task->data();
    const std::vector<Option> of_data = data != nullptr ? data->settings() : std::vector<Option>{};
    all_tasks.push_back({{"name", task->name()},
                         {"title", task->title()},
                         {"origin", loaded.origin("task " + task->name())},
                         {"axis", task->axis()},
                         {"figures", task->figures()},
                         {"further_figures", task->further_figures()},
                         {"settings", options_json(task->settings())},
                         {"data_settings", options_json(of_data)},
                         {"differs_from", departures_json(task->differs_from())}});
  }
  return {{"type", "catalogue"},
          {"mechanisms", std::move(mechanisms)},
          {"tasks", std::move(all_tasks)},
          {"plugins", loaded.plugins},
          {"stamp", stamp()}};
}

Json catalogue_in_child(const Loaded& loaded, double limit_seconds) {
  ChildSetup setup;
  setup.limit_seconds = limit_seconds;
  Json told;
  const Outcome end = run_child(
      setup, [&](run::Channel& channel) { channel.send(catalogue(loaded)); },
      [&](const Json& message) { told = message; });
  if (end.status != result::Status::ok || told.is_null()) {
    throw Error("what plugins say of themselves cannot be had: " + end.reason);
  }
  return told;
}

Json roles_of(const Entry& entry) {
  Json all = Json::array();
  for (const Pattern pattern : entry.patterns) {
    const std::vector<Role> roles = made(entry, pattern, {});
    const std::vector<std::string> texts = widths(entry, pattern, roles);
    Sizes shared;
    shared.kv_heads = 2;
    const bool shared_heads = tried(entry, pattern, shared, roles.size()).has_value();
    for (std::size_t i = 0; i < roles.size(); ++i) {
      Json role = {{"name", roles[i].name},
                   {"shape", shape_of(roles[i], texts[i], shared_heads)},
                   {"fed_by", feed_text(roles[i])}};
      const auto same = std::find_if(all.begin(), all.end(), [&](const Json& one) {
        return one["name"] == role["name"] && one["shape"] == role["shape"] &&
               one["fed_by"] == role["fed_by"];
      });
      if (same != all.end()) {
        (*same)["patterns"].push_back(to_string(pattern));
      } else {
        role["patterns"] = Json::array({to_string(pattern)});
        all.push_back(std::move(role));
      }
    }
  }
  return all;
}

void add_roles(Json& catalogue, const Loaded& loaded) {
  Json& mechanisms = catalogue["mechanisms"];
  ChildSetup setup;
  setup.limit_seconds = patience_seconds;
  for (std::size_t next = 0; next < mechanisms.size();) {
    const Outcome outcome = run_child(
        setup,
        [&](run::Channel& channel) {
          for (std::size_t i = next; i < mechanisms.size(); ++i) {
            Json message = {{"type", "roles"}};
            try {
              message["roles"] = roles_of(loaded.registry.entry(mechanisms[i]["name"]));
            } catch (const std::exception& error) {
              message["roles_unknown"] = error.what();
            }
            channel.send(message);
          }
        },
        [&](const Json& message) {
          if (next >= mechanisms.size()) return;
          Json& mechanism = mechanisms[next++];
          if (message.contains("roles")) {
            mechanism["roles"] = message["roles"];
          } else {
            mechanism["roles_unknown"] = message.value("roles_unknown", "it sent no roles");
          }
        });
    if (outcome.status == result::Status::ok) break;
    // The one that it was at; the others are asked by another child.
    if (next < mechanisms.size()) mechanisms[next++]["roles_unknown"] = outcome.reason;
  }
}

}  // namespace attnbench::worker
