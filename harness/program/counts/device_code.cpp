#include "harness/program/counts/device_code.hpp"

#include <algorithm>
#include <set>
#include <sstream>

#include "core/failure.hpp"
#include "core/hash.hpp"
#include "core/text/printable.hpp"
#include "harness/program/cluster/shell.hpp"

namespace attnbench::counts {
namespace {

/// The word after `mark` in `line`, up to a blank; empty where there is no such mark.
std::string word_after(const std::string& line, const std::string& mark) {
  const std::size_t at = line.find(mark);
  if (at == std::string::npos) return "";
  const std::size_t begin = line.find_first_not_of(' ', at + mark.size());
  if (begin == std::string::npos) return "";
  return line.substr(begin, line.find_first_of(" \t\r", begin) - begin);
}

std::int64_t bytes_after(const std::string& line, const std::string& mark) {
  const std::string word = word_after(line, mark);
  const bool digits = !word.empty() && word.size() < 12 &&
                      std::all_of(word.begin(), word.end(),
                                  [](char letter) { return letter >= '0' && letter <= '9'; });
  return digits ? std::stoll(word) : -1;
}

std::string key_of(std::string symbol, const std::string& architecture) {
  if (!symbol.empty() && symbol.back() == ':') symbol.pop_back();
  return symbol + " (" + architecture + ")";
}

std::string architecture_of(const std::string& key) { return key.substr(key.rfind('(')); }

DeviceKernels usage_from(std::string_view text) {
  DeviceKernels kernels;
  std::istringstream lines{std::string(text)};
  std::string architecture, key;
  for (std::string line; std::getline(lines, line);) {
    if (const std::string word = word_after(line, "arch = "); !word.empty()) architecture = word;
    if (const std::string word = word_after(line, " Function "); !word.empty()) {
      key = key_of(word, architecture);
    }
    if (key.empty() || line.find("REG:") == std::string::npos) continue;
    DeviceKernel& kernel = kernels[key];
    kernel.registers = bytes_after(line, "REG:");
    kernel.stack = bytes_after(line, "STACK:");
    kernel.shared = bytes_after(line, "SHARED:");
    if (kernel.registers < 0 || kernel.stack < 0 || kernel.shared < 0) {
      throw EnvironmentFailure("cuobjdump says of " + key +
                               " what cannot be read: " + text::quotable(line, 200));
    }
    key.clear();
  }
  return kernels;
}

/// Instructions and their encodings, without addresses and blanks.
std::map<std::string, std::string> codes_from(std::string_view text) {
  std::map<std::string, std::string> codes;
  std::istringstream lines{std::string(text)};
  std::string architecture, key;
  for (std::string line; std::getline(lines, line);) {
    if (const std::string word = word_after(line, "code for "); !word.empty()) architecture = word;
    if (const std::string word = word_after(line, "Function : "); !word.empty()) {
      key = key_of(word, architecture);
      codes[key];
    }
    const std::size_t encoding = line.rfind("/* 0x");
    if (!key.empty() && encoding != std::string::npos) codes[key] += line.substr(encoding) + "\n";
  }
  return codes;
}

}  // namespace

std::string device_text(const DeviceKernel& kernel) {
  return std::to_string(kernel.registers) + " registers, " + std::to_string(kernel.stack) +
         " stack, " + std::to_string(kernel.shared) + " shared, code " + kernel.code;
}

DeviceKernel device_kernel_from(const std::string& name, const std::string& text) {
  std::istringstream words(text);
  DeviceKernel kernel;
  std::string registers, stack, shared, code, more;
  words >> kernel.registers >> registers >> kernel.stack >> stack >> kernel.shared >> shared >>
      code >> kernel.code;
  const bool whole = !words.fail() && !(words >> more) && kernel.registers >= 0 &&
                     kernel.stack >= 0 && kernel.shared >= 0;
  if (whole && device_text(kernel) == text) return kernel;
  throw UsageFailure("/device_code/" + text::quotable(name, 120) +
                     ": expected \"N registers, N stack, N shared, code HASH\", found \"" +
                     text::quotable(text, 120) + "\"; write the counts anew with --update");
}

DeviceKernels device_kernels_from(std::string_view usage, std::string_view code) {
  DeviceKernels kernels = usage_from(usage);
  const auto codes = codes_from(code);
  if (kernels.empty()) {
    throw EnvironmentFailure("cuobjdump names no kernel: " + text::quotable(usage, 300));
  }
  for (auto& [key, kernel] : kernels) {
    const auto found = codes.find(key);
    if (found == codes.end() || found->second.empty()) {
      throw EnvironmentFailure("cuobjdump shows no code of " + key + ": " +
                               text::quotable(code, 300));
    }
    kernel.code = hash_text(found->second);
  }
  return kernels;
}

DeviceFindings device_findings(const DeviceKernels& stored, const DeviceKernels& now) {
  DeviceFindings all;
  std::set<std::string> built, missing;
  for (const auto& [key, kernel] : now) built.insert(architecture_of(key));
  for (const auto& [key, kernel] : stored) {
    if (!built.contains(architecture_of(key))) missing.insert(architecture_of(key));
  }
  all.not_built.assign(missing.begin(), missing.end());
  for (const auto member :
       {&DeviceKernel::registers, &DeviceKernel::stack, &DeviceKernel::shared}) {
    const std::string what = member == &DeviceKernel::registers ? " registers"
                             : member == &DeviceKernel::stack   ? " stack"
                                                                : " shared";
    std::map<std::string, std::int64_t> before, after;
    for (const auto& [key, kernel] : stored) {
      if (!missing.contains(architecture_of(key))) before[key + what] = kernel.*member;
    }
    for (const auto& [key, kernel] : now) after[key + what] = kernel.*member;
    for (CountChange& finding : findings_of(before, after, 0)) {
      const bool once = finding.kind == CountChange::Kind::more ||
                        finding.kind == CountChange::Kind::fewer || what == " registers";
      if (once) all.findings.push_back(std::move(finding));
    }
  }
  for (const auto& [key, kernel] : now) {
    const auto found = stored.find(key);
    all.changed += found != stored.end() && found->second.code != kernel.code ? 1 : 0;
  }
  return all;
}

DeviceCode device_code_of(const std::filesystem::path& library) {
  DeviceCode device;
  std::error_code ignored;
  if (!std::filesystem::exists(library, ignored)) {
    device.why_not =
        "no CUDA kernels are built here: " + text::quotable(library.string()) + " is not there";
    return device;
  }
  const auto dump = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> words{"cuobjdump"};
    words.insert(words.end(), flags.begin(), flags.end());
    return cluster::answer_of(words);
  };
  const cluster::CommandAnswer version = dump({"--version"});
  if (version.not_found()) {
    device.why_not = "cuobjdump is not on PATH: it is in the CUDA toolkit's bin";
    return device;
  }
  const cluster::CommandAnswer usage = dump({"--dump-resource-usage", library.string()});
  const cluster::CommandAnswer code = dump({"--dump-sass", library.string()});
  for (const cluster::CommandAnswer* answer : {&version, &usage, &code}) {
    if (answer->exit_code == 0) continue;
    device.why_not = "cuobjdump ended with " + std::to_string(answer->exit_code) + ": " +
                     text::quotable(answer->text, 300);
    return device;
  }
  const std::size_t release = version.text.find("Cuda compilation tools");
  if (release != std::string::npos) {
    device.toolkit = version.text.substr(release, version.text.find('\n', release) - release);
  }
  device.kernels = device_kernels_from(usage.text, code.text);
  return device;
}

}  // namespace attnbench::counts
