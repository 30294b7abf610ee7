#include "harness/suite/scripts.hpp"

#include <algorithm>
#include <cctype>

#include "harness/errors.hpp"

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
  Taker(fs::path folder, std::vector<std::string>& plugins)
      : folder_(std::move(folder)), plugins_(plugins) {}

  std::string take(const std::string& word) const { return take_script(word, folder_, plugins_); }

  /// The member "mechanisms" of a suite or a profile.
  void take_from(Ordered& holder) const {
    if (!holder.is_object() || !holder.contains("mechanisms")) return;
    Ordered& mechanisms = holder["mechanisms"];
    if (mechanisms.is_array()) {
      for (Ordered& entry : mechanisms) {
        if (entry.is_string()) entry = take(entry.get<std::string>());
      }
    }
    if (!mechanisms.is_object()) return;
    for (auto member = mechanisms.begin(); member != mechanisms.end(); ++member) {
      Ordered& entry = member.value();
      if (!entry.is_object()) continue;
      const bool named = entry.contains("use") && entry["use"].is_string();
      const std::string use = named ? entry["use"].get<std::string>() : member.key();
      if (use.starts_with(prefix)) entry["use"] = take(use);
    }
  }

 private:
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
    throw UsageFailure(word + ": expected a file of torch.jit.save whose name ends in .pt");
  }
  if (!fs::is_regular_file(file, ignored)) {
    throw UsageFailure(word + ": there is no file " + file.string());
  }
  if (!can_be_name(stem)) {
    throw UsageFailure(word +
                       ": the file's name becomes the mechanism's: lower-case letters, digits "
                       "and _, beginning with a letter");
  }
  if (std::find(plugins.begin(), plugins.end(), file.string()) == plugins.end()) {
    plugins.push_back(file.string());
  }
  return stem;
}

void take_scripts(Document& document, std::vector<std::string>& plugins) {
  const Taker taker(fs::path(document.name).parent_path(), plugins);
  taker.take_from(document.value);
  if (!document.value.is_object() || !document.value.contains("profiles")) return;
  for (Ordered& profile : document.value["profiles"]) taker.take_from(profile);
}

}  // namespace attnbench::suite
