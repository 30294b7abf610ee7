// A text for tests of language models, prepared where cells find it.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "tasks/data/cache.hpp"
#include "tasks/data/lm/text_source.hpp"
#include "tasks/data/prepare.hpp"
#include "tasks/data/wanted.hpp"
#include "tests/support/files.hpp"
#include "tests/support/variable.hpp"

namespace attnbench::test {

/// Letters that follow from those before: a model learns it at once.
inline std::string regular_text(std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; text.size() < bytes; ++i) text += "the cat sat on the mat; "[i % 24];
  return text;
}

/// A folder with a prepared text that cells find while it exists.
class PreparedText {
 public:
  explicit PreparedText(const std::string& text, double share = 0.05, const char* name = "text") {
    add(text, share, name);
  }

  void add(const std::string& text, double share, const char* name) {
    write_file(raw_ / name, text);
    tasks::data::lm::TextFileRules rules;
    rules.validation_share = rules.test_share = share;
    prepare_from(raw_ / name, rules);
  }
  /// Files of these names, split and read as `rules` say.
  PreparedText(const std::map<std::string, std::string>& files,
               const tasks::data::lm::TextFileRules& rules) {
    for (const auto& [name, content] : files) write_file(raw_ / name, content);
    prepare_from(raw_.path(), rules);
  }
  void prepare_from(const std::filesystem::path& from,
                    const tasks::data::lm::TextFileRules& rules) {
    const auto source = tasks::data::lm::read_text(from, rules);
    file_ = folder_ / tasks::data::cache_name(source->description());
    tasks::data::prepare(*source, file_);
  }
  std::shared_ptr<const tasks::data::Cache> cache() const {
    return std::make_shared<tasks::data::Cache>(file_);
  }

 private:
  TemporaryFolder raw_;
  TemporaryFolder folder_;
  Variable variable_{"ATTNBENCH_DATA", folder_.path()};
  std::filesystem::path file_;
};

}  // namespace attnbench::test
