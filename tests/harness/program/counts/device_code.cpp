#include "harness/program/counts/device_code.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/failure.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using counts::CountChange;
using counts::DeviceKernel;
using counts::DeviceKernels;

namespace {

/// As cuobjdump 13.5 prints them, shortened.
const std::string usage = R"(
Fatbin elf code:
================
arch = sm_80
code version = [1,8]

Resource usage:
 Common:
  GLOBAL:0
 Function _Z6secondILi32EEvPf:
  REG:10 STACK:0 SHARED:128 LOCAL:0 CONSTANT[0]:360 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function _Z5firstPf:
  REG:8 STACK:16 SHARED:0 LOCAL:0 CONSTANT[0]:360 TEXTURE:0 SURFACE:0 SAMPLER:0

Fatbin ptx code:
================
arch = sm_80
compressed

Fatbin elf code:
================
arch = sm_90

Resource usage:
 Common:
  GLOBAL:0
 Function _Z5firstPf:
  REG:9 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:536 TEXTURE:0 SURFACE:0 SAMPLER:0
)";

const std::string code = R"dump(
	code for sm_80
		Function : _Z6secondILi32EEvPf
	.headerflags	@"EF_CUDA_SM80 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM80)"
        /*0000*/                   MOV R1, c[0x0][0x28] ;     /* 0x00000a0000017a02 */
                                                              /* 0x000fe40000000f00 */
		..........
		Function : _Z5firstPf
        /*0000*/                   MOV R1, c[0x0][0x28] ;     /* 0x00000a0000017a02 */
		..........
	code for sm_90
		Function : _Z5firstPf
        /*0000*/                   LDC R1, c[0x0][0x28] ;     /* 0x00000a00ff017b82 */
		..........
)dump";

std::string changed(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  return text;
}

std::vector<std::string> failures_of(const counts::DeviceFindings& all) {
  std::vector<std::string> names;
  for (const CountChange& finding : all.findings) {
    if (finding.fails()) names.push_back(counts::finding_text(finding, "of device code"));
  }
  return names;
}

}  // namespace

TEST_CASE("cuobjdump's registers, stack, shared memory and code are read", "[gate]") {
  const DeviceKernels kernels = counts::device_kernels_from(usage, code);
  REQUIRE(kernels.size() == 3);
  const DeviceKernel& second = kernels.at("_Z6secondILi32EEvPf (sm_80)");
  CHECK(second.registers == 10);
  CHECK(second.shared == 128);
  CHECK(kernels.at("_Z5firstPf (sm_80)").stack == 16);
  CHECK(kernels.at("_Z5firstPf (sm_90)").registers == 9);
  CHECK(kernels.at("_Z5firstPf (sm_80)").code != second.code);
  for (const auto& [name, kernel] : kernels) {
    CHECK(counts::device_kernel_from(name, counts::device_text(kernel)) == kernel);
  }
}

TEST_CASE("what cuobjdump does not tell is no number", "[gate]") {
  CHECK_THROWS_AS(counts::device_kernels_from("", code), EnvironmentFailure);
  CHECK_THROWS_AS(counts::device_kernels_from(usage, ""), EnvironmentFailure);
  CHECK_THROWS_AS(counts::device_kernels_from(usage, changed(code, "_Z6second", "_Z6other")),
                  EnvironmentFailure);
  CHECK_THROWS_AS(counts::device_kernels_from(changed(usage, "REG:10", "REG:x"), code),
                  EnvironmentFailure);
  CHECK_THROWS_AS(counts::device_kernels_from(changed(usage, "SHARED:128", ""), code),
                  EnvironmentFailure);
  for (const char* odd :
       {"", "10 registers", "10 registers, 0 stack, -1 shared, code a",
        "10 registers, 0 stack, 0 shared, code a b", "10 stack, 0 x, 0 y, code a"}) {
    INFO(odd);
    CHECK_THROWS_AS(counts::device_kernel_from("kernel", odd), UsageFailure);
  }
}

TEST_CASE("device code that takes more, comes or goes fails, other code is counted", "[gate]") {
  const DeviceKernels stored = counts::device_kernels_from(usage, code);
  CHECK(counts::device_findings(stored, stored).findings.empty());
  const auto more = counts::device_findings(
      stored,
      counts::device_kernels_from(changed(usage, "REG:10", "REG:12"),
                                  changed(code, "0x000fe40000000f00", "0x000fe40000000f01")));
  CHECK(failures_of(more) == std::vector<std::string>{"_Z6secondILi32EEvPf (sm_80) registers: 10 "
                                                      "to 12 of device code (+20.00 %)"});
  CHECK(more.changed == 1);
  CHECK(failures_of(
            counts::device_findings(stored, counts::device_kernels_from(
                                                changed(usage, "SHARED:128", "SHARED:256"), code)))
            .size() == 1);
  const auto fewer = counts::device_findings(
      stored, counts::device_kernels_from(changed(usage, "STACK:16", "STACK:0"), code));
  CHECK(fewer.findings.size() == 1);
  CHECK(failures_of(fewer).empty());
  DeviceKernels now = stored;
  now.erase("_Z6secondILi32EEvPf (sm_80)");
  CHECK(failures_of(counts::device_findings(stored, now)).size() == 1);
  CHECK(failures_of(counts::device_findings(now, stored)).size() == 1);
  // An architecture that this build lacks is no kernel that went.
  now = stored;
  now.erase("_Z5firstPf (sm_90)");
  const auto without = counts::device_findings(stored, now);
  CHECK(without.findings.empty());
  CHECK(without.not_built == std::vector<std::string>{"(sm_90)"});
}

TEST_CASE("a library that is not there is said, and no failure", "[gate]") {
  CHECK_THAT(counts::device_code_of("no/such/library.a").why_not,
             Catch::Contains("no CUDA kernels are built here"));
}
