#include "harness/worker/catalogue.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "attention/version.hpp"
#include "core/cell.hpp"
#include "harness/worker/child.hpp"
#include "tasks/task.hpp"

namespace attnbench::worker {
namespace {

MechanismSpec spec_of(const Entry& entry, const std::string& origin) {
  MechanismSpec spec;
  spec.name = entry.name;
  spec.title = entry.title;
  spec.citation = entry.citation;
  spec.formula = entry.formula;
  spec.origin = origin;
  for (const Pattern pattern : entry.patterns) spec.patterns.push_back(to_string(pattern));
  spec.options = entry.options;
  spec.claims = entry.claims;
  for (const Implementation& one : entry.implementations) {
    spec.implementations.push_back({one.name, one.title, one.growth, one.differentiable});
  }
  spec.aliases = entry.aliases;
  spec.differs_from = entry.differs_from;
  return spec;
}

TaskSpec spec_of(const tasks::Task& task, const std::string& origin) {
  TaskSpec spec;
  spec.name = task.name();
  spec.title = task.title();
  spec.origin = origin;
  spec.axis = task.axis();
  spec.figures = task.figures();
  spec.further_figures = task.further_figures();
  spec.settings = task.settings();
  if (const tasks::TaskData* const data = task.data()) spec.data_settings = data->settings();
  spec.differs_from = task.differs_from();
  return spec;
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
  std::map<std::string, std::int64_t> options;  ///< that decide widths themselves
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
  std::map<std::string, OptionValue> said(sizes.options.begin(), sizes.options.end());
  if (has_latents(entry)) said["latents_per_head"] = sizes.latents;
  Options options = Options::resolve(entry.options, said);
  if (entry.derive) options = entry.derive(options, problem);
  if (const Support support = support_of(entry, options, problem); !support) {
    throw UnsupportedError(support.reason);
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
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

bool same_widths(const std::vector<Role>& some, const std::vector<Role>& others) {
  return std::equal(some.begin(), some.end(), others.begin(), others.end(),
                    [](const Role& one, const Role& other) { return one.width == other.width; });
}

/// The integer options, latents aside, that are the width of a role or a part of it, each with a
/// small value.
std::map<std::string, std::int64_t> width_options(const Entry& entry, Pattern pattern,
                                                  std::size_t roles) {
  std::map<std::string, std::int64_t> found;
  for (const Option& option : entry.options) {
    if (option.type != OptionType::integer || option.name.rfind("latents_", 0) == 0) continue;
    const std::int64_t small =
        std::max<std::int64_t>(2, static_cast<std::int64_t>(option.minimum.value_or(0)));
    const auto said = [&](std::int64_t value) {
      Sizes sizes;
      sizes.options[option.name] = value;
      return tried(entry, pattern, sizes, roles);
    };
    const auto some = said(small);
    const auto more = said(small + 1);
    if (some && more && !same_widths(*some, *more)) found[option.name] = small;
  }
  return found;
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

/// The width of each role as a sum of sizes and options, from how it grows when one of them does.
std::vector<std::string> widths(const Entry& entry, Pattern pattern,
                                const std::vector<Role>& by_default) {
  Sizes base;
  base.options = width_options(entry, pattern, by_default.size());
  std::vector<Role> roles = by_default;
  if (const auto with_options = tried(entry, pattern, base, roles.size())) {
    roles = *with_options;
  } else {
    base.options.clear();
  }
  const auto grown = [&](std::int64_t head_dim, std::int64_t value_dim, std::int64_t more) {
    Sizes sizes = base;
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
  std::map<std::string, std::optional<std::vector<Role>>> by_option;
  for (const auto& [name, value] : base.options) {
    Sizes sizes = base;
    ++sizes.options[name];
    by_option[name] = tried(entry, pattern, sizes, roles.size());
  }
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < roles.size(); ++i) {
    const auto slope = [&](const std::optional<std::vector<Role>>& other, std::int64_t step) {
      return other ? ((*other)[i].width - roles[i].width) / step : 0;
    };
    const std::int64_t d = slope(by_head, width_step);
    const std::int64_t dv = slope(by_value, width_step);
    const std::int64_t l = slope(by_latents, latents_step);
    std::int64_t rest = roles[i].width - (d + dv) * width - l * latents;
    std::vector<std::pair<std::int64_t, std::string>> terms{{d, "D"}, {dv, "Dv"}, {l, "L"}};
    for (const auto& [name, other] : by_option) {
      const std::int64_t times = slope(other, 1);
      terms.emplace_back(times, name);
      rest -= times * base.options.at(name);
    }
    terms.emplace_back(rest, "");
    texts.push_back(sum_text(terms));
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

Stamp stamp() {
  return {ATTNBENCH_VERSION, ATTNBENCH_ABI, ATTNBENCH_TORCH_BUILD, ATTNBENCH_COMPILER_ABI};
}

Catalogue catalogue(const Loaded& loaded) {
  Catalogue all;
  for (const std::string& name : loaded.registry.mechanisms()) {
    all.mechanisms.push_back(spec_of(loaded.registry.entry(name), loaded.origin(name)));
    const auto python = loaded.python.find(name);
    all.mechanisms.back().options_unknown =
        python != loaded.python.end() && python->second.outcome.status != Status::ok;
  }
  for (const auto& task : loaded.tasks.all()) {
    all.tasks.push_back(spec_of(*task, loaded.origin("task " + task->name())));
  }
  all.plugins = loaded.plugins;
  all.stamp = stamp();
  return all;
}

Catalogue catalogue_in_child(const Loaded& loaded, double limit_seconds) {
  ChildSetup setup;
  setup.limit_seconds = limit_seconds;
  std::optional<Catalogue> received;
  const Outcome end = run_child(
      setup, [&](process::Channel& channel) { channel.send(catalogue(loaded)); },
      [&](const Json& message) { received = message.get<Catalogue>(); });
  if (end.status != Status::ok || !received) {
    throw Error("what plugins say of themselves cannot be had: " + end.reason);
  }
  return *received;
}

std::vector<RoleSpec> roles_of(const Entry& entry) {
  std::vector<RoleSpec> all;
  std::string refusal;
  for (const Pattern pattern : entry.patterns) {
    std::vector<Role> roles;
    try {
      roles = made(entry, pattern, {});
    } catch (const UnsupportedError& error) {
      refusal = error.what();  // a pattern that other options than the defaults are for
      continue;
    }
    const std::vector<std::string> texts = widths(entry, pattern, roles);
    Sizes shared;
    shared.kv_heads = 2;
    const bool shared_heads = tried(entry, pattern, shared, roles.size()).has_value();
    for (std::size_t i = 0; i < roles.size(); ++i) {
      const RoleSpec role{roles[i].name,
                          shape_of(roles[i], texts[i], shared_heads),
                          feed_text(roles[i]),
                          {to_string(pattern)}};
      const auto same = std::find_if(all.begin(), all.end(), [&](const RoleSpec& one) {
        return one.name == role.name && one.shape == role.shape && one.fed_by == role.fed_by;
      });
      if (same != all.end()) {
        same->patterns.push_back(to_string(pattern));
      } else {
        all.push_back(role);
      }
    }
  }
  if (all.empty() && !refusal.empty()) throw UnsupportedError(refusal);
  return all;
}

void add_roles(Catalogue& catalogue, const Loaded& loaded) {
  auto& mechanisms = catalogue.mechanisms;
  ChildSetup setup;
  setup.limit_seconds = patience_seconds;
  for (std::size_t next = 0; next < mechanisms.size();) {
    const Outcome outcome = run_child(
        setup,
        [&](process::Channel& channel) {
          std::string home;  // of Python
          for (std::size_t i = next; i < mechanisms.size(); ++i) {
            MechanismSpec mechanism = mechanisms[i];
            const std::string own = loaded.python_home(mechanism.name);
            if (!home.empty() && !own.empty() && own != home) return;  // another child's
            if (!own.empty()) home = own;
            try {
              mechanism.roles = roles_of(loaded.registry.entry(mechanism.name));
            } catch (const std::exception& error) {
              mechanism.roles_unknown = error.what();
            }
            channel.send(mechanism);
          }
        },
        [&](const Json& message) {
          if (next < mechanisms.size()) mechanisms[next++] = message.get<MechanismSpec>();
        });
    if (outcome.status == Status::ok) continue;
    // The mechanism that ended this child; the next child describes the rest.
    if (next < mechanisms.size()) mechanisms[next++].roles_unknown = outcome.reason;
  }
}

}  // namespace attnbench::worker
