// Commands as text: words quoted for a POSIX shell, and read back.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace attnbench::text {

/// A word for a POSIX shell, quoted where it must be.
std::string shell_word(const std::string& word);
std::string shell_words(const std::vector<std::string>& words);

/// The words of a command that `shell_words` may have written. Nothing where a quote has no end.
std::optional<std::vector<std::string>> words_of_command(const std::string& command);

}  // namespace attnbench::text
