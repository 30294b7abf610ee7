# The language CUDA, where a toolkit is found, with or without a GPU at hand; CUDA_FOUND says whether.
# Shared by attnbench and, through its package, by plugins. To be included by a CMakeLists.txt itself or
# by a macro that it calls: CMake enables a language for a folder, and no function can.
set(CUDA_FOUND OFF)
if(NOT CMAKE_CUDA_COMPILER)
  find_program(CMAKE_CUDA_COMPILER nvcc HINTS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
endif()
if(CMAKE_CUDA_COMPILER)
  set(CUDA_FOUND ON)
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc 13 has it
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  endif()
endif()
