// JSON pointers (RFC 6901) as text: how a place in a suite is named.
#pragma once

#include <string>
#include <vector>

namespace attnbench::suite {

/// `parent` + "/" + `key`, the key's "~" and "/" escaped.
std::string child_pointer(const std::string& parent, const std::string& key);

/// The keys of a pointer, unescaped; "" has none.
std::vector<std::string> pointer_keys(const std::string& pointer);

}  // namespace attnbench::suite
