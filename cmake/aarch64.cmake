# Toolchain: aarch64 from x86-64, with Debian's g++-aarch64-linux-gnu and the root of arm64 packages that
# tests/aarch64/root.sh makes. Programs of the build run by qemu-aarch64 (qemu-user): tests as well.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(ATTNBENCH_AARCH64_ROOT ${CMAKE_CURRENT_LIST_DIR}/../build/aarch64-root CACHE PATH
    "The root of arm64 packages")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ATTNBENCH_AARCH64_ROOT)
if(NOT EXISTS ${ATTNBENCH_AARCH64_ROOT}/usr/include)
  message(FATAL_ERROR "${ATTNBENCH_AARCH64_ROOT} holds no packages: make it with tests/aarch64/root.sh")
endif()
get_filename_component(CMAKE_SYSROOT ${ATTNBENCH_AARCH64_ROOT} REALPATH)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${CMAKE_SYSROOT})

# Programs of the build are this machine's, all else is the root's.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
