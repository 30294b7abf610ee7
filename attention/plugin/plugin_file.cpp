// Reads the stamp out of a shared object (ELF, 64 bits, as <elf.h> and the System V ABI have it).
// The file may be anything: every offset is held against its length before it is followed.
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "core/errors.hpp"
#include "attention/plugin/plugin_stamp.hpp"

namespace attnbench {
namespace {

#if defined(__x86_64__)
constexpr unsigned our_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr unsigned our_machine = EM_AARCH64;
#else
#error "say which ELF machine this is"
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
      fail(" is a broken shared object: it ends before what it says it holds; build it again");
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

/// Where in the file the bytes are that will lie at `address`.
std::uint64_t offset_of(File& file, const Elf64_Ehdr& header, std::uint64_t address,
                        std::uint64_t bytes) {
  for (const auto& segment : file.read<Elf64_Phdr>(header.e_phoff, header.e_phnum)) {
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
    const std::uint64_t inside = address - segment.p_vaddr;
    if (inside <= segment.p_filesz && bytes <= segment.p_filesz - inside) {
      return segment.p_offset + inside;
    }
  }
  file.fail(" is a broken shared object: its stamp lies outside of it; build it again");
}

}  // namespace

PluginStamp read_stamp(const std::string& path) {
  File file(path);
  const Elf64_Ehdr header = read_header(file);
  const Elf64_Sym symbol = find_symbol(file, header, stamp_symbol);
  if (symbol.st_size == 0) {
    file.fail(std::string(" has no symbol ") + stamp_symbol +
              ": write ATTNBENCH_PLUGIN(function) in one of its files and rebuild it");
  }
  // A stamp of another version may be shorter or longer; its beginning is the same in all.
  const std::uint64_t bytes = std::min<std::uint64_t>(symbol.st_size, sizeof(PluginStamp));
  const auto content = file.read<char>(offset_of(file, header, symbol.st_value, bytes), bytes);
  PluginStamp stamp{};
  std::memcpy(&stamp, content.data(), content.size());
  return stamp;
}

}  // namespace attnbench
