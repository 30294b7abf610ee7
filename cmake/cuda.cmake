# The CUDA kernels: attnbench_cuda, a library without LibTorch. Built where a toolkit is found, with or
# without a GPU at hand. CUDA_FOUND says whether it is there.
# Every file is compiled for ATTNBENCH_CUDA_ARCHITECTURES. "all" is machine code for Ampere and Hopper,
# and PTX for what comes between and after.
set(ATTNBENCH_CUDA_ARCHITECTURES "all" CACHE STRING
    "What the CUDA kernels are compiled for: all, native (the cards of this machine), or numbers as in 80;90")
set(CUDA_FOUND OFF)
if(ATTNBENCH_CUDA)
  set(CMAKE_CUDA_ARCHITECTURES OFF)  # said below, with PTX for the oldest alone
  include(cmake/cuda_language.cmake)
  if(NOT CUDA_FOUND)
    message(STATUS "No CUDA toolkit found: the CUDA kernels are left out")
  endif()
endif()
if(NOT CUDA_FOUND)
  return()
endif()
find_package(CUDAToolkit 12 REQUIRED)
if(CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})  # hits across folders, too
endif()

if(ATTNBENCH_CUDA_ARCHITECTURES STREQUAL "native")
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
                  OUTPUT_VARIABLE cuda_cards ERROR_QUIET RESULT_VARIABLE cuda_answer)
  string(REGEX MATCHALL "[0-9]+\\.[0-9]" cuda_cards "${cuda_cards}")
  if(NOT cuda_answer EQUAL 0 OR NOT cuda_cards)
    message(FATAL_ERROR "ATTNBENCH_CUDA_ARCHITECTURES is native, but nvidia-smi names no card: "
                        "give numbers such as 90, or all")
  endif()
  list(REMOVE_DUPLICATES cuda_cards)
  string(REPLACE "." "" cuda_architectures "${cuda_cards}")
else()
  set(cuda_architectures ${ATTNBENCH_CUDA_ARCHITECTURES})
endif()
if(cuda_architectures STREQUAL "all")
  set(cuda_targets -gencode=arch=compute_80,code=[sm_80,compute_80] -gencode=arch=compute_90,code=sm_90)
else()
  set(cuda_targets "")
  foreach(number IN LISTS cuda_architectures)
    if(NOT number MATCHES "^[0-9]+$" OR number LESS 80)
      message(FATAL_ERROR "ATTNBENCH_CUDA_ARCHITECTURES holds \"${number}\": expected all, native, or "
                          "numbers from 80 (Ampere) on")
    endif()
    list(APPEND cuda_targets -gencode=arch=compute_${number},code=sm_${number})
  endforeach()
endif()

# attnbench_cuda_library(NAME SOURCE…): a static library of .cu files.
function(attnbench_cuda_library name)
  add_library(${name} STATIC ${ARGN})
  target_link_libraries(${name} PUBLIC attnbench_settings CUDA::cudart_static)
  # Spills in a kernel are said aloud: they cost more than any other mistake.
  target_compile_options(${name} PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:-O3 --expt-relaxed-constexpr -lineinfo
      -Xcompiler=-Wall,-Wextra,-Wno-psabi --ptxas-options=--warn-on-spills,-v ${cuda_targets}>)
  # What each kernel takes (-v) is kept beside its object for the gate, tests/…/cuda/resources.py.
  set_property(TARGET ${name} PROPERTY CUDA_COMPILER_LAUNCHER
               ${PROJECT_SOURCE_DIR}/cmake/keep_ptxas.sh ${CMAKE_CUDA_COMPILER_LAUNCHER})
endfunction()

# The device without the attention kernels, which take minutes to compile: what the harness needs.
file(GLOB cuda_measure_sources CONFIGURE_DEPENDS harness/measure/*.cu)
set(cuda_device_sources ${PROJECT_SOURCE_DIR}/attention/kernels/cuda/device.cu)
attnbench_cuda_library(attnbench_cuda_device ${cuda_device_sources} ${cuda_measure_sources})
file(GLOB cuda_sources CONFIGURE_DEPENDS attention/kernels/cuda/*/*.cu)
attnbench_cuda_library(attnbench_cuda ${cuda_sources})
target_link_libraries(attnbench_cuda PUBLIC attnbench_cuda_device)
