# LibTorch: ATTNBENCH_TORCH (a folder that holds share/cmake/Torch, or a torch Python package) if
# given, else whatever CMake finds, which on Debian is libtorch-dev.
# Defines the target attnbench::torch and the text ATTNBENCH_TORCH_BUILD for the plugin stamp.

set(ATTNBENCH_TORCH "" CACHE PATH "LibTorch or the torch package of a Python; empty = the system's")
if(ATTNBENCH_TORCH)
  list(PREPEND CMAKE_PREFIX_PATH ${ATTNBENCH_TORCH} ${ATTNBENCH_TORCH}/share/cmake)
endif()
find_package(Torch REQUIRED QUIET)
find_package(OpenMP REQUIRED QUIET COMPONENTS CXX)

add_library(attnbench_torch INTERFACE)
add_library(attnbench::torch ALIAS attnbench_torch)
target_link_libraries(attnbench_torch INTERFACE ${TORCH_LIBRARIES})
target_include_directories(attnbench_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
separate_arguments(torch_flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
target_compile_options(attnbench_torch INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${torch_flags}>)
# at::parallel_for is compiled into the caller; it is serial there without -fopenmp. A wheel of
# torch brings an OpenMP runtime of its own, and a second one must not be linked beside it.
if(NOT ATTNBENCH_TORCH)
  target_link_libraries(attnbench_torch INTERFACE OpenMP::OpenMP_CXX)
endif()

# TORCH_VERSION alone does not tell one build from another: add the library's file name and size.
find_library(attnbench_torch_cpu NAMES torch_cpu libtorch_cpu
             HINTS ${TORCH_INSTALL_PREFIX}/lib ${TORCH_INSTALL_PREFIX}/lib/x86_64-linux-gnu)
set(ATTNBENCH_TORCH_BUILD "${Torch_VERSION}")
if(attnbench_torch_cpu)
  file(REAL_PATH ${attnbench_torch_cpu} torch_file)
  file(SIZE ${torch_file} torch_size)
  get_filename_component(torch_name ${torch_file} NAME)
  set(ATTNBENCH_TORCH_BUILD "${Torch_VERSION} ${torch_name} ${torch_size}")
endif()

# attnbench_reuse_torch_header(TARGET): the precompiled header of attnbench_attention, which costs half
# a minute to make. A program is compiled as position-independent as a library, or it would not fit.
function(attnbench_reuse_torch_header target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIC)
  target_precompile_headers(${target} REUSE_FROM attnbench_attention)
endfunction()
