#include "harness/measure/processor.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using attnbench::measure::Processor;
using attnbench::measure::processor;
using attnbench::test::TemporaryFolder;
using attnbench::test::write_file;

namespace {

Processor of(const std::string& cpuinfo) {
  const TemporaryFolder folder;
  write_file(folder / "cpuinfo", cpuinfo);
  return processor(folder / "cpuinfo");
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a processor of x86-64 has its name, cores and clock from the kernel", "[machine]") {
  const std::string one =
      "model name\t: AMD EPYC 9654 96-Core Processor\ncpu MHz\t\t: 2400.5\nphysical id\t: 0\n";
  const std::string flags = "flags\t\t: fpu avx avx2 fma avx512f hypervisor avx512_bf16\n\n";
  const Processor cpu = of(one + "core id\t\t: 0\n" + flags + one + "core id\t\t: 1\n" + flags);
  CHECK(cpu.model == "AMD EPYC 9654 96-Core Processor");
  CHECK(cpu.cores == 2);
  CHECK(cpu.megahertz == 2400.5);
  CHECK(cpu.virtualised);
  CHECK(cpu.isa == Names{"avx", "avx2", "fma", "avx512f", "avx512_bf16"});
}

TEST_CASE("a processor of aarch64 is named by its numbers", "[machine]") {
  const auto core = [](const std::string& implementer, const std::string& part) {
    return "processor\t: 0\nFeatures\t: fp asimd crc32 sve bf16\nCPU implementer\t: " +
           implementer + "\nCPU architecture: 8\nCPU part\t: " + part + "\n\n";
  };
  const Processor grace = of(core("0x41", "0xd4f") + core("0x41", "0xd4f"));
  CHECK(grace.model == "Arm Neoverse-V2");
  CHECK(grace.cores == 0);
  CHECK(grace.isa == Names{"asimd", "sve", "bf16"});
  CHECK_FALSE(grace.virtualised);
  CHECK(of(core("0x41", "0xd05") + core("0x41", "0xd0b")).model ==
        "Arm Cortex-A55, Arm Cortex-A76");
  CHECK(of(core("0x61", "0x022")).model == "Apple core 0x022");
  CHECK(of(core("0x99", "0x001")).model == "implementer 0x99 core 0x001");
}

TEST_CASE("what the kernel does not say stays empty", "[machine]") {
  CHECK(of("").model.empty());
  CHECK(of("no colon here\n:\n").model.empty());
  CHECK(processor("/nowhere").isa.empty());
}
