#include "harness/suite/profile.hpp"

#include <algorithm>
#include <vector>

#include "core/failure.hpp"
#include "harness/suite/pointer.hpp"
#include "core/text/spelling.hpp"

namespace attnbench::suite {

using Ordered = nlohmann::ordered_json;

ProfiledSuite::ProfiledSuite(const Document& document, const std::string& profile)
    : document_(document), value_(document.value) {
  if (profile.empty()) return;
  const Ordered profiles = value_.value("profiles", Ordered::object());
  if (!profiles.contains(profile)) {
    std::vector<std::string> names;
    for (const auto& [name, ignored] : profiles.items()) names.push_back(name);
    throw UsageFailure(document.name + ": there is no profile \"" + profile + "\"; " +
                       suggestion(profile, names));
  }
  merge(value_, profiles[profile], "", child_pointer("/profiles", profile));
}

// RFC 7396, noting on the way where each replaced part was written.
void ProfiledSuite::merge(Ordered& target, const Ordered& patch, const std::string& pointer,
                          const std::string& source) {
  if (!patch.is_object()) {
    target = patch;
    origin_[pointer] = source;
    return;
  }
  if (!target.is_object()) {
    target = Ordered::object();
    origin_[pointer] = source;
  }
  for (const auto& [key, member] : patch.items()) {
    if (member.is_null()) {
      target.erase(key);
    } else {
      merge(target[key], member, child_pointer(pointer, key), child_pointer(source, key));
    }
  }
}

bool ProfiledSuite::add_mechanism(const std::string& name) {
  Ordered& mechanisms = value_["mechanisms"];
  if (mechanisms.is_object()) return mechanisms.emplace(name, Ordered::object()).second;
  if (std::find(mechanisms.begin(), mechanisms.end(), Ordered(name)) != mechanisms.end()) {
    return false;
  }
  mechanisms.push_back(name);
  return true;
}

std::string ProfiledSuite::place(const std::string& pointer) const {
  std::string ancestor = pointer;
  while (!ancestor.empty() && origin_.count(ancestor) == 0) ancestor.resize(ancestor.rfind('/'));
  const auto origin = origin_.find(ancestor);
  if (origin == origin_.end()) return document_.place(pointer);
  return document_.place(origin->second + pointer.substr(ancestor.size()));
}

}  // namespace attnbench::suite
