# LibTorch: ATTNBENCH_TORCH if given, else whatever CMake finds, which on Debian is libtorch-dev.
# Defines the target attnbench::torch, the text ATTNBENCH_TORCH_BUILD for the plugin stamp, and
# ATTNBENCH_TORCH_CUDA_REFUSAL, which says why its CUDA part cannot be used and is empty where it can.
# That part is loaded at run time, by cells that want it (attention/torch/cuda.hpp): nothing of it is
# needed to build.

set(ATTNBENCH_TORCH "" CACHE PATH
    "A folder with include/ and lib/ of LibTorch: the torch package of a Python, or an unpacked archive")
find_package(OpenMP REQUIRED QUIET COMPONENTS CXX)
add_library(attnbench_torch INTERFACE)
add_library(attnbench::torch ALIAS attnbench_torch)

if(ATTNBENCH_TORCH)
  # Not through its CMake package: that one demands a whole CUDA toolkit wherever torch has CUDA.
  find_library(attnbench_torch_cpu torch_cpu PATHS ${ATTNBENCH_TORCH}/lib NO_DEFAULT_PATH REQUIRED)
  find_library(attnbench_torch_c10 c10 PATHS ${ATTNBENCH_TORCH}/lib NO_DEFAULT_PATH REQUIRED)
  target_link_libraries(attnbench_torch INTERFACE ${attnbench_torch_cpu} ${attnbench_torch_c10})
  target_include_directories(attnbench_torch SYSTEM INTERFACE
                             ${ATTNBENCH_TORCH}/include
                             ${ATTNBENCH_TORCH}/include/torch/csrc/api/include)
  # What LibTorch itself needs (CUDA's libraries) is looked for where the program runs.
  target_link_options(attnbench_torch INTERFACE -Wl,--allow-shlib-undefined)
  file(STRINGS ${ATTNBENCH_TORCH}/share/cmake/Torch/TorchConfigVersion.cmake version_line
       REGEX "set\\(PACKAGE_VERSION ")
  string(REGEX REPLACE ".*\"(.*)\".*" "\\1" Torch_VERSION "${version_line}")
  # at::parallel_for is compiled into the caller; it is serial there without -fopenmp. A wheel that
  # carries OpenMP under the system's name shares it; another name would be a second runtime.
  if(EXISTS ${ATTNBENCH_TORCH}/lib/libgomp.so.1)
    target_link_libraries(attnbench_torch INTERFACE OpenMP::OpenMP_CXX)
  endif()
else()
  find_package(Torch REQUIRED QUIET)
  find_library(attnbench_torch_cpu torch_cpu HINTS ${TORCH_INSTALL_PREFIX}/lib REQUIRED)
  target_link_libraries(attnbench_torch INTERFACE ${TORCH_LIBRARIES} OpenMP::OpenMP_CXX)
  target_include_directories(attnbench_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
  separate_arguments(torch_flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
  target_compile_options(attnbench_torch INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${torch_flags}>)
endif()

# The version alone does not tell one build from another: add the library's file name and size.
file(REAL_PATH ${attnbench_torch_cpu} torch_file)
file(SIZE ${torch_file} torch_size)
get_filename_component(torch_name ${torch_file} NAME)
get_filename_component(torch_folder ${torch_file} DIRECTORY)
set(ATTNBENCH_TORCH_CUDA_REFUSAL "")
if(NOT EXISTS ${torch_folder}/libtorch_cuda.so)
  set(ATTNBENCH_TORCH_CUDA_REFUSAL "LibTorch ${Torch_VERSION} has no CUDA part")
elseif(Torch_VERSION VERSION_LESS 2.11)
  set(ATTNBENCH_TORCH_CUDA_REFUSAL "LibTorch ${Torch_VERSION} is older than 2.11")
endif()
set(ATTNBENCH_TORCH_BUILD "${Torch_VERSION} ${torch_name} ${torch_size}")

# c10d's Gloo, for training in several processes. LibTorch's library must hold it, and Gloo's own
# headers must be there, of the same version: Debian has them in libgloo-dev, PyTorch's wheels do not
# bring them. ATTNBENCH_GLOO_REFUSAL says what is missing and is empty where nothing is.
set(ATTNBENCH_GLOO_REFUSAL "")
find_path(attnbench_gloo_include gloo/context.h)
find_library(attnbench_gloo_library gloo)
if(NOT attnbench_torch_gloo_of STREQUAL "${torch_file} ${torch_size}")
  execute_process(COMMAND ${CMAKE_NM} -D --defined-only ${torch_file} OUTPUT_VARIABLE symbols
                  ERROR_QUIET)
  string(FIND "${symbols}" "_ZN4c10d16ProcessGroupGlooC1E" place)
  set(attnbench_torch_gloo ${place} CACHE INTERNAL "c10d::ProcessGroupGloo, -1 = is not there")
  set(attnbench_torch_gloo_of "${torch_file} ${torch_size}" CACHE INTERNAL "the library looked into")
endif()
if(attnbench_torch_gloo EQUAL -1)
  set(ATTNBENCH_GLOO_REFUSAL "LibTorch ${Torch_VERSION} has no c10d::ProcessGroupGloo")
elseif(ATTNBENCH_TORCH)
  set(ATTNBENCH_GLOO_REFUSAL "LibTorch ${Torch_VERSION} of ATTNBENCH_TORCH brings no headers of Gloo")
elseif(NOT attnbench_gloo_include OR NOT attnbench_gloo_library)
  set(ATTNBENCH_GLOO_REFUSAL "the headers of Gloo are missing, which Debian has in libgloo-dev")
endif()

# attnbench_reuse_torch_header(TARGET): the precompiled header of attnbench_attention, which costs half
# a minute to make.
function(attnbench_reuse_torch_header target)
  attnbench_reuse_header(${target} attnbench_attention)
endfunction()
