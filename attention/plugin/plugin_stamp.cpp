// Reads the stamp from a shared object (ELF, 64 bits, as in <elf.h> and the System V ABI). The file
// may be anything: every offset is checked against its length before use.
#include "attention/plugin/plugin_stamp.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "core/errors.hpp"

namespace attnbench {
namespace {

#if defined(__x86_64__)
constexpr unsigned our_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr unsigned our_machine = EM_AARCH64;
#else
#error "the ELF machine type is unknown"
#endif
constexpr const char* stamp_symbol = "attnbench_plugin_stamp";

std::string machine_name(unsigned machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86-64";
    case EM_386:
      return "32-bit x86";
    case EM_AARCH64:
      return "64-bit ARM";
    case EM_ARM:
      return "32-bit ARM";
    case EM_RISCV:
      return "RISC-V";
    case EM_PPC64:
      return "64-bit PowerPC";
    default:
      return "machine " + std::to_string(machine);
  }
}

class File {
 public:
  explicit File(const std::string& path) : path_(path) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) fail(": there is no such file");
    stream_.open(path, std::ios::binary);
    size_ = std::filesystem::file_size(path, error);
    if (!stream_ || error) fail(" cannot be read");
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw PluginError("plugin " + path_ + what);
  }

  /// `count` records of the file from `offset` on.
  template <class T>
  std::vector<T> read(std::uint64_t offset, std::uint64_t count) {
    if (offset > size_ || count > (size_ - offset) / sizeof(T)) {
      fail(" is a broken shared object: it is truncated; build it again");
    }
    std::vector<T> records(count);
    stream_.seekg(static_cast<std::streamoff>(offset));
    stream_.read(reinterpret_cast<char*>(records.data()),
                 static_cast<std::streamsize>(count * sizeof(T)));
    if (!stream_) fail(" cannot be read");
    return records;
  }

  std::uint64_t size() const { return size_; }

 private:
  std::string path_;
  std::ifstream stream_;
  std::uint64_t size_ = 0;
};

Elf64_Ehdr read_header(File& file) {
  if (file.size() < sizeof(Elf64_Ehdr)) file.fail(" is no shared object (ELF file)");
  const auto header = file.read<Elf64_Ehdr>(0, 1)[0];
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    file.fail(" is no shared object (ELF file)");
  }
  const bool other = header.e_ident[EI_CLASS] != ELFCLASS64 ||
                     header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != our_machine;
  if (other) {
    file.fail(" was built for " + machine_name(header.e_machine) + ", this attnbench for " +
              machine_name(our_machine) + ": rebuild the plugin on a machine of this kind");
  }
  if (header.e_type != ET_DYN) {
    file.fail(" is no shared object but another kind of ELF file: link it with -shared");
  }
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_phentsize != sizeof(Elf64_Phdr)) {
    file.fail(" is a broken shared object: it has no tables; build it again");
  }
  return header;
}

/// The defined symbol of that name, or one of size 0.
Elf64_Sym find_symbol(File& file, const Elf64_Ehdr& header, const std::string& wanted) {
  const auto sections = file.read<Elf64_Shdr>(header.e_shoff, header.e_shnum);
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_DYNSYM || section.sh_link >= sections.size()) continue;
    const Elf64_Shdr& texts = sections[section.sh_link];
    const auto names = file.read<char>(texts.sh_offset, texts.sh_size);
    for (const Elf64_Sym& symbol :
         file.read<Elf64_Sym>(section.sh_offset, section.sh_size / sizeof(Elf64_Sym))) {
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_name >= names.size()) continue;
      const std::size_t room = names.size() - symbol.st_name;
      const char* name = names.data() + symbol.st_name;
      if (strnlen(name, room) == wanted.size() &&
          std::memcmp(name, wanted.data(), wanted.size()) == 0) {
        return symbol;
      }
    }
  }
  return {};
}

/// The file offset of the bytes that are loaded at `address`.
std::uint64_t offset_of(File& file, const Elf64_Ehdr& header, std::uint64_t address,
                        std::uint64_t bytes) {
  for (const auto& segment : file.read<Elf64_Phdr>(header.e_phoff, header.e_phnum)) {
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
    const std::uint64_t inside = address - segment.p_vaddr;
    if (inside <= segment.p_filesz && bytes <= segment.p_filesz - inside) {
      return segment.p_offset + inside;
    }
  }
  file.fail(" is a broken shared object: its stamp is outside the file; build it again");
}

/// A text of a stamp, which a broken stamp need not terminate.
template <std::size_t N>
std::string text_of(const char (&field)[N]) {
  return {field, strnlen(field, N)};
}

}  // namespace

std::string stamp_refusal(const PluginStamp& stamp) {
  const PluginStamp ours = current_stamp();
  if (std::memcmp(stamp.magic, ours.magic, sizeof ours.magic) != 0) {
    return "its stamp is not one of attnbench: rebuild the plugin with ATTNBENCH_PLUGIN";
  }
  const std::string theirs = text_of(stamp.attnbench);
  if (stamp.abi != ours.abi) {
    const bool older = stamp.abi < ours.abi;
    return "it was built for interface " + std::to_string(stamp.abi) + " (attnbench " + theirs +
           "), this attnbench has interface " + std::to_string(ours.abi) + ": rebuild " +
           (older ? "the plugin" : "attnbench from the plugin's newer sources");
  }
  if (text_of(stamp.torch) != text_of(ours.torch)) {
    return "it was built against LibTorch " + text_of(stamp.torch) + ", this attnbench against " +
           text_of(ours.torch) + ": rebuild the plugin against the latter";
  }
  if (text_of(stamp.compiler) != text_of(ours.compiler)) {
    return "it was compiled by " + text_of(stamp.compiler) + ", this attnbench by " +
           text_of(ours.compiler) + ": rebuild the plugin with the latter";
  }
  if (text_of(stamp.interface) != text_of(ours.interface)) {
    return "it was built with other headers of attnbench " + theirs +
           " than this one's: rebuild the plugin with the headers of this attnbench";
  }
  return "";
}

PluginStamp read_stamp(const std::string& path) {
  File file(path);
  const Elf64_Ehdr header = read_header(file);
  const Elf64_Sym symbol = find_symbol(file, header, stamp_symbol);
  if (symbol.st_size == 0) {
    file.fail(std::string(" has no symbol ") + stamp_symbol +
              ": write ATTNBENCH_PLUGIN(function) in one of its files and rebuild it");
  }
  // A stamp of another version may be shorter or longer; all versions begin alike.
  const std::uint64_t bytes = std::min<std::uint64_t>(symbol.st_size, sizeof(PluginStamp));
  const auto content = file.read<char>(offset_of(file, header, symbol.st_value, bytes), bytes);
  PluginStamp stamp{};
  std::memcpy(&stamp, content.data(), content.size());
  return stamp;
}

}  // namespace attnbench
