#include "harness/suite/scripts.hpp"

#include <algorithm>
#include <cctype>

#include "core/failure.hpp"
#include "core/text/printable.hpp"
#include "harness/suite/pointer.hpp"

namespace attnbench::suite {
namespace {

namespace fs = std::filesystem;
using Ordered = nlohmann::ordered_json;

constexpr std::string_view prefix = "torchscript:";

bool can_be_name(const std::string& stem) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !stem.empty() && std::islower(static_cast<unsigned char>(stem[0])) != 0 &&
         std::all_of(stem.begin(), stem.end(), fits);
}

class Taker {
 public:
  Taker(const Document& document, std::vector<std::string>& plugins)
      : document_(document), folder_(fs::path(document.name).parent_path()), plugins_(plugins) {}

  /// `pointer` is where the word stands in the suite.
  std::string take(const std::string& word, const std::string& pointer) const {
    try {
      return take_script(word, folder_, plugins_);
    } catch (const UsageFailure& failure) {
      throw UsageFailure(result::quotable(document_.place(pointer), 300) + failure.what());
    }
  }

  /// The member "mechanisms" of a suite or a profile, which is at `pointer`.
  void take_from(Ordered& holder, const std::string& pointer) const {
    if (!holder.is_object() || !holder.contains("mechanisms")) return;
    Ordered& mechanisms = holder["mechanisms"];
    if (mechanisms.is_array()) {
      for (std::size_t i = 0; i < mechanisms.size(); ++i) {
        Ordered& entry = mechanisms[i];
        if (!entry.is_string()) continue;
        entry = take(entry.get<std::string>(), pointer + "/mechanisms/" + std::to_string(i));
      }
    }
    if (!mechanisms.is_object()) return;
    for (auto member = mechanisms.begin(); member != mechanisms.end(); ++member) {
      Ordered& entry = member.value();
      if (!entry.is_object()) continue;
      const bool named = entry.contains("use") && entry["use"].is_string();
      const std::string use = named ? entry["use"].get<std::string>() : member.key();
      const std::string at = child_pointer(pointer + "/mechanisms", member.key());
      if (use.starts_with(prefix)) entry["use"] = take(use, named ? at + "/use" : at);
    }
  }

 private:
  const Document& document_;
  fs::path folder_;
  std::vector<std::string>& plugins_;
};

}  // namespace

std::string take_script(const std::string& word, const fs::path& folder,
                        std::vector<std::string>& plugins) {
  if (!word.starts_with(prefix)) return word;
  const fs::path file = folder / word.substr(prefix.size());
  const std::string stem = file.stem();
  std::error_code ignored;
  if (file.extension() != ".pt") {
    throw UsageFailure(result::quotable(word) +
                       ": expected a file of torch.jit.save whose name ends in .pt");
  }
  if (!fs::is_regular_file(file, ignored)) {
    throw UsageFailure(result::quotable(word) + ": there is no file " +
                       result::quotable(file.string()));
  }
  if (!can_be_name(stem)) {
    throw UsageFailure(result::quotable(word) +
                       ": the file's name becomes the mechanism's: lower-case letters, digits "
                       "and _, beginning with a letter");
  }
  if (std::find(plugins.begin(), plugins.end(), file.string()) == plugins.end()) {
    plugins.push_back(file.string());
  }
  return stem;
}

void take_scripts(Document& document, std::vector<std::string>& plugins) {
  const Taker taker(document, plugins);
  taker.take_from(document.value, "");
  if (!document.value.is_object() || !document.value.contains("profiles")) return;
  for (auto& [name, profile] : document.value["profiles"].items()) {
    taker.take_from(profile, child_pointer("/profiles", name));
  }
}

}  // namespace attnbench::suite
